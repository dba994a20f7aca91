// @ts-check
/**
 * Randomizes one respondent's true input: the twin of `discreet/mechanisms`.
 *
 * @module mechanisms
 */

import { findPlaces } from "./random.js";

/** @import { Source } from "./random.js" */
/** @import { AnswerLaw, JsonObject } from "./types.js" */

const TWO_TO_64 = 1n << 64n; // probabilities are integers over 2^64

/**
 * Frequency oracles: the cell of one respondent becomes the integers that are sent.
 * @type {{ [name: string]: (source: Source, params: JsonObject, value: number) => number[] }}
 */
export const CELL_ORACLES = {
  de: (source, params, value) => [perturbCell(source, params.size, params.p, value)],
  ss(source, params, value) {
    const hasTruth = source.coin(params.p);
    if (params.subset ** 2 < params.size) {
      // the others are numbered without the truth
      const set = source.subset(params.size - 1, params.subset).map((cell) => cell + Number(cell >= value));
      const [place] = source.integers(params.subset, 1);
      if (hasTruth) set[place] = value;
      return set.sort((a, b) => a - b); // a set has no order: the place would give the truth away
    }
    for (;;) {
      const keys = source.halves(params.size);
      keys[value] = hasTruth ? 0 : 2 ** 32 - 1;
      const limit = [...keys].sort((a, b) => a - b)[params.subset - 1];
      const set = findPlaces(keys.map((key) => key <= limit));
      if (set.length === params.subset) return set;
    }
  },
  sue: perturbBits,
  oue: perturbBits,
  the: perturbBits,
  she(source, params, value) {
    const noisyCounts = source.laplace(params.scale, 16n, params.size);
    noisyCounts[value] += BigInt(params.unit);
    return clampNumbers(noisyCounts, params.furthest);
  },
  hr(source, params, value) {
    const row = value + 1, [index] = source.integers(params.order, 1);
    const supports = hasOddParity(index & row) === 0;
    return [supports === source.coin(params.p) ? index : index ^ (row & -row)];
  },
  olh(source, params, value) {
    const [a, b, c] = [0, 1, 2].map(() => source.integers(params.prime, 1)[0]);
    const hashedCell = (((a * value + b) % params.prime) * value + c) % params.prime % params.hashes;
    return [a, b, c, perturbCell(source, params.hashes, params.p, hashedCell)];
  },
};

/** @type {(source: Source, size: number, truthThreshold: bigint, value: number) => number} */
function perturbCell(source, size, truthThreshold, value) {
  const offset = source.integers(size - 1, 1)[0] + 1; // never zero: that would be the truth again
  return source.coin(truthThreshold) ? value : (value + offset) % size;
}

/** @type {(source: Source, params: JsonObject, value: number) => number[]} */
function perturbBits(source, params, value) {
  const flags = source.coins(params.q, 8 * Math.ceil(params.size / 8)).slice(0, params.size);
  flags[value] = source.coin(params.p);
  const packedBits = new Array(Math.ceil(params.size / 16)).fill(0);
  flags.forEach((flag, place) => (packedBits[place >> 4] += flag ? 1 << (place & 15) : 0));
  return packedBits;
}

/** Whether an integer below 2^31 has an odd count of ones. @param {number} number */
function hasOddParity(number) {
  for (let shift = 16; shift; shift >>= 1) number ^= number >> shift;
  return number & 1;
}

/** @type {(numbers: bigint[], bound: number) => number[]} */
function clampNumbers(numbers, bound) {
  const limit = BigInt(bound);
  return numbers.map((number) => Number(number > limit ? limit : number < -limit ? -limit : number));
}

/**
 * Mean oracles: the grid integers of one respondent become the integers that are sent.
 * @type {{ [name: string]: (source: Source, params: JsonObject, levels: number[]) => number[] }}
 */
export const MEAN_ORACLES = {
  laplace(source, params, levels) {
    const noise = source.laplace(params.scale_2_32, 32n, levels.length);
    return clampNumbers(noise.map((value, i) => value + BigInt(levels[i])), params.largest);
  },
  duchi(source, params, levels) {
    const words = source.words(levels.length);
    return levels.map((level, i) => Number(words[i] < TWO_TO_64 / 2n + BigInt(level) * params.slope));
  },
  "duchi-many"(source, params, levels) {
    const draws = source.integers(2 * params.resolution, levels.length);
    const pattern = source.coins(TWO_TO_64 / 2n, params.signs);
    const majority = 2 * findPlaces(pattern).length > params.signs;
    const negate = majority !== source.coin(params.agree);
    return levels.map((level, i) => {
      const plus = draws[i] < params.resolution + level, agrees = pattern[i] !== negate;
      return Number(plus === agrees);
    });
  },
  piecewise(source, params, levels) {
    const inside = source.coins(params.inside, levels.length), width = 2 * params.half + 1;
    const insideOffsets = source.integers(width, levels.length);
    const outsideLevels = source.integers(2 * params.resolution, levels.length);
    return levels.map((level, i) => {
      const windowStart = level - params.half, outsideLevel = outsideLevels[i] - params.largest;
      if (inside[i]) return windowStart + insideOffsets[i];
      return outsideLevel >= windowStart ? outsideLevel + width : outsideLevel; // skip the window
    });
  },
  hybrid(source, params, levels) {
    const usesPiecewise = source.coins(params.share, levels.length);
    const piecewise = MEAN_ORACLES.piecewise(source, params.piecewise, levels);
    const duchiSigns = MEAN_ORACLES.duchi(source, params.duchi, levels);
    return levels.map((_, i) => (usesPiecewise[i] ? piecewise[i] : duchiSigns[i] ? params.sign : -params.sign));
  },
  "one-bit": perturbSampled,
  "piecewise-many": perturbSampled,
  "hybrid-many": perturbSampled,
};

/** @type {(source: Source, params: JsonObject, levels: number[]) => number[]} */
function perturbSampled(source, params, levels) {
  const chosenPlaces = source.subset(params.size, params.sampled).sort((a, b) => a - b);
  const outputs = MEAN_ORACLES[params.each.mechanism](source, params.each, chosenPlaces.map((place) => levels[place]));
  return chosenPlaces.flatMap((place, i) => [place, outputs[i]]);
}

/**
 * Numbers in [-1, 1] rounded at random to one of their two neighbours on the grid.
 * @type {(source: Source, resolution: number, numbers: number[]) => number[]}
 */
function roundToGrid(source, resolution, numbers) {
  const words = source.words(numbers.length);
  return numbers.map((number, i) => {
    const steps = Math.abs(number) * resolution, wholeSteps = Math.floor(steps); // exact: a power of two
    const level = wholeSteps + Number(words[i] < BigInt(Math.floor((steps - wholeSteps) * 2 ** 64)));
    return number < 0 ? 0 - level : level;
  });
}

/**
 * Response models: the answers of one group become those that are sent.
 * @type {{ [name: string]:
 *   (source: Source, params: JsonObject, truth: number[], personal: number[] | null) => number[] }}
 */
const RESPONSE_MODELS = {
  unrelated(source, params, truth, personal) {
    const keepsTruth = source.coin(params.theta);
    const otherAnswers = personal ?? drawAnswers(source, params.laws, params.sizes);
    return keepsTruth ? truth : otherAnswers;
  },
  related: (source, params, truth) => (source.coin(params.theta) ? truth : truth.map((cell) => 1 - cell)),
};

/** @type {(source: Source, laws: AnswerLaw[], sizes: number[]) => number[]} */
function drawAnswers(source, laws, sizes) {
  const answers = sizes.map(() => 0);
  for (const { places, weights } of laws) {
    let cell = drawPlace(source, weights);
    for (const place of [...places].reverse()) { // the last place varies fastest
      answers[place] = cell % sizes[place];
      cell = Math.floor(cell / sizes[place]);
    }
  }
  return answers;
}

/**
 * A place, drawn by whole-number weights.
 * @type {(source: Source, weights: number[]) => number}
 */
export function drawPlace(source, weights) {
  let [remaining] = source.integers(sumNumbers(weights), 1), place = 0;
  while (remaining >= weights[place]) remaining -= weights[place++];
  return place;
}

/** @param {number[]} numbers */
function sumNumbers(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0);
}

/**
 * Randomize one input by a mechanism; `Collection` and tests call it.
 * @param {string} name As in a document.
 * @param {JsonObject} parameters As in a document; of a response model with the `sizes` of its group.
 * @param {any} input A cell, the numbers in [-1, 1], or the cells of a group.
 * @param {Source} source
 * @param {number[] | null} [personal]
 * @returns {number[]}
 */
export function perturb(name, parameters, input, source, personal = null) {
  const params = parseParameters(parameters);
  if (Object.hasOwn(CELL_ORACLES, name)) return CELL_ORACLES[name](source, params, input);
  if (Object.hasOwn(RESPONSE_MODELS, name)) return RESPONSE_MODELS[name](source, params, input, personal);
  if (!Object.hasOwn(MEAN_ORACLES, name)) throw new RangeError(`no mechanism ${name} here`);
  return MEAN_ORACLES[name](source, params, roundToGrid(source, params.resolution, input));
}

const BIGINT_PARAMETERS = ["p", "q", "theta", "inside", "share", "agree", "slope", "scale", "scale_2_32"];

/**
 * Parameters with big integers where the document has decimal strings.
 * @param {JsonObject} parameters
 * @returns {JsonObject}
 */
function parseParameters(parameters) {
  /** @type {JsonObject} */
  const result = {};
  for (const [name, value] of Object.entries(parameters)) {
    if (typeof value === "string" && BIGINT_PARAMETERS.includes(name)) result[name] = BigInt(value);
    else if (name === "largest") result[name] = Number(value);
    else result[name] = ["each", "piecewise", "duchi"].includes(name) ? parseParameters(value) : value;
  }
  return result;
}
