/**
 * What a document promises, in numbers: worked out from the probabilities with which draw.js draws.
 *
 * @module promise
 */
import type { Collection } from "./draw.js";
import type { Fact, Plain } from "./types.js";
/**
 * The largest loss of one message: ln of its worst likelihood ratio. Infinite where a message proves
 * something, and where parameters do not fit together.
 * @param {string} name Of the mechanism, as in a document.
 * @param {Plain} params Its parameters, as in a document; of a response model also `sizes`.
 * @returns {number}
 */
export declare function lossOf(name: string, params: Plain): number;
/**
 * How each part of a person's message hides what they answered: one part for a question of a plan,
 * one for each group of a questionnaire.
 * @param {Collection} collection
 * @param {number} [question]
 * @returns {Fact[]}
 */
export declare function factsOf(collection: Collection, question?: number): Fact[];
/**
 * How likely somebody can think a statement after the message who thought it as likely as `prior`
 * before, at most. At epsilon 1, one tenth becomes 0.232.
 * @param {number} prior
 * @param {number} epsilon Of the whole message: `collection.epsilon`.
 */
export declare function posteriorOf(prior: number, epsilon: number): number;
/**
 * A probability as a number of people, rounded towards less protection.
 * @param {number} probability
 * @param {number} [people]
 */
export declare function outOf(probability: number, people?: number): number;
