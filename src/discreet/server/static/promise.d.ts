/**
 * Computes what a document promises from the probabilities with which draw.js draws.
 *
 * @module promise
 */
import type { Collection } from "./draw.js";
import type { JsonObject, PartProtection } from "./types.js";
/**
 * Compute the largest loss of one message: ln of its worst likelihood ratio. Infinite where a message proves
 * something, and where parameters do not fit together.
 * @param {string} name Of the mechanism, as in a document.
 * @param {JsonObject} params Its parameters, as in a document; of a response model also `sizes`.
 * @returns {number}
 */
export declare function lossOf(name: string, params: JsonObject): number;
/**
 * Describe how each part of a person's message hides the answers: one part per question of a plan,
 * one per group of a questionnaire.
 * @param {Collection} collection
 * @param {number} [question]
 * @returns {PartProtection[]}
 */
export declare function describeProtection(collection: Collection, question?: number): PartProtection[];
/**
 * Compute the largest probability of a statement after the message, for somebody to whom its
 * probability was `prior` before. At epsilon 1, one tenth becomes 0.232.
 * @param {number} prior
 * @param {number} epsilon Of the whole message: `collection.epsilon`.
 */
export declare function posteriorOf(prior: number, epsilon: number): number;
/**
 * Express a probability as a number of people, rounded towards less protection.
 * @param {number} probability
 * @param {number} [people]
 */
export declare function countPeople(probability: number, people?: number): number;
