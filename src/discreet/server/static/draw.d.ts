/**
 * Draws reports on a respondent's device, for plans and questionnaires: the twin of
 * `discreet/collection/respondent.py`. The same bytes give the same report, byte for byte.
 *
 *     const collection = await collectionOf(bytes);                // the document, as it is served
 *     const question = collection.drawQuestion();                  // keep it before anyone answers
 *     collection.asked(question);                                  // what to ask this person for
 *     const drawn = await collection.report(answers, { question }); // keep it before it leaves
 *     // drawn.text is sent, byte for byte; drawn.key stays with the person
 *
 * Where there is no `crypto.subtle` (a page without TLS, some engines of apps), pass a SHA-256 of your
 * own: `collectionOf(bytes, { sha256 })`.
 *
 * Nothing here touches a page, a network or a store. A second call of `report` for one person, or a
 * second draw of the question, reveals more than the document promises: keep the first.
 * Formats, the order in which bytes are used, and the rules of encoding: docs/formats.md.
 *
 * @module draw
 */
export { DrawError } from "./cells.js";
export { perturb } from "./mechanisms.js";
export { Source, SystemSource, Tape } from "./random.js";
import type { Answer, Answers, Drawn, Hash, JsonObject, ReportOptions } from "./types.js";
import type { Source } from "./random.js";
/** @import { Answer, Answers, Candidate, Device, Drawn, Hash, JsonObject, PlanBody, Projection, ReportOptions } from "./types.js" */
/** @import { QuestionnaireBody, Schema } from "./types.js" */
/** @import { Source } from "./random.js" */
/** A plan or questionnaire, and what a respondent's device does with it. See `collectionOf`. */
export declare class Collection {
    #private;
    /** The document as it was read. */
    document: JsonObject;
    /** SHA-256 of its canonical bytes, which every report names. */
    digest: string;
    /** @type {"plan" | "questionnaire"} */
    kind: "plan" | "questionnaire";
    /** All that a person may be asked, the target last. */
    names: string[];
    /** What the document says of each name, but for the target of a plan. */
    features: JsonObject[];
    /** Questions that also ask for the person's own answer to a personal question. */
    personal: string[];
    /** How many questions there are to draw from; the sheet of a questionnaire is one. */
    questions: number;
    /** Whether a report is a sheet: cells of all names, and not one question's message. */
    isSheet: boolean;
    /** Loss of one report, at most; infinite where it is unprotected. */
    epsilon: number;
    /** Whether each person is assigned a question, instead of drawing it. */
    assigned: boolean;
    /** Why nobody is protected; empty where people are. @type {string[]} */
    void: string[];
    /**
     * @param {JsonObject} body
     * @param {string} digest
     * @param {Hash} [sha256]
     */
    constructor(body: JsonObject, digest: string, sha256?: Hash);
    /**
     * The names of what one question asks for.
     * @param {number} question
     */
    asked(question: number): string[];
    /**
     * The public cells of a name; null where a number itself is asked for.
     * @param {string} name
     */
    choices(name: string): import("./types.js").Choice[] | null;
    /**
     * Refuse an answer that does not fit, before all are there.
     * @param {string} name
     * @param {Answer} answer
     */
    check(name: string, answer: Answer): void;
    /**
     * Draw the question that a person answers, without looking at any answer. Keep it: drawing again
     * until a welcome question comes spoils the results.
     * @param {Source} [source]
     * @param {number} [group] The question that a person was assigned.
     */
    drawQuestion(source?: Source, group?: number): number;
    /**
     * Draw the report of one person. Everything is checked before anything is drawn.
     * @param {Answers} answers Truthful. Where the question was drawn before, only what it asks for.
     * @param {ReportOptions} [options]
     * @returns {Promise<Drawn>}
     */
    report(answers: Answers, options?: ReportOptions): Promise<Drawn>;
}
/**
 * Read a plan or a questionnaire.
 * @param {Uint8Array | ArrayBuffer} bytes The canonical bytes: what a collector serves. Their
 *     SHA-256 is the digest of the document, so they must not be parsed and written again.
 * @param {object} [options]
 * @param {string} [options.digest] "sha256:…" that the document must have, from a trusted place.
 * @param {boolean} [options.unprotected] Accept a document that promises nothing.
 * @param {Hash} [options.sha256] For platforms without `crypto.subtle`; used for this document and its reports.
 */
export declare function collectionOf(bytes: Uint8Array | ArrayBuffer, { digest, unprotected, sha256 }?: {
    digest?: string;
    unprotected?: boolean;
    sha256?: Hash;
}): Promise<Collection>;
/**
 * SHA-256 of some bytes, as documents name it.
 * @param {Uint8Array} bytes
 * @param {Hash} [sha256]
 */
export declare function digestOf(bytes: Uint8Array, sha256?: Hash): Promise<string>;
/**
 * The id that commits to a key: the first 16 bytes of SHA-256("discreet/id" + key).
 * @param {Uint8Array} key 16 bytes.
 * @param {Hash} [sha256]
 */
export declare function identityOf(key: Uint8Array, sha256?: Hash): Promise<string>;
