/**
 * The source of every random bit, and the exact draws made from its bytes: the twin of
 * `discreet/randomness`. A draw is a function of the bytes, in the order that docs/formats.md names.
 *
 * @module random
 */
/** Uniform bytes, and the exact draws made from them. A subclass provides the bytes. */
export declare class Source {
    #private;
    /** Whether the bytes can be foreseen; reports then say so and promise nothing. */
    simulated: boolean;
    /**
     * @param {number} count
     * @returns {Uint8Array}
     */
    bytes(count: number): Uint8Array;
    /** @param {number} count */
    words(count: number): bigint[];
    /** @param {number} count */
    halves(count: number): number[];
    /**
     * Integers uniform on 0 .. below - 1 (Lemire 2019), for `below` up to 2^53.
     * @type {(below: number, count: number) => number[]}
     */
    integers(below: number, count: number): number[];
    /**
     * Flags that are true with probability threshold / 2^64.
     * @type {(threshold: bigint, count: number) => boolean[]}
     */
    coins(threshold: bigint, count: number): boolean[];
    /** @param {bigint} threshold */
    coin(threshold: bigint): boolean;
    /**
     * `take` different values of 0 .. pool - 1, in the order in which they were drawn.
     * @param {number} pool
     * @param {number} take
     */
    subset(pool: number, take: number): number[];
    /**
     * Integers X >= 0 with P(X >= k) = exp(-k / s), s = scale / 2^shift: floor(-s ln U).
     * @type {(scale: bigint, shift: bigint, count: number) => bigint[]}
     */
    geometric(scale: bigint, shift: bigint, count: number): bigint[];
    /**
     * Integers x with probability proportional to exp(-|x| / s), s = scale / 2^shift.
     * @type {(scale: bigint, shift: bigint, count: number) => bigint[]}
     */
    laplace(scale: bigint, shift: bigint, count: number): bigint[];
}
/** The browser's cryptographic source: for everything that is sent. */
export declare class SystemSource extends Source {
    simulated: boolean;
    /**
     * @override
     * @param {number} count
     */
    bytes(count: number): Uint8Array<ArrayBuffer>;
}
/** Plays recorded bytes in their order, and counts them: for tests. */
export declare class Tape extends Source {
    script: Uint8Array<ArrayBufferLike>;
    used: number;
    /**
     * @param {Uint8Array} script
     * @param {boolean} [simulated]
     */
    constructor(script: Uint8Array, simulated?: boolean);
    /**
     * @override
     * @param {number} count
     */
    bytes(count: number): Uint8Array<ArrayBuffer>;
}
/** @param {boolean[]} flags */
export declare function findPlaces(flags: boolean[]): number[];
