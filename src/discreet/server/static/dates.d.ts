/**
 * Dates as cells and numbers: the twin of `discreet/schema/dates.py`.
 *
 * @module dates
 */
import type { Feature, PartName } from "./types.js";
/** The public values of each part of a date, in the order of its cells. @type {Record<PartName, string[]>} */
export declare const PART_VALUES: Record<PartName, string[]>;
/** Whether the answer is a date that is counted in days. @param {{ by?: any }} feature */
export declare const isDate: (feature: {
    by?: any;
}) => boolean;
/**
 * The values of a part of a date; undefined of any other feature.
 * @param {Feature} feature
 * @returns {string[] | undefined}
 */
export declare function listPartValues(feature: Feature): string[] | undefined;
/**
 * Whole hours since 1970, in UTC if there is a zone; null where the text is not a date.
 * @param {unknown} answer
 */
export declare function readHour(answer: unknown): number | null;
/**
 * Days since the first day of a feature; null where the answer is not a date.
 * @type {(feature: Feature, answer: unknown) => number | null}
 */
export declare function countDays(feature: Feature, answer: unknown): number | null;
/** The bounds of a feature as numbers: of a date, in days since its first. @param {Feature} feature */
export declare function readBounds(feature: Feature): {
    lower: string | number | null | undefined;
    upper: string | number | null | undefined;
    integer: boolean | undefined;
};
/**
 * The cell of a part of a date; undefined where the answer is not a date.
 * @type {(feature: Feature, answer: unknown) => number | undefined}
 */
export declare function findPartCell(feature: Feature, answer: unknown): number | undefined;
/**
 * The first and last day, month or year of a bin, as its label shows them.
 * @type {(feature: Feature, low: number, high: number) => [string, string]}
 */
export declare function formatUnits(feature: Feature, low: number, high: number): [string, string];
