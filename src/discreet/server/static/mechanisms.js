// @ts-check
/**
 * What leaves a device for one true input: the twin of `discreet/mechanisms`, for one respondent.
 *
 * @module mechanisms
 */

import { placesOf } from "./random.js";

/** @import { Source } from "./random.js" */
/** @import { Law, Plain } from "./types" */

const ONE = 1n << 64n; // probabilities are integers over 2^64

/**
 * Frequency oracles: the cell of one respondent becomes the integers that are sent.
 * @type {{ [name: string]: (source: Source, the: Plain, value: number) => number[] }}
 */
export const CELLS = {
  de: (source, the, value) => [orAnother(source, the.size, the.p, value)],
  ss(source, the, value) {
    const member = source.coin(the.p);
    if (the.subset ** 2 < the.size) {
      // the others are numbered without the truth
      const set = source.subset(the.size - 1, the.subset).map((one) => one + Number(one >= value));
      const [place] = source.integers(the.subset, 1);
      if (member) set[place] = value;
      return set.sort((a, b) => a - b); // a set has no order: the place would give the truth away
    }
    for (;;) {
      const keys = source.halves(the.size);
      keys[value] = member ? 0 : 2 ** 32 - 1;
      const edge = [...keys].sort((a, b) => a - b)[the.subset - 1];
      const set = placesOf(keys.map((key) => key <= edge));
      if (set.length === the.subset) return set;
    }
  },
  sue: unary,
  oue: unary,
  the: unary,
  she(source, the, value) {
    const noisy = source.laplace(the.scale, 16n, the.size);
    noisy[value] += BigInt(the.unit);
    return cut(noisy, the.furthest);
  },
  hr(source, the, value) {
    const row = value + 1, [index] = source.integers(the.order, 1);
    const supports = odd(index & row) === 0;
    return [supports === source.coin(the.p) ? index : index ^ (row & -row)];
  },
  olh(source, the, value) {
    const [a, b, c] = [0, 1, 2].map(() => source.integers(the.prime, 1)[0]);
    const hashed = (((a * value + b) % the.prime) * value + c) % the.prime % the.hashes;
    return [a, b, c, orAnother(source, the.hashes, the.p, hashed)];
  },
};

/** @type {(source: Source, size: number, truth: bigint, value: number) => number} */
function orAnother(source, size, truth, value) {
  const offset = source.integers(size - 1, 1)[0] + 1; // never zero: that would be the truth again
  return source.coin(truth) ? value : (value + offset) % size;
}

/** @type {(source: Source, the: Plain, value: number) => number[]} */
function unary(source, the, value) {
  const flags = source.coins(the.q, 8 * Math.ceil(the.size / 8)).slice(0, the.size);
  flags[value] = source.coin(the.p);
  const words = new Array(Math.ceil(the.size / 16)).fill(0);
  flags.forEach((flag, place) => (words[place >> 4] += flag ? 1 << (place & 15) : 0));
  return words;
}

/** @param {number} number Whether an integer below 2^31 has an odd count of ones. */
function odd(number) {
  for (let shift = 16; shift; shift >>= 1) number ^= number >> shift;
  return number & 1;
}

/** @type {(numbers: bigint[], most: number) => number[]} */
function cut(numbers, most) {
  const limit = BigInt(most);
  return numbers.map((one) => Number(one > limit ? limit : one < -limit ? -limit : one));
}

/**
 * Mean oracles: the grid integers of one respondent become the integers that are sent.
 * @type {{ [name: string]: (source: Source, the: Plain, levels: number[]) => number[] }}
 */
export const MEANS = {
  laplace(source, the, levels) {
    const noise = source.laplace(the.scale_2_32, 32n, levels.length);
    return cut(noise.map((one, i) => one + BigInt(levels[i])), the.largest);
  },
  duchi(source, the, levels) {
    const words = source.words(levels.length);
    return levels.map((level, i) => Number(words[i] < ONE / 2n + BigInt(level) * the.slope));
  },
  "duchi-many"(source, the, levels) {
    const drawn = source.integers(2 * the.resolution, levels.length);
    const pattern = source.coins(ONE / 2n, the.signs);
    const most = 2 * placesOf(pattern).length > the.signs;
    const negate = most !== source.coin(the.agree);
    return levels.map((level, i) => {
      const plus = drawn[i] < the.resolution + level, agrees = pattern[i] !== negate;
      return Number(plus === agrees);
    });
  },
  piecewise(source, the, levels) {
    const inside = source.coins(the.inside, levels.length), width = 2 * the.half + 1;
    const near = source.integers(width, levels.length);
    const far = source.integers(2 * the.resolution, levels.length);
    return levels.map((level, i) => {
      const first = level - the.half, other = far[i] - the.largest;
      if (inside[i]) return first + near[i];
      return other >= first ? other + width : other; // skip the window
    });
  },
  hybrid(source, the, levels) {
    const first = source.coins(the.share, levels.length);
    const near = MEANS.piecewise(source, the.piecewise, levels);
    const plus = MEANS.duchi(source, the.duchi, levels);
    return levels.map((_, i) => (first[i] ? near[i] : plus[i] ? the.sign : -the.sign));
  },
  "one-bit": sampled,
  "piecewise-many": sampled,
  "hybrid-many": sampled,
};

/** @type {(source: Source, the: Plain, levels: number[]) => number[]} */
function sampled(source, the, levels) {
  const chosen = source.subset(the.size, the.sampled).sort((a, b) => a - b);
  const said = MEANS[the.each.mechanism](source, the.each, chosen.map((place) => levels[place]));
  return chosen.flatMap((place, i) => [place, said[i]]);
}

/**
 * Numbers in [-1, 1] rounded at random to one of their two neighbours on the grid.
 * @type {(source: Source, resolution: number, numbers: number[]) => number[]}
 */
function onGrid(source, resolution, numbers) {
  const words = source.words(numbers.length);
  return numbers.map((number, i) => {
    const steps = Math.abs(number) * resolution, whole = Math.floor(steps); // exact: a power of two
    const level = whole + Number(words[i] < BigInt(Math.floor((steps - whole) * 2 ** 64)));
    return number < 0 ? 0 - level : level;
  });
}

/**
 * Response models: the answers of one group become those that are sent.
 * @type {{ [name: string]:
 *   (source: Source, the: Plain, truth: number[], personal: number[] | null) => number[] }}
 */
const RESPONSES = {
  unrelated(source, the, truth, personal) {
    const kept = source.coin(the.theta);
    const other = personal ?? drawnFrom(source, the.laws, the.sizes);
    return kept ? truth : other;
  },
  related: (source, the, truth) => (source.coin(the.theta) ? truth : truth.map((one) => 1 - one)),
};

/** @type {(source: Source, laws: Law[], sizes: number[]) => number[]} */
function drawnFrom(source, laws, sizes) {
  const answers = sizes.map(() => 0);
  for (const { places, weights } of laws) {
    let cell = place(source, weights);
    for (const one of [...places].reverse()) { // the last place varies fastest
      answers[one] = cell % sizes[one];
      cell = Math.floor(cell / sizes[one]);
    }
  }
  return answers;
}

/**
 * A place, drawn by whole-number weights.
 * @type {(source: Source, weights: number[]) => number}
 */
export function place(source, weights) {
  let [left] = source.integers(sumOf(weights), 1), found = 0;
  while (left >= weights[found]) left -= weights[found++];
  return found;
}

/** @param {number[]} numbers */
function sumOf(numbers) {
  return numbers.reduce((sum, one) => sum + one, 0);
}

/**
 * What one mechanism gives out; `Collection` calls it, and tests do.
 * @param {string} name As in a document.
 * @param {Plain} parameters As in a document; of a response model with the `sizes` of its group.
 * @param {any} input A cell, the numbers in [-1, 1], or the cells of a group.
 * @param {Source} source
 * @param {number[] | null} [personal]
 * @returns {number[]}
 */
export function perturb(name, parameters, input, source, personal = null) {
  const the = parsed(parameters);
  if (Object.hasOwn(CELLS, name)) return CELLS[name](source, the, input);
  if (Object.hasOwn(RESPONSES, name)) return RESPONSES[name](source, the, input, personal);
  if (!Object.hasOwn(MEANS, name)) throw new RangeError(`no mechanism ${name} here`);
  return MEANS[name](source, the, onGrid(source, the.resolution, input));
}

const WIDE = ["p", "q", "theta", "inside", "share", "agree", "slope", "scale", "scale_2_32"];

/**
 * Parameters with big integers where the document has decimal strings.
 * @param {Plain} parameters
 * @returns {Plain}
 */
function parsed(parameters) {
  /** @type {Plain} */
  const the = {};
  for (const [name, value] of Object.entries(parameters)) {
    if (typeof value === "string" && WIDE.includes(name)) the[name] = BigInt(value);
    else if (name === "largest") the[name] = Number(value);
    else the[name] = ["each", "piecewise", "duchi"].includes(name) ? parsed(value) : value;
  }
  return the;
}
