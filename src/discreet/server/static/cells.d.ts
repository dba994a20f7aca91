/**
 * Encodes answers as public cells or numbers: the twin of `discreet/encoding.py`.
 *
 * @module cells
 */
import type { Answer, Choice, Feature, Reason, Rules } from "./types.js";
/** @import { Answer, Choice, Feature, Reason, Rules } from "./types.js" */
/** A refusal, with a reason that a page can put into its own words. */
export declare class DrawError extends Error {
    reason: Reason;
    field: string | null;
    /**
     * @param {Reason} reason
     * @param {string} message In English.
     * @param {string | null} [field] The question it is about.
     */
    constructor(reason: Reason, message: string, field?: string | null);
}
/** The public cells of one question, and how an answer becomes one of them. */
export declare class Cells {
    #private;
    feature: Feature;
    values: import("./types.js").Value[] | undefined;
    name: string;
    rules: Rules;
    cutPoints: number[];
    otherCell: number | null;
    size: number;
    missingCell: number | null;
    cellByText: Map<string, number>;
    /**
     * @param {Feature} feature
     * @param {Rules} rules
     * @param {number[]} [cutPoints] Cut points of a number.
     */
    constructor(feature: Feature, rules: Rules, cutPoints?: number[]);
    /** @returns {Choice[]} */
    get choices(): Choice[];
    /**
     * The cell of an answer.
     * @param {Answer} answer
     * @param {boolean} [acceptsLabels] Whether the label of a bin is an answer, too.
     * @returns {number}
     */
    encodeAnswer(answer: Answer, acceptsLabels?: boolean): number;
}
/** @param {string} name */
export declare const makeMissingError: (name: string) => DrawError;
/**
 * A number inside its public bounds; NaN where it is missing.
 * @type {(feature: Feature, rules: Rules, answer: Answer) => number}
 */
export declare function parseNumber(feature: Feature, rules: Rules, answer: Answer): number;
/**
 * A number in at most six digits, as Python's format "g" writes it: ties go to the even digit.
 * @param {number} number
 */
export declare function formatShort(number: number): string;
