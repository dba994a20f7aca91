/**
 * Randomizes one respondent's true input: the twin of `discreet/mechanisms`.
 *
 * @module mechanisms
 */
import type { Source } from "./random.js";
import type { JsonObject } from "./types.js";
/**
 * Frequency oracles: the cell of one respondent becomes the integers that are sent.
 * @type {{ [name: string]: (source: Source, params: JsonObject, value: number) => number[] }}
 */
export declare const CELL_ORACLES: {
    [name: string]: (source: Source, params: JsonObject, value: number) => number[];
};
/**
 * Mean oracles: the grid integers of one respondent become the integers that are sent.
 * @type {{ [name: string]: (source: Source, params: JsonObject, levels: number[]) => number[] }}
 */
export declare const MEAN_ORACLES: {
    [name: string]: (source: Source, params: JsonObject, levels: number[]) => number[];
};
/**
 * A place, drawn by whole-number weights.
 * @type {(source: Source, weights: number[]) => number}
 */
export declare function drawPlace(source: Source, weights: number[]): number;
/**
 * Randomize one input by a mechanism; `Collection` and tests call it.
 * @param {string} name As in a document.
 * @param {JsonObject} parameters As in a document; of a response model with the `sizes` of its group.
 * @param {any} input A cell, the numbers in [-1, 1], or the cells of a group.
 * @param {Source} source
 * @param {number[] | null} [personal]
 * @returns {number[]}
 */
export declare function perturb(name: string, parameters: JsonObject, input: any, source: Source, personal?: number[] | null): number[];
