// @ts-check
/**
 * The source of every random bit, and the exact draws made from its bytes: the twin of
 * `discreet/randomness`. A draw is a function of the bytes, in the order that docs/formats.md names.
 *
 * @module random
 */

const TWO_TO_64 = 1n << 64n; // probabilities are integers over 2^64
const COINS_PER_BATCH = 1 << 18; // coins whose bytes are read at once
const DRAWS_PER_BATCH = 1 << 15; // geometric draws whose words are read at once
const MAX_BYTES_PER_CALL = 65536; // of getRandomValues (Web Cryptography API)

/** Uniform bytes, and the exact draws made from them. A subclass provides the bytes. */
export class Source {
  /** Whether the bytes can be foreseen; reports then say so and promise nothing. */
  simulated = true;

  /**
   * @param {number} count
   * @returns {Uint8Array}
   */
  bytes(count) {
    throw new TypeError(`this source gives no bytes, not even ${count}`);
  }

  /** @param {number} count */
  #readView(count) {
    const bytes = this.bytes(count);
    return new DataView(bytes.buffer, bytes.byteOffset, count);
  }

  /** @param {number} count */
  words(count) {
    const view = this.#readView(8 * count);
    return Array.from({ length: count }, (_, i) => view.getBigUint64(8 * i, true));
  }

  /** @param {number} count */
  halves(count) {
    const view = this.#readView(4 * count);
    return Array.from({ length: count }, (_, i) => view.getUint32(4 * i, true));
  }

  /**
   * Integers uniform on 0 .. below - 1 (Lemire 2019), for `below` up to 2^53.
   * @type {(below: number, count: number) => number[]}
   */
  integers(below, count) {
    const bound = BigInt(below);
    /** @type {bigint[]} */
    let candidates;
    /** @type {boolean[]} */
    let refusedFlags;
    if (below <= 2 ** 32) {
      const products = this.halves(count).map((half) => BigInt(half) * bound);
      const threshold = 2n ** 32n % bound;
      candidates = products.map((product) => product >> 32n);
      refusedFlags = products.map((product) => (product & 0xffffffffn) < threshold);
    } else {
      const shift = 64n - BigInt(countBits(bound - 1n));
      candidates = this.words(count).map((word) => word >> shift);
      refusedFlags = candidates.map((value) => value >= bound);
    }
    const values = candidates.map(Number);
    const refusedPlaces = findPlaces(refusedFlags);
    if (refusedPlaces.length) {
      const redrawnValues = this.integers(below, refusedPlaces.length);
      refusedPlaces.forEach((place, k) => (values[place] = redrawnValues[k]));
    }
    return values;
  }

  /**
   * Flags that are true with probability threshold / 2^64.
   * @type {(threshold: bigint, count: number) => boolean[]}
   */
  coins(threshold, count) {
    if (threshold === 0n || threshold === TWO_TO_64) return new Array(count).fill(threshold === TWO_TO_64);
    const firstByte = Number(threshold >> 56n), lowBits = threshold & ((1n << 56n) - 1n);
    /** @type {boolean[]} */
    const flags = [];
    for (let start = 0; start < count; start += COINS_PER_BATCH) {
      const bytes = this.bytes(Math.min(COINS_PER_BATCH, count - start));
      const ties = [];
      for (const byte of bytes) {
        if (byte === firstByte && lowBits) ties.push(flags.length);
        flags.push(byte < firstByte);
      }
      const words = this.words(ties.length);
      ties.forEach((place, k) => (flags[place] = words[k] >> 8n < lowBits));
    }
    return flags;
  }

  /** @param {bigint} threshold */
  coin(threshold) {
    return this.coins(threshold, 1)[0];
  }

  /**
   * `take` different values of 0 .. pool - 1, in the order in which they were drawn.
   * @param {number} pool
   * @param {number} take
   */
  subset(pool, take) {
    /** @type {number[]} */
    const chosenValues = [];
    if (take * take < pool) { // Floyd
      for (let last = pool - take; last < pool; last++) {
        const [value] = this.integers(last + 1, 1);
        chosenValues.push(chosenValues.includes(value) ? last : value);
      }
      return chosenValues;
    }
    const order = Array.from({ length: pool }, (_, i) => i); // Fisher-Yates
    for (let i = 0; i < take; i++) {
      const swapPlace = i + this.integers(pool - i, 1)[0];
      [order[i], order[swapPlace]] = [order[swapPlace], order[i]];
    }
    return order.slice(0, take);
  }

  /**
   * Integers X >= 0 with P(X >= k) = exp(-k / s), s = scale / 2^shift: floor(-s ln U).
   * @type {(scale: bigint, shift: bigint, count: number) => bigint[]}
   */
  geometric(scale, shift, count) {
    /** @type {bigint[]} */
    const values = [];
    for (let start = 0; start < count; start += DRAWS_PER_BATCH) {
      for (let word of this.words(Math.min(DRAWS_PER_BATCH, count - start))) {
        for (let bits = 64; ; bits += 64) {
          const [low, high, fraction] = boundMinusLog(word, bits);
          if (high !== null && low * scale >> fraction + shift === high * scale >> fraction + shift) {
            values.push(low * scale >> fraction + shift);
            break;
          }
          word = word << 64n | this.words(1)[0];
        }
      }
    }
    return values;
  }

  /**
   * Integers x with probability proportional to exp(-|x| / s), s = scale / 2^shift.
   * @type {(scale: bigint, shift: bigint, count: number) => bigint[]}
   */
  laplace(scale, shift, count) {
    const plus = this.geometric(scale, shift, count), minus = this.geometric(scale, shift, count);
    return plus.map((value, i) => value - minus[i]);
  }
}

/** The browser's cryptographic source: for everything that is sent. */
export class SystemSource extends Source {
  simulated = false;

  /**
   * @override
   * @param {number} count
   */
  bytes(count) {
    const bytes = new Uint8Array(count);
    for (let start = 0; start < count; start += MAX_BYTES_PER_CALL) {
      crypto.getRandomValues(bytes.subarray(start, Math.min(start + MAX_BYTES_PER_CALL, count)));
    }
    return bytes;
  }
}

/** Plays recorded bytes in their order, and counts them: for tests. */
export class Tape extends Source {
  /**
   * @param {Uint8Array} script
   * @param {boolean} [simulated]
   */
  constructor(script, simulated = true) {
    super();
    this.script = script;
    this.simulated = simulated;
    this.used = 0;
  }

  /**
   * @override
   * @param {number} count
   */
  bytes(count) {
    if (this.used + count > this.script.length) {
      throw new RangeError("asked for more bytes than the tape has");
    }
    this.used += count;
    return this.script.slice(this.used - count, this.used);
  }
}

/** @param {bigint} number */
function countBits(number) {
  const digits = number.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28;
}

/** @param {boolean[]} flags */
export function findPlaces(flags) {
  return flags.flatMap((flag, place) => (flag ? [place] : []));
}

/**
 * Bounds on -ln U for a real number U whose first bits are `word`, and their binary places; the
 * upper one is null, for infinity, while all bits are zero.
 *
 * A series of n terms is off by at most 2 n units, n < 100 up to 2^9 bits. An entry of the table
 * adds up 128 series and is taken `bits` times: the slack covers it.
 * @type {(word: bigint, bits: number) => [bigint, bigint | null, bigint]}
 */
function boundMinusLog(word, bits) {
  const binaryPlaces = BigInt(2 * bits + 96), slack = BigInt(bits) << 16n;
  const upperEnd = BigInt(bits) * getLogTable(binaryPlaces)[64];
  const upper = word ? upperEnd - computeLog(word, binaryPlaces) : upperEnd; // word 0: its other end is ln 1
  const low = (word ? upper - 2n * computeAtanh(1n, 2n * word + 1n, binaryPlaces) : upper) - slack;
  return [low < 0n ? 0n : low, word ? upper + slack : null, binaryPlaces];
}

/**
 * ln(number), for an integer of at least 1: ln(2^k) + ln((64 + j) / 64) + what is left.
 * @type {(number: bigint, binaryPlaces: bigint) => bigint}
 */
function computeLog(number, binaryPlaces) {
  const k = BigInt(countBits(number) - 1), table = getLogTable(binaryPlaces);
  const j = Number((number << 6n >> k) & 63n);
  const scaledNumber = number << 6n, scaledEntry = BigInt(64 + j) << k; // number / 2^k against (64 + j) / 64
  return k * table[64] + table[j] + 2n * computeAtanh(scaledNumber - scaledEntry, scaledNumber + scaledEntry, binaryPlaces);
}

/**
 * artanh(numerator / denominator) = z + z^3 / 3 + z^5 / 5 + …
 * @type {(numerator: bigint, denominator: bigint, binaryPlaces: bigint) => bigint}
 */
function computeAtanh(numerator, denominator, binaryPlaces) {
  const z = (numerator << binaryPlaces) / denominator, square = z * z >> binaryPlaces;
  let sum = 0n;
  for (let power = z, n = 1n; power; power = power * square >> binaryPlaces, n += 2n) sum += power / n;
  return sum;
}

/** @type {Map<bigint, bigint[]>} */
const LOG_TABLES = new Map();

/**
 * ln((64 + j) / 64) for j = 0 .. 64.
 * @param {bigint} binaryPlaces
 */
function getLogTable(binaryPlaces) {
  let table = LOG_TABLES.get(binaryPlaces);
  if (!table) {
    table = [0n];
    for (let j = 64n; j < 128n; j++) table.push(table[table.length - 1] + 2n * computeAtanh(1n, 2n * j + 1n, binaryPlaces));
    LOG_TABLES.set(binaryPlaces, table);
  }
  return table;
}
