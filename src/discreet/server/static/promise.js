// @ts-check
/**
 * What a document promises, in numbers: worked out from the probabilities with which draw.js draws.
 *
 * @module promise
 */

/** @import { Collection } from "./draw.js" */
/** @import { Fact, Law, Plain } from "./types" */

const ONE = 1n << 64n; // probabilities are integers over 2^64

/**
 * The largest loss of one message: ln of its worst likelihood ratio. Infinite where a message proves
 * something, and where parameters do not fit together.
 * @param {string} name Of the mechanism, as in a document.
 * @param {Plain} the Its parameters, as in a document; of a response model also `sizes`.
 * @returns {number}
 */
export function lossOf(name, the) {
  /** @type {(one: bigint, other: bigint) => number} */
  const ratio = (one, other) => {
    if (one <= 0n || other <= 0n) return Infinity;
    const [high, low] = one < other ? [other, one] : [one, other];
    return Math.log1p(Number(high - low) / Number(low)); // exact also where it is tiny
  };
  /** @type {(p: string, one?: number, other?: number) => number} */
  const odds = (p, one = 1, other = 1) => ratio(BigInt(p) * BigInt(one), (ONE - BigInt(p)) * BigInt(other));
  /** @type {(steps: number, scale: string, places: number) => number} */
  const noise = (steps, scale, places) => (Number(scale) > 0 ? steps * 2 ** places / Number(scale) : Infinity);
  switch (name) {
    case "de": return odds(the.p, the.size - 1);
    case "ss": return odds(the.p, the.size - the.subset, the.subset);
    case "sue": case "oue": case "the": {
      const p = BigInt(the.p), q = BigInt(the.q);
      return q < ONE ? ratio(p * (ONE - q), q * (ONE - p)) : Infinity;
    }
    case "she": return noise(2 * the.unit, the.scale, 16);
    case "hr": return the.order > the.size && Math.log2(the.order) % 1 === 0 ? odds(the.p) : Infinity;
    case "olh": return odds(the.p, the.hashes - 1);
    case "laplace": return noise(2 * the.resolution * the.active, the.scale_2_32, 32);
    case "duchi": {
      const reach = BigInt(the.resolution) * BigInt(the.slope);
      return ratio(ONE / 2n + reach, ONE / 2n - reach);
    }
    case "duchi-many": return the.signs === (the.size | 1) ? odds(the.agree) : Infinity;
    case "piecewise":
      if (the.largest !== the.resolution + the.half) return Infinity;
      return odds(the.inside, 2 * the.resolution, 2 * the.half + 1);
    case "hybrid": {
      const parts = [];
      if (BigInt(the.share) > 0n) parts.push(the.piecewise);
      if (BigInt(the.share) < ONE) parts.push(the.duchi);
      const fits = [the.piecewise, the.duchi].every((one) => one.resolution === the.resolution);
      if (!fits || the.sign !== the.piecewise.largest + 1) return Infinity;
      return Math.max(...parts.map((one) => lossOf(one.mechanism, one)));
    }
    case "one-bit": case "piecewise-many": case "hybrid-many":
      return the.each.resolution === the.resolution ? the.sampled * lossOf(the.each.mechanism, the.each) : Infinity;
    case "unrelated": {
      const theta = BigInt(the.theta), rest = Number(ONE - theta);
      const least = /** @type {Law[]} */ (the.laws).reduce((product, { weights }) => {
        return product * Math.min(...weights) / weights.reduce((sum, one) => sum + one, 0);
      }, 1);
      return theta === 0n || Math.max(...the.sizes) === 1 ? 0 : Math.log1p(Number(theta) / (rest * least));
    }
    case "related": return the.sizes.length > 1 ? Infinity : odds(the.theta);
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
    return [{ names: collection.asked(question), mechanism, epsilon: lossOf(mechanism, parameters), ...chances(mechanism, parameters) }];
  }
  return body.channels.map((/** @type {Plain} */ channel, /** @type {number} */ k) => {
    const names = /** @type {string[]} */ (body.groups[k].questions);
    const sizes = names.map((name) => collection.choices(name)?.length ?? 1);
    const own = channel.model === "unrelated" && body.personal === "own";
    const epsilon = own ? Infinity : lossOf(channel.model, { ...channel, sizes });
    const truth = part(channel.theta);
    const other = channel.model === "related" && names.length === 1 ? 1 - truth : null;
    return { names, mechanism: channel.model, epsilon, sent: "answers", truth, other };
  });
}

/** @param {string} threshold */
const part = (threshold) => Number(BigInt(threshold)) / 2 ** 64;

/**
 * @param {string} mechanism
 * @param {Plain} the
 * @returns {Pick<Fact, "sent" | "truth" | "other">}
 */
function chances(mechanism, the) {
  if (!the.p) return { sent: "noise", truth: null, other: null };
  const truth = part(the.p), others = the.size - 1;
  switch (mechanism) {
    case "de": return { sent: "answers", truth, other: (1 - truth) / others };
    case "ss": return { sent: "set", truth, other: (the.subset - truth) / others };
    case "hr": return { sent: "set", truth, other: 0.5 };
    case "olh": {
      const few = Math.floor(the.prime / the.hashes), more = the.prime % the.hashes; // how often hashes meet
      const same = (more * (few + 1) ** 2 + (the.hashes - more) * few ** 2) / the.prime ** 2;
      return { sent: "set", truth, other: same * truth + (1 - same) * (1 - truth) / (the.hashes - 1) };
    }
  }
  return { sent: "set", truth, other: part(the.q) };
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
