// @ts-check
/**
 * What a respondent's device draws, for plans and questionnaires: the twin of
 * `discreet/collection/respondent.py`. The same bytes give the same report, byte for byte.
 *
 *     const collection = await collectionOf(bytes);                // the document, as it is served
 *     const question = collection.drawQuestion();                  // keep it before anyone answers
 *     collection.asked(question);                                  // what to ask this person for
 *     const drawn = await collection.report(answers, { question }); // keep it before it leaves
 *     // drawn.text is sent, byte for byte; drawn.key stays with the person
 *
 * Nothing here touches a page, a network or a store. Who calls `report` twice for one person, or
 * draws a question again, gives away more than the document promises: keep what was drawn.
 * Formats, the order in which bytes are used, and the rules of encoding: docs/formats.md.
 *
 * @module draw
 */

import { Cells, DrawError, numberOf } from "./cells.js";
import { CELLS, MEANS, perturb, place } from "./mechanisms.js";
import { lossOf } from "./promise.js";
import { SystemSource } from "./random.js";

export { DrawError } from "./cells.js";
export { perturb } from "./mechanisms.js";
export { Source, SystemSource, Tape } from "./random.js";

/** @import { Answer, Answers, Device, Drawn, Plain, PlanBody, Projection, ReportOptions } from "./types" */
/** @import { Schema, SheetBody } from "./types" */
/** @import { Source } from "./random.js" */

/** A plan or questionnaire, and what a respondent's device does with it. See `collectionOf`. */
export class Collection {
  #device;

  /**
   * @param {Plain} body
   * @param {string} digest
   */
  constructor(body, digest) {
    this.#device = body.format === "discreet/plan" ? planOf(body) : questionnaireOf(body);
    const { names, personal, questions, epsilon, assigned } = this.#device;
    /** The document as it was read. */
    this.document = body;
    /** SHA-256 of its canonical bytes, which every report names. */
    this.digest = digest;
    /** @type {"plan" | "questionnaire"} */
    this.kind = body.format.slice("discreet/".length);
    /** All that a person may be asked, the target last. */
    this.names = names;
    /** Questions to which a person gives own personal answers, too. */
    this.personal = personal;
    /** How many questions there are to draw from; the sheet of a questionnaire is one. */
    this.questions = questions;
    /** Loss of one report, at most; infinite where it is unprotected. */
    this.epsilon = epsilon;
    /** Whether people are told which question to answer, instead of drawing it. */
    this.assigned = assigned;
    /** Why nobody is protected; empty where people are. @type {string[]} */
    this.void = [];
    if (epsilon === Infinity) this.void.push("it promises no epsilon");
    if (body.inferred ?? body.schema.inferred) this.void.push("its bounds and values were taken from people's data");
  }

  /**
   * The names of what one question asks for.
   * @param {number} question
   */
  asked(question) {
    return this.#device.asked(this.#known(question));
  }

  /**
   * The public cells of a name; null where a number itself is asked for.
   * @param {string} name
   */
  choices(name) {
    return this.#device.choices(name);
  }

  /**
   * Refuse an answer that does not fit, before all are there.
   * @param {string} name
   * @param {Answer} answer
   */
  check(name, answer) {
    this.#device.check(name, answer);
  }

  /**
   * Draw the question that a person answers, without looking at any answer. Keep it: whoever draws
   * again until a welcome one comes spoils the results.
   * @param {Source} [source]
   * @param {number} [group] The question that a person was assigned.
   */
  drawQuestion(source = new SystemSource(), group = undefined) {
    if (this.assigned !== (group !== undefined)) {
      const way = this.assigned ? "this plan assigns questions: give the number of the group"
        : "people draw their question here: leave out the group";
      throw new DrawError("group", way);
    }
    return group === undefined ? this.#device.drawQuestion(source) : this.#known(group);
  }

  /** @param {number} question */
  #known(question) {
    if (Number.isInteger(question) && question >= 0 && question < this.questions) return question;
    throw new DrawError("group", `${question} is not one of the ${this.questions} questions`);
  }

  /**
   * Draw the report of one person. Everything is checked before anything is drawn.
   * @param {Answers} answers Truthful. Where the question was drawn before, only what it asks for.
   * @param {ReportOptions} [options]
   * @returns {Promise<Drawn>}
   */
  async report(answers, options = {}) {
    const source = options.source ?? new SystemSource();
    const given = options.question === undefined ? null : this.#known(options.question);
    const prepared = this.#device.prepared(answers, given, options);
    const question = given ?? this.drawQuestion(source, options.group);
    const value = options.byHand ? prepared.cells : this.#device.randomized(question, prepared, source);
    const key = source.bytes(16), id = await identityOf(key);
    const text = await reportText(this.digest, id, question, value, source.simulated);
    return { text, id, key: hex(key), question, value };
  }
}

/** @type {(answers: Answers, name: string) => Answer} */
const answerOf = (answers, name) => (Object.hasOwn(answers, name) ? answers[name] : undefined);

/**
 * @template T
 * @param {T | undefined} found
 * @param {string} name
 */
function asked(found, name) {
  if (found === undefined) throw new DrawError("unasked", "no one asked for this", name);
  return found;
}

/** @type {(answers: Answers, names: string[]) => void} */
function refuseUnasked(answers, names) {
  Object.keys(answers).forEach((name) => asked(names.includes(name) || undefined, name));
}

/** @param {Schema} schema */
const namesOf = (schema) => schema.features.map((feature) => feature.name);

/**
 * A plan: each person answers one of several questions about the target and some features.
 * @param {Plain} body
 * @returns {Device}
 */
function planOf(body) {
  const { schema, projection, questions, edges, epsilon } = /** @type {PlanBody} */ (body);
  const original = projection === null ? schema : projection.schema, originals = namesOf(original);
  const names = [...originals, schema.target];
  const target = new Cells(
    { name: schema.target, values: schema.classes, optional: false },
    { missing_tokens: [], unseen: "error", outliers: "error" },
  );
  // features asked by their mean; by cell only whether they are there at all
  const averaged = new Set(questions.flatMap((one) => (one.power ? one.features : [])));
  const cells = new Map(schema.features.map((feature) => {
    const inner = Object.hasOwn(edges, feature.name) ? edges[feature.name].slice(1, -1) : [];
    return [feature.name, new Cells(feature, schema, inner)];
  }));
  cells.set(schema.target, target);
  /** @type {(name: string) => Cells} */
  const cellsOf = (name) => asked(cells.get(name), name);
  /** @type {(name: string) => boolean} */
  const byNumber = (name) => !cellsOf(name).feature.values && (averaged.has(name) || !Object.hasOwn(edges, name));
  questions.forEach((question, k) => {
    const { features, power, mechanism, parameters, weight } = question;
    const sizes = features.map((name) => (power ? 1 : cellsOf(name).size));
    const size = (power ? features.length : 1) * sizes.reduce((product, one) => product * one, target.size);
    const known = Object.hasOwn(power ? MEANS : CELLS, mechanism) && Number(parameters.largest ?? 0) < 2 ** 53;
    const fits = size === parameters.size && (parameters.active ?? features.length) === features.length;
    const loss = Math.max(lossOf(mechanism, parameters), question.epsilon) * body.reports;
    if (!known || !fits || !(weight >= 1) || !(epsilon === "inf" || loss <= epsilon * (1 + 1e-9))) {
      throw new DrawError("document", `question ${k} contradicts the plan, or needs numbers beyond 2^53`);
    }
  });

  /**
   * @param {Answers} answers
   * @returns {Map<string, number>}
   */
  function projected(answers) {
    const { centre, scale, matrix, components } = /** @type {Projection} */ (projection);
    const made = components.map(() => 0);
    original.features.filter((one) => !one.values).forEach((feature, j) => {
      const number = numberOf(feature, original, answerOf(answers, feature.name));
      if (Math.abs(number) === Infinity) throw new DrawError("outside", "infinity is not an answer", feature.name);
      const z = orZero((number - centre[j]) / scale[j]);
      made.forEach((part, k) => (made[k] = part + z * matrix[j][k]));
    });
    return new Map(components.map((one, k) => [one.name, made[k]]));
  }

  return {
    names,
    personal: [],
    questions: questions.length,
    epsilon: epsilon === "inf" ? Infinity : epsilon,
    assigned: body.assignment === "groups",
    asked(question) {
      const { features } = questions[question];
      const made = features.some((name) => !originals.includes(name));
      if (projection === null) return [...features, schema.target];
      const some = original.features.filter((one) => features.includes(one.name) || (made && !one.values));
      return [...some.map((one) => one.name), schema.target];
    },
    choices(name) {
      asked(names.includes(name) || undefined, name);
      return !cells.has(name) || byNumber(name) ? null : cellsOf(name).choices;
    },
    check(name, answer) {
      if (this.choices(name)) cellsOf(name).index(answer);
      else numberOf(asked(original.features.find((one) => one.name === name), name), original, answer);
    },
    drawQuestion(source) {
      return place(source, questions.map((one) => one.weight));
    },
    prepared(answers, question, { personal, byHand }) {
      if (personal || byHand) throw new DrawError("personal", "only questionnaires ask personal questions or are drawn by hand");
      refuseUnasked(answers, names);
      const wanted = question === null ? namesOf(schema) : questions[question].features;
      const chosen = target.index(answerOf(answers, schema.target));
      const made = wanted.every((name) => originals.includes(name)) ? null : projected(answers);
      return { chosen, columns: new Map(wanted.map((name) => {
        const answer = made?.get(name) ?? answerOf(answers, name), one = cellsOf(name);
        return [name, byNumber(name) ? numberOf(one.feature, schema, answer) : one.index(answer)];
      })) };
    },
    randomized(question, { chosen, columns }, source) {
      const { features, power, mechanism, parameters } = questions[question];
      if (power === 0) {
        const cell = features.reduce((sum, name) => {
          const part = columns.get(name);
          return sum * cellsOf(name).size + (averaged.has(name) ? Number(Number.isNaN(part)) : part);
        }, chosen);
        return perturb(mechanism, parameters, cell, source);
      }
      const vector = new Array(features.length * target.size).fill(0);
      features.forEach((name, j) => {
        const { lower, upper } = cellsOf(name).feature, high = Number(upper), low = Number(lower);
        const t = Math.min(Math.max(orZero((columns.get(name) - (high + low) / 2) / ((high - low) / 2)), -1), 1);
        vector[j * target.size + chosen] = power === 1 ? t : 2 * t * t - 1;
      });
      return perturb(mechanism, parameters, vector, source);
    },
  };
}

/** @param {number} number Zero where it is missing, and the largest number for infinity. */
function orZero(number) {
  return Number.isNaN(number) ? 0 : Math.min(Math.max(number, -Number.MAX_VALUE), Number.MAX_VALUE);
}

/**
 * A questionnaire: all private questions at once, randomized in groups.
 * @param {Plain} body
 * @returns {Device}
 */
function questionnaireOf(body) {
  const { questions, target, channels, groups, device } = /** @type {SheetBody} */ (body);
  const sorted = [...questions].sort((a, b) => Number(a.name === target) - Number(b.name === target));
  const names = sorted.map((one) => one.name), rules = /** @type {any} */ (body);
  const cells = sorted.map((one) => new Cells(
    { ...one, values: one.answers }, one.name === target ? { ...rules, unseen: "error" } : rules, one.cuts,
  ));
  /** @type {(name: string) => Cells} */
  const cellsOf = (name) => asked(cells[names.indexOf(name)], name);
  if (channels?.length !== groups.length) {
    throw new DrawError("document", "this questionnaire has no channels: take the canonical one");
  }
  const parts = groups.map((group, k) => {
    const places = group.questions.map((name) => names.indexOf(name));
    return { ...channels[k], model: channels[k].model, places, sizes: places.map((place) => cells[place].size) };
  });
  const own = parts.filter((part) => body.personal === "own" && part.model === "unrelated");
  const personal = own.flatMap((part) => part.places.map((place) => names[place]));
  const losses = parts.map((part) => (own.includes(part) ? Infinity : lossOf(part.model, part)));

  /** @type {(answers: Answers, wanted: string[]) => number[]} */
  function row(answers, wanted) {
    refuseUnasked(answers, wanted);
    return names.map((name) => (wanted.includes(name) ? cellsOf(name).index(answerOf(answers, name), true) : 0));
  }

  return {
    names,
    personal,
    questions: 1,
    epsilon: losses.reduce((sum, one) => sum + one, 0),
    assigned: false,
    asked: () => names,
    choices: (name) => cellsOf(name).choices,
    check: (name, answer) => void cellsOf(name).index(answer, true),
    drawQuestion: () => 0,
    prepared(answers, _, options) {
      const hand = Boolean(options.byHand);
      if (device === (hand ? "software" : "hand")) throw new DrawError("device", `people draw this by ${device}`);
      if (Boolean(options.personal) !== (personal.length > 0 && !hand)) {
        throw new DrawError("personal", options.personal ? "no one asked for personal answers" : "give the personal answers, too");
      }
      return { cells: row(answers, names), own: options.personal ? row(options.personal, personal) : null };
    },
    randomized(_, prepared, source) {
      const sent = [...prepared.cells];
      for (const part of parts) {
        /** @type {(all: number[]) => number[]} */
        const some = (all) => part.places.map((place) => all[place]);
        perturb(part.model, part, some(prepared.cells), source, prepared.own && some(prepared.own))
          .forEach((cell, k) => (sent[part.places[k]] = cell));
      }
      return sent;
    },
  };
}

/**
 * Read a plan or a questionnaire.
 * @param {Uint8Array | ArrayBuffer} bytes The canonical bytes: what a collector serves. Their
 *     SHA-256 is the digest of the document, so they must not be parsed and written again.
 * @param {object} [options]
 * @param {string} [options.digest] "sha256:…" that the document must have, from a trusted place.
 * @param {boolean} [options.unprotected] Accept a document that promises nothing.
 */
export async function collectionOf(bytes, { digest, unprotected = false } = {}) {
  const content = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  const found = await digestOf(content);
  if (digest !== undefined && digest !== found) throw new DrawError("digest", `the document is ${found}, not ${digest}`);
  /** @type {Plain} */
  let body;
  try {
    body = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
  } catch {
    throw new DrawError("document", "this is not JSON");
  }
  const version = body && VERSIONS.get(body.format);
  if (!version) throw new DrawError("document", "this is neither a plan nor a questionnaire");
  if (body.version !== version) throw new DrawError("version", `version ${body.version}; this program reads ${version}`);
  if ("digest" in body) throw new DrawError("document", "give the canonical bytes, without the seal");
  const collection = whole(body, found);
  if (collection.void.length && !unprotected) {
    throw new DrawError("unprotected", `this ${collection.kind} protects nobody: ${collection.void.join("; ")}`);
  }
  return collection;
}

const VERSIONS = new Map([["discreet/plan", 4], ["discreet/questionnaire", 1]]);

/** @type {(body: Plain, digest: string) => Collection} */
function whole(body, digest) {
  try {
    refuseInexact(body);
    return new Collection(body, digest);
  } catch (error) {
    throw new DrawError("document", error instanceof DrawError ? error.message : "this document is misshapen");
  }
}

const REAL = ["lower", "upper", "edges", "cuts", "projection"];

/** @param {Plain} value Whole numbers that JavaScript may have rounded are refused. */
function refuseInexact(value) {
  for (const [key, one] of Object.entries(value)) {
    if (Number.isInteger(one) && !Number.isSafeInteger(one) && !REAL.includes(key)) {
      throw new DrawError("document", `it holds a whole number beyond 2^53, about ${one}`);
    }
    if (typeof one === "object" && one !== null && !REAL.includes(key)) refuseInexact(one);
  }
}

/** @param {Uint8Array} bytes */
async function sha256(bytes) {
  if (!crypto.subtle) throw new DrawError("insecure", "hashes need a secure page: https, or localhost");
  return new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {BufferSource} */ (bytes)));
}

/** SHA-256 of some bytes, as documents name it. @param {Uint8Array} bytes */
export async function digestOf(bytes) {
  return `sha256:${hex(await sha256(bytes))}`;
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The id that commits to a key: the first 16 bytes of SHA-256("discreet/id" + key).
 * @param {Uint8Array} key 16 bytes.
 */
export async function identityOf(key) {
  const content = new Uint8Array([...new TextEncoder().encode("discreet/id"), ...key]);
  return hex(await sha256(content)).slice(0, 32);
}

/**
 * The exact text of a report.
 * @type {(collection: string, id: string, question: number, value: number[], simulated: boolean) => Promise<string>}
 */
async function reportText(collection, id, question, value, simulated) {
  const tight = `{"collection":"${collection}","format":"discreet/report","id":"${id}","question":${question},`
    + `${simulated ? '"simulated":true,' : ""}"value":[${value.join()}],"version":2}`;
  const digest = hex(await sha256(new TextEncoder().encode(tight)));
  return `{"format": "discreet/report", "version": 2, "collection": "${collection}", "id": "${id}", `
    + `"question": ${question}, "value": [${value.join(", ")}]${simulated ? ', "simulated": true' : ""}, `
    + `"digest": "sha256:${digest}"}\n`;
}
