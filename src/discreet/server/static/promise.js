// @ts-check
/**
 * What a document promises, in numbers: worked out from the probabilities with which draw.js draws.
 *
 * @module promise
 */

/** @import { Collection } from "./draw.js" */
/** @import { Fact, Law, Plain } from "./types.js" */

const TWO_TO_64 = 1n << 64n; // probabilities are integers over 2^64

/**
 * The largest loss of one message: ln of its worst likelihood ratio. Infinite where a message proves
 * something, and where parameters do not fit together.
 * @param {string} name Of the mechanism, as in a document.
 * @param {Plain} params Its parameters, as in a document; of a response model also `sizes`.
 * @returns {number}
 */
export function lossOf(name, params) {
  /** @type {(a: bigint, b: bigint) => number} */
  const logRatio = (a, b) => {
    if (a <= 0n || b <= 0n) return Infinity;
    const [high, low] = a < b ? [b, a] : [a, b];
    return Math.log1p(Number(high - low) / Number(low)); // exact also where it is tiny
  };
  /** @type {(p: string, hitSides?: number, missSides?: number) => number} */
  const logOdds = (p, hitSides = 1, missSides = 1) => logRatio(BigInt(p) * BigInt(hitSides), (TWO_TO_64 - BigInt(p)) * BigInt(missSides));
  /** @type {(steps: number, scale: string, places: number) => number} */
  const noiseLoss = (steps, scale, places) => (Number(scale) > 0 ? steps * 2 ** places / Number(scale) : Infinity);
  switch (name) {
    case "de": return logOdds(params.p, params.size - 1);
    case "ss": return logOdds(params.p, params.size - params.subset, params.subset);
    case "sue": case "oue": case "the": {
      const p = BigInt(params.p), q = BigInt(params.q);
      return q < TWO_TO_64 ? logRatio(p * (TWO_TO_64 - q), q * (TWO_TO_64 - p)) : Infinity;
    }
    case "she": return noiseLoss(2 * params.unit, params.scale, 16);
    case "hr": return params.order > params.size && Math.log2(params.order) % 1 === 0 ? logOdds(params.p) : Infinity;
    case "olh": return logOdds(params.p, params.hashes - 1);
    case "laplace": return noiseLoss(2 * params.resolution * params.active, params.scale_2_32, 32);
    case "duchi": {
      const reach = BigInt(params.resolution) * BigInt(params.slope);
      return logRatio(TWO_TO_64 / 2n + reach, TWO_TO_64 / 2n - reach);
    }
    case "duchi-many": return params.signs === (params.size | 1) ? logOdds(params.agree) : Infinity;
    case "piecewise":
      if (params.largest !== params.resolution + params.half) return Infinity;
      return logOdds(params.inside, 2 * params.resolution, 2 * params.half + 1);
    case "hybrid": {
      const used = [];
      if (BigInt(params.share) > 0n) used.push(params.piecewise);
      if (BigInt(params.share) < TWO_TO_64) used.push(params.duchi);
      const fits = [params.piecewise, params.duchi].every((oracle) => oracle.resolution === params.resolution);
      if (!fits || params.sign !== params.piecewise.largest + 1) return Infinity;
      return Math.max(...used.map((oracle) => lossOf(oracle.mechanism, oracle)));
    }
    case "one-bit": case "piecewise-many": case "hybrid-many":
      return params.each.resolution === params.resolution ? params.sampled * lossOf(params.each.mechanism, params.each) : Infinity;
    case "unrelated": {
      const theta = BigInt(params.theta), missWeight = Number(TWO_TO_64 - theta);
      const leastWeight = /** @type {Law[]} */ (params.laws).reduce((product, { weights }) => {
        return product * Math.min(...weights) / weights.reduce((sum, weight) => sum + weight, 0);
      }, 1);
      return theta === 0n || Math.max(...params.sizes) === 1 ? 0 : Math.log1p(Number(theta) / (missWeight * leastWeight));
    }
    case "related": return params.sizes.length > 1 ? Infinity : logOdds(params.theta);
  }
  return Infinity;
}

/**
 * How each part of a person's message hides what they answered: one part for a question of a plan,
 * one for each group of a questionnaire.
 * @param {Collection} collection
 * @param {number} [question]
 * @returns {Fact[]}
 */
export function factsOf(collection, question = 0) {
  const body = collection.document;
  if (collection.kind === "plan") {
    const { mechanism, parameters } = body.questions[question];
    return [{ names: collection.asked(question), mechanism, epsilon: lossOf(mechanism, parameters), ...findChances(mechanism, parameters) }];
  }
  return body.channels.map((/** @type {Plain} */ channel, /** @type {number} */ k) => {
    const names = /** @type {string[]} */ (body.groups[k].questions);
    const sizes = names.map((name) => collection.choices(name)?.length ?? 1);
    const isOwn = channel.model === "unrelated" && body.personal === "own";
    const epsilon = isOwn ? Infinity : lossOf(channel.model, { ...channel, sizes });
    const truth = toProbability(channel.theta);
    const other = channel.model === "related" && names.length === 1 ? 1 - truth : null;
    return { names, mechanism: channel.model, epsilon, sent: "answers", truth, other };
  });
}

/** @param {string} threshold */
const toProbability = (threshold) => Number(BigInt(threshold)) / 2 ** 64;

/**
 * @param {string} mechanism
 * @param {Plain} params
 * @returns {Pick<Fact, "sent" | "truth" | "other">}
 */
function findChances(mechanism, params) {
  if (!params.p) return { sent: "noise", truth: null, other: null };
  const truth = toProbability(params.p), otherCells = params.size - 1;
  switch (mechanism) {
    case "de": return { sent: "answers", truth, other: (1 - truth) / otherCells };
    case "ss": return { sent: "set", truth, other: (params.subset - truth) / otherCells };
    case "hr": return { sent: "set", truth, other: 0.5 };
    case "olh": {
      const quotient = Math.floor(params.prime / params.hashes), remainder = params.prime % params.hashes; // how often hashes meet
      const collision = (remainder * (quotient + 1) ** 2 + (params.hashes - remainder) * quotient ** 2) / params.prime ** 2;
      return { sent: "set", truth, other: collision * truth + (1 - collision) * (1 - truth) / (params.hashes - 1) };
    }
  }
  return { sent: "set", truth, other: toProbability(params.q) };
}

/**
 * How likely somebody can think a statement after the message who thought it as likely as `prior`
 * before, at most. At epsilon 1, one tenth becomes 0.232.
 * @param {number} prior
 * @param {number} epsilon Of the whole message: `collection.epsilon`.
 */
export function posteriorOf(prior, epsilon) {
  return epsilon === Infinity ? 1 : 1 / (1 + Math.exp(-epsilon) * (1 - prior) / prior);
}

/**
 * A probability as a number of people, rounded towards less protection.
 * @param {number} probability
 * @param {number} [people]
 */
export function outOf(probability, people = 100) {
  return Math.min(people, Math.ceil(probability * people - 1e-9));
}
