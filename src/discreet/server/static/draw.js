// @ts-check
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

import { Cells, DrawError, parseNumber } from "./cells.js";
import { listPartValues, readBounds } from "./dates.js";
import { CELL_ORACLES, drawPlace, MEAN_ORACLES, perturb } from "./mechanisms.js";
import { lossOf } from "./promise.js";
import { SystemSource } from "./random.js";

export { DrawError } from "./cells.js";
export { perturb } from "./mechanisms.js";
export { Source, SystemSource, Tape } from "./random.js";

/** @import { Answer, Answers, Candidate, Device, Drawn, Hash, JsonObject, PlanBody, Projection, ReportOptions } from "./types.js" */
/** @import { QuestionnaireBody, Schema } from "./types.js" */
/** @import { Source } from "./random.js" */

/** A plan or questionnaire, and what a respondent's device does with it. See `collectionOf`. */
export class Collection {
  #device;
  #sha256;

  /**
   * @param {JsonObject} body
   * @param {string} digest
   * @param {Hash} [sha256]
   */
  constructor(body, digest, sha256 = computeSha256) {
    this.#sha256 = sha256;
    this.#device = body.format === "discreet/plan" ? makePlanDevice(body) : makeQuestionnaireDevice(body);
    const { names, features, personal, questions, isSheet, epsilon, assigned } = this.#device;
    /** The document as it was read. */
    this.document = body;
    /** SHA-256 of its canonical bytes, which every report names. */
    this.digest = digest;
    /** @type {"plan" | "questionnaire"} */
    this.kind = body.format.slice("discreet/".length);
    /** All that a person may be asked, the target last. */
    this.names = names;
    /** What the document says of each name, but for the target of a plan. */
    this.features = features;
    /** Questions that also ask for the person's own answer to a personal question. */
    this.personal = personal;
    /** How many questions there are to draw from; the sheet of a questionnaire is one. */
    this.questions = questions;
    /** Whether a report is a sheet: cells of all names, and not one question's message. */
    this.isSheet = isSheet;
    /** Loss of one report, at most; infinite where it is unprotected. */
    this.epsilon = epsilon;
    /** Whether each person is assigned a question, instead of drawing it. */
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
    return this.#device.asked(this.#requireQuestion(question));
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
   * Draw the question that a person answers, without looking at any answer. Keep it: drawing again
   * until a welcome question comes spoils the results.
   * @param {Source} [source]
   * @param {number} [group] The question that a person was assigned.
   */
  drawQuestion(source = new SystemSource(), group = undefined) {
    if (this.assigned !== (group !== undefined)) {
      const hint = this.assigned ? "this plan assigns questions: give the number of the group"
        : "people draw their question here: leave out the group";
      throw new DrawError("group", hint);
    }
    return group === undefined ? this.#device.drawQuestion(source) : this.#requireQuestion(group);
  }

  /** @param {number} question */
  #requireQuestion(question) {
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
    const fixedQuestion = options.question === undefined ? null : this.#requireQuestion(options.question);
    const preparedAnswers = this.#device.prepare(answers, fixedQuestion, options);
    const question = fixedQuestion ?? this.drawQuestion(source, options.group);
    const value = options.byHand ? preparedAnswers.cells : this.#device.randomize(question, preparedAnswers, source);
    const key = source.bytes(16), id = await identityOf(key, this.#sha256);
    const text = await writeReport(this.digest, id, question, value, source.simulated, this.#sha256);
    return { text, id, key: toHex(key), question, value };
  }
}

/** @type {(answers: Answers, name: string) => Answer} */
const getAnswer = (answers, name) => (Object.hasOwn(answers, name) ? answers[name] : undefined);

/**
 * @template T
 * @param {T | undefined} value
 * @param {string} name
 */
function requireAsked(value, name) {
  if (value === undefined) throw new DrawError("unasked", "no one asked for this", name);
  return value;
}

/** @type {(answers: Answers, names: string[]) => void} */
function refuseUnasked(answers, names) {
  Object.keys(answers).forEach((name) => requireAsked(names.includes(name) || undefined, name));
}

/** @param {Schema} schema */
const listNames = (schema) => schema.features.map((feature) => feature.name);

/**
 * A plan: each person answers one of several questions about the target and some features.
 * @param {JsonObject} body
 * @returns {Device}
 */
function makePlanDevice(body) {
  const { schema, projection, questions, edges, epsilon } = /** @type {PlanBody} */ (body);
  const originalSchema = projection === null ? schema : projection.schema, originalNames = listNames(originalSchema);
  const names = [...originalNames, schema.target];
  const targetCells = new Cells(
    { name: schema.target, values: schema.classes, optional: false },
    { missing_tokens: [], unseen: "error", outliers: "error" },
  );
  // features asked by their mean; by cell only whether they are there at all
  const averagedNames = new Set(questions.flatMap((question) => (question.power ? question.features : [])));
  const cells = new Map(schema.features.map((feature) => {
    const cutPoints = Object.hasOwn(edges, feature.name) ? edges[feature.name].slice(1, -1) : [];
    return [feature.name, new Cells(feature, schema, cutPoints)];
  }));
  cells.set(schema.target, targetCells);
  /** @type {(name: string) => Cells} */
  const getCells = (name) => requireAsked(cells.get(name), name);
  /** @type {(name: string) => boolean} */
  const isNumeric = (name) => !getCells(name).values && (averagedNames.has(name) || !Object.hasOwn(edges, name));
  questions.forEach((question, k) => {
    const { features, power, mechanism, parameters, weight, candidate } = question;
    const sizes = features.map((name) => (power ? 1 : getCells(name).size));
    const cellTotal = (power ? features.length : 1) * sizes.reduce((product, cellCount) => product * cellCount, targetCells.size);
    const size = candidate ? VERDICTS : cellTotal;
    if (candidate && (power || features.some(isNumeric) || !isCandidate(candidate, features, sizes, targetCells.size))) {
      throw new DrawError("document", `question ${k} judges a model that does not fit the plan`);
    }
    const isKnownOracle = Object.hasOwn(power ? MEAN_ORACLES : CELL_ORACLES, mechanism) && Number(parameters.largest ?? 0) < 2 ** 53;
    const sizesMatch = size === parameters.size && (parameters.active ?? features.length) === features.length;
    const loss = Math.max(lossOf(mechanism, parameters), question.epsilon) * body.reports;
    if (!isKnownOracle || !sizesMatch || !(weight >= 1) || !(epsilon === "inf" || loss <= epsilon * (1 + 1e-9))) {
      throw new DrawError("document", `question ${k} contradicts the plan, or needs numbers beyond 2^53`);
    }
  });

  /**
   * @param {Answers} answers
   * @returns {Map<string, number>}
   */
  function projectAnswers(answers) {
    const { centre, scale, matrix, components } = /** @type {Projection} */ (projection);
    const values = components.map(() => 0);
    originalSchema.features.filter((feature) => !feature.values && !listPartValues(feature)).forEach((feature, j) => {
      const number = parseNumber(feature, originalSchema, getAnswer(answers, feature.name));
      if (Math.abs(number) === Infinity) throw new DrawError("outside", "infinity is not an answer", feature.name);
      const z = toFinite((number - centre[j]) / scale[j]);
      values.forEach((value, k) => (values[k] = value + z * matrix[j][k]));
    });
    return new Map(components.map((component, k) => [component.name, values[k]]));
  }

  return {
    names,
    features: originalSchema.features,
    personal: [],
    questions: questions.length,
    isSheet: false,
    epsilon: epsilon === "inf" ? Infinity : epsilon,
    assigned: body.assignment === "groups",
    asked(question) {
      const { features } = questions[question];
      const asksProjected = features.some((name) => !originalNames.includes(name));
      if (projection === null) return [...features, schema.target];
      const askedFeatures = originalSchema.features.filter((feature) => features.includes(feature.name) || (asksProjected && !feature.values && !listPartValues(feature)));
      return [...askedFeatures.map((feature) => feature.name), schema.target];
    },
    choices(name) {
      requireAsked(names.includes(name) || undefined, name);
      return !cells.has(name) || isNumeric(name) ? null : getCells(name).choices;
    },
    check(name, answer) {
      if (this.choices(name)) getCells(name).encodeAnswer(answer);
      else parseNumber(requireAsked(originalSchema.features.find((feature) => feature.name === name), name), originalSchema, answer);
    },
    drawQuestion(source) {
      return drawPlace(source, questions.map((question) => question.weight));
    },
    prepare(answers, question, { personal, byHand }) {
      if (personal || byHand) throw new DrawError("personal", "only questionnaires ask personal questions or are drawn by hand");
      refuseUnasked(answers, names);
      const featureNames = question === null ? listNames(schema) : questions[question].features;
      const classCell = targetCells.encodeAnswer(getAnswer(answers, schema.target));
      const projectedValues = featureNames.every((name) => originalNames.includes(name)) ? null : projectAnswers(answers);
      return { classCell, columns: new Map(featureNames.map((name) => {
        const answer = projectedValues?.get(name) ?? getAnswer(answers, name), cells = getCells(name);
        return [name, isNumeric(name) ? parseNumber(cells.feature, schema, answer) : cells.encodeAnswer(answer)];
      })) };
    },
    randomize(question, { classCell, columns }, source) {
      const { features, power, mechanism, parameters, candidate } = questions[question];
      if (candidate) return perturb(mechanism, parameters, Number(decide(candidate, columns) === classCell), source);
      if (power === 0) {
        const cell = features.reduce((sum, name) => {
          const value = columns.get(name);
          return sum * getCells(name).size + (averagedNames.has(name) ? Number(Number.isNaN(value)) : value);
        }, classCell);
        return perturb(mechanism, parameters, cell, source);
      }
      const vector = new Array(features.length * targetCells.size).fill(0);
      features.forEach((name, j) => {
        const { lower, upper } = readBounds(getCells(name).feature), high = Number(upper), low = Number(lower);
        const t = Math.min(Math.max(toFinite((columns.get(name) - (high + low) / 2) / ((high - low) / 2)), -1), 1);
        vector[j * targetCells.size + classCell] = power === 1 ? t : 2 * t * t - 1;
      });
      return perturb(mechanism, parameters, vector, source);
    },
  };
}

const VERDICTS = 2; // cells of a question that judges a model: wrong, right
const MAX_SCORE = 2 ** 20; // largest absolute value of a whole score

/**
 * Whether the whole scores of a model fit the features of its question.
 * @param {Candidate} candidate
 * @param {string[]} features
 * @param {number[]} sizes
 * @param {number} classCount
 */
function isCandidate({ offsets, tables }, features, sizes, classCount) {
  /** @type {(scores: number[], length: number) => boolean} */
  const areScores = (scores, length) => scores.length === length && scores.every((score) => Number.isInteger(score) && Math.abs(score) <= MAX_SCORE);
  return areScores(offsets, classCount) && Object.keys(tables).length === features.length && features.every((name, k) => Object.hasOwn(tables, name)
    && tables[name].length === classCount && tables[name].every((scores) => areScores(scores, sizes[k])));
}

/**
 * The class that a model decides for: the one with the largest score, of equal ones the first.
 * @param {Candidate} candidate
 * @param {Map<string, number>} columns
 */
function decide({ offsets, tables }, columns) {
  const scores = offsets.map((offset, c) => Object.keys(tables).reduce((sum, name) => sum + tables[name][c][Number(columns.get(name))], offset));
  return scores.indexOf(Math.max(...scores));
}

/** Zero where a number is missing, and the largest number for infinity. @param {number} number */
function toFinite(number) {
  return Number.isNaN(number) ? 0 : Math.min(Math.max(number, -Number.MAX_VALUE), Number.MAX_VALUE);
}

/**
 * A questionnaire: all private questions at once, randomized in groups.
 * @param {JsonObject} body
 * @returns {Device}
 */
function makeQuestionnaireDevice(body) {
  const { questions, target, channels, groups, device } = /** @type {QuestionnaireBody} */ (body);
  const sortedQuestions = [...questions].sort((a, b) => Number(a.name === target) - Number(b.name === target));
  const names = sortedQuestions.map((question) => question.name), rules = /** @type {any} */ (body);
  const cells = sortedQuestions.map((question) => new Cells(
    { ...question, values: question.answers }, question.name === target ? { ...rules, unseen: "error" } : rules, question.cuts,
  ));
  /** @type {(name: string) => Cells} */
  const getCells = (name) => requireAsked(cells[names.indexOf(name)], name);
  if (channels?.length !== groups.length) {
    throw new DrawError("document", "this questionnaire has no channels: take the canonical one");
  }
  const groupChannels = groups.map((group, k) => {
    const places = group.questions.map((name) => names.indexOf(name));
    return { ...channels[k], model: channels[k].model, places, sizes: places.map((place) => cells[place].size) };
  });
  const personalGroups = groupChannels.filter((group) => body.personal === "own" && group.model === "unrelated");
  const personal = personalGroups.flatMap((group) => group.places.map((place) => names[place]));
  const losses = groupChannels.map((group) => (personalGroups.includes(group) ? Infinity : lossOf(group.model, group)));

  /** @type {(answers: Answers, required: string[]) => number[]} */
  function encodeRow(answers, required) {
    refuseUnasked(answers, required);
    return names.map((name) => (required.includes(name) ? getCells(name).encodeAnswer(getAnswer(answers, name), true) : 0));
  }

  return {
    names,
    features: questions,
    personal,
    questions: 1,
    isSheet: true,
    epsilon: losses.reduce((sum, loss) => sum + loss, 0),
    assigned: false,
    asked: () => names,
    choices: (name) => getCells(name).choices,
    check: (name, answer) => void getCells(name).encodeAnswer(answer, true),
    drawQuestion: () => 0,
    prepare(answers, _, options) {
      const isByHand = Boolean(options.byHand);
      if (device === (isByHand ? "software" : "hand")) throw new DrawError("device", `people draw this by ${device}`);
      if (Boolean(options.personal) !== (personal.length > 0 && !isByHand)) {
        throw new DrawError("personal", options.personal ? "no one asked for personal answers" : "give the personal answers, too");
      }
      return { cells: encodeRow(answers, names), own: options.personal ? encodeRow(options.personal, personal) : null };
    },
    randomize(_, preparedAnswers, source) {
      const sentCells = [...preparedAnswers.cells];
      for (const group of groupChannels) {
        /** @type {(row: number[]) => number[]} */
        const pickPlaces = (row) => group.places.map((place) => row[place]);
        perturb(group.model, group, pickPlaces(preparedAnswers.cells), source, preparedAnswers.own && pickPlaces(preparedAnswers.own))
          .forEach((cell, k) => (sentCells[group.places[k]] = cell));
      }
      return sentCells;
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
 * @param {Hash} [options.sha256] For platforms without `crypto.subtle`; used for this document and its reports.
 */
export async function collectionOf(bytes, { digest, unprotected = false, sha256 = computeSha256 } = {}) {
  const content = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  if (await digestOf(new Uint8Array(0), sha256) !== EMPTY_DIGEST) throw new DrawError("hash", "the hash that was given is not SHA-256");
  const computedDigest = await digestOf(content, sha256);
  if (digest !== undefined && digest !== computedDigest) throw new DrawError("digest", `the document is ${computedDigest}, not ${digest}`);
  /** @type {JsonObject} */
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
  const collection = makeCollection(body, computedDigest, sha256);
  if (collection.void.length && !unprotected) {
    throw new DrawError("unprotected", `this ${collection.kind} protects nobody: ${collection.void.join("; ")}`);
  }
  return collection;
}

const VERSIONS = new Map([["discreet/plan", 5], ["discreet/questionnaire", 1]]);

/** SHA-256 of nothing (FIPS 180-4). */
const EMPTY_DIGEST = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** @type {(body: JsonObject, digest: string, sha256: Hash) => Collection} */
function makeCollection(body, digest, sha256) {
  try {
    refuseInexact(body);
    return new Collection(body, digest, sha256);
  } catch (error) {
    throw new DrawError("document", error instanceof DrawError ? error.message : "this document is misshapen");
  }
}

const REAL_KEYS = ["lower", "upper", "edges", "cuts", "projection"];

/** @param {JsonObject} value Whole numbers that JavaScript may have rounded are refused. */
function refuseInexact(value) {
  for (const [key, member] of Object.entries(value)) {
    if (Number.isInteger(member) && !Number.isSafeInteger(member) && !REAL_KEYS.includes(key)) {
      throw new DrawError("document", `it holds a whole number beyond 2^53, about ${member}`);
    }
    if (typeof member === "object" && member !== null && !REAL_KEYS.includes(key)) refuseInexact(member);
  }
}

/** @type {Hash} */
async function computeSha256(bytes) {
  if (typeof crypto === "undefined" || !crypto.subtle) throw new DrawError("insecure", "hashes need a secure page (https, or localhost), or a SHA-256 of your own");
  return new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {BufferSource} */ (bytes)));
}

/**
 * SHA-256 of some bytes, as documents name it.
 * @param {Uint8Array} bytes
 * @param {Hash} [sha256]
 */
export async function digestOf(bytes, sha256 = computeSha256) {
  return `sha256:${toHex(await sha256(bytes))}`;
}

/** @param {Uint8Array} bytes */
function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The id that commits to a key: the first 16 bytes of SHA-256("discreet/id" + key).
 * @param {Uint8Array} key 16 bytes.
 * @param {Hash} [sha256]
 */
export async function identityOf(key, sha256 = computeSha256) {
  const content = new Uint8Array([...new TextEncoder().encode("discreet/id"), ...key]);
  return toHex(await sha256(content)).slice(0, 32);
}

/**
 * The exact text of a report.
 * @type {(collection: string, id: string, question: number, value: number[], simulated: boolean, sha256: Hash) => Promise<string>}
 */
async function writeReport(collection, id, question, value, simulated, sha256) {
  const canonicalText = `{"collection":"${collection}","format":"discreet/report","id":"${id}","question":${question},`
    + `${simulated ? '"simulated":true,' : ""}"value":[${value.join()}],"version":2}`;
  const digest = toHex(await sha256(new TextEncoder().encode(canonicalText)));
  return `{"format": "discreet/report", "version": 2, "collection": "${collection}", "id": "${id}", `
    + `"question": ${question}, "value": [${value.join(", ")}]${simulated ? ', "simulated": true' : ""}, `
    + `"digest": "sha256:${digest}"}\n`;
}
