// @ts-check
/**
 * Computes what a document promises from the probabilities with which draw.js draws.
 *
 * @module promise
 */

/** @import { Collection } from "./draw.js" */
/** @import { AnswerLaw, JsonObject, PartProtection } from "./types.js" */

const TWO_TO_64 = 1n << 64n; // probabilities are integers over 2^64

/**
 * Compute the largest loss of one message: ln of its worst likelihood ratio. Infinite where a message proves
 * something, and where parameters do not fit together.
 * @param {string} name Of the mechanism, as in a document.
 * @param {JsonObject} params Its parameters, as in a document; of a response model also `sizes`.
 * @returns {number}
 */
export function lossOf(name, params) {
  /** @type {(a: bigint, b: bigint) => number} */
  const computeLogRatio = (a, b) => {
    if (a <= 0n || b <= 0n) return Infinity;
    const [high, low] = a < b ? [b, a] : [a, b];
    return Math.log1p(Number(high - low) / Number(low)); // exact also where it is tiny
  };
  /** @type {(p: string, hitSides?: number, missSides?: number) => number} */
  const computeLogOdds = (p, hitSides = 1, missSides = 1) => computeLogRatio(BigInt(p) * BigInt(hitSides), (TWO_TO_64 - BigInt(p)) * BigInt(missSides));
  /** @type {(steps: number, scale: string, places: number) => number} */
  const computeNoiseLoss = (steps, scale, places) => (Number(scale) > 0 ? steps * 2 ** places / Number(scale) : Infinity);
  switch (name) {
    case "de": return computeLogOdds(params.p, params.size - 1);
    case "ss": return computeLogOdds(params.p, params.size - params.subset, params.subset);
    case "sue": case "oue": case "the": {
      const p = BigInt(params.p), q = BigInt(params.q);
      return q < TWO_TO_64 ? computeLogRatio(p * (TWO_TO_64 - q), q * (TWO_TO_64 - p)) : Infinity;
    }
    case "she": return computeNoiseLoss(2 * params.unit, params.scale, 16);
    case "hr": return params.order > params.size && Math.log2(params.order) % 1 === 0 ? computeLogOdds(params.p) : Infinity;
    case "olh": return computeLogOdds(params.p, params.hashes - 1);
    case "laplace": return computeNoiseLoss(2 * params.resolution * params.active, params.scale_2_32, 32);
    case "duchi": {
      const maxShift = BigInt(params.resolution) * BigInt(params.slope);
      return computeLogRatio(TWO_TO_64 / 2n + maxShift, TWO_TO_64 / 2n - maxShift);
    }
    case "duchi-many": return params.signs === (params.size | 1) ? computeLogOdds(params.agree) : Infinity;
    case "piecewise":
      if (params.largest !== params.resolution + params.half) return Infinity;
      return computeLogOdds(params.inside, 2 * params.resolution, 2 * params.half + 1);
    case "hybrid": {
      const usedOracles = [];
      if (BigInt(params.share) > 0n) usedOracles.push(params.piecewise);
      if (BigInt(params.share) < TWO_TO_64) usedOracles.push(params.duchi);
      const isConsistent = [params.piecewise, params.duchi].every((oracle) => oracle.resolution === params.resolution);
      if (!isConsistent || params.sign !== params.piecewise.largest + 1) return Infinity;
      return Math.max(...usedOracles.map((oracle) => lossOf(oracle.mechanism, oracle)));
    }
    case "one-bit": case "piecewise-many": case "hybrid-many":
      return params.each.resolution === params.resolution ? params.sampled * lossOf(params.each.mechanism, params.each) : Infinity;
    case "unrelated": {
      const theta = BigInt(params.theta), missWeight = Number(TWO_TO_64 - theta);
      const leastWeight = /** @type {AnswerLaw[]} */ (params.laws).reduce((product, { weights }) => {
        return product * Math.min(...weights) / weights.reduce((sum, weight) => sum + weight, 0);
      }, 1);
      return theta === 0n || Math.max(...params.sizes) === 1 ? 0 : Math.log1p(Number(theta) / (missWeight * leastWeight));
    }
    case "related": return params.sizes.length > 1 ? Infinity : computeLogOdds(params.theta);
  }
  return Infinity;
}

/**
 * Describe how each part of a person's message hides the answers: one part per question of a plan,
 * one per group of a questionnaire.
 * @param {Collection} collection
 * @param {number} [question]
 * @returns {PartProtection[]}
 */
export function describeProtection(collection, question = 0) {
  const body = collection.document;
  if (!collection.isSheet) {
    const { mechanism, parameters, candidate } = body.questions[question], chances = findChances(mechanism, parameters);
    /** @type {PartProtection["sent"]} */
    const sent = candidate && chances.sent !== "noise" ? "verdict" : chances.sent;
    return [{ names: collection.asked(question), mechanism, epsilon: lossOf(mechanism, parameters), ...chances, sent }];
  }
  return body.channels.map((/** @type {JsonObject} */ channel, /** @type {number} */ k) => {
    const names = /** @type {string[]} */ (body.groups[k].questions);
    const sizes = names.map((name) => collection.choices(name)?.length ?? 1);
    const isPersonal = channel.model === "unrelated" && body.personal === "own";
    const epsilon = isPersonal ? Infinity : lossOf(channel.model, { ...channel, sizes });
    const truthChance = toProbability(channel.theta);
    const otherChance = channel.model === "related" && names.length === 1 ? 1 - truthChance : null;
    return { names, mechanism: channel.model, epsilon, sent: "answers", truth: truthChance, other: otherChance };
  });
}

/** @param {string} threshold */
const toProbability = (threshold) => Number(BigInt(threshold)) / 2 ** 64;

/**
 * @param {string} mechanism
 * @param {JsonObject} params
 * @returns {Pick<PartProtection, "sent" | "truth" | "other">}
 */
function findChances(mechanism, params) {
  if (!params.p) return { sent: "noise", truth: null, other: null };
  const truthChance = toProbability(params.p), otherCells = params.size - 1;
  switch (mechanism) {
    case "de": return { sent: "answers", truth: truthChance, other: (1 - truthChance) / otherCells };
    case "ss": return { sent: "set", truth: truthChance, other: (params.subset - truthChance) / otherCells };
    case "hr": return { sent: "set", truth: truthChance, other: 0.5 };
    case "olh": {
      const quotient = Math.floor(params.prime / params.hashes), remainder = params.prime % params.hashes; // for the probability that two hashes are equal
      const collision = (remainder * (quotient + 1) ** 2 + (params.hashes - remainder) * quotient ** 2) / params.prime ** 2;
      return { sent: "set", truth: truthChance, other: collision * truthChance + (1 - collision) * (1 - truthChance) / (params.hashes - 1) };
    }
  }
  return { sent: "set", truth: truthChance, other: toProbability(params.q) };
}

/**
 * Compute the largest probability of a statement after the message, for somebody to whom its
 * probability was `prior` before. At epsilon 1, one tenth becomes 0.232.
 * @param {number} prior
 * @param {number} epsilon Of the whole message: `collection.epsilon`.
 */
export function posteriorOf(prior, epsilon) {
  return epsilon === Infinity ? 1 : 1 / (1 + Math.exp(-epsilon) * (1 - prior) / prior);
}

/**
 * Express a probability as a number of people, rounded towards less protection.
 * @param {number} probability
 * @param {number} [people]
 */
export function countPeople(probability, people = 100) {
  return Math.min(people, Math.ceil(probability * people - 1e-9));
}
