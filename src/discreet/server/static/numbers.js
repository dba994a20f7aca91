// @ts-check
/**
 * Numbers as people write them: with the digits and separators of their country, or those that
 * their phone offers. Whether "3,500" means 3500 or 3.5 is not guessed: where both would be
 * answers, the person is asked.
 *
 * @module numbers
 */

/**
 * Where `clips`, a number beyond the bounds is an answer, too: the bound itself.
 * @typedef {{ lower?: number | null, upper?: number | null, integer?: boolean, clips?: boolean }} Bounds
 * @typedef {{ text: string } | { question: [string, string] }} Reading
 */

/** Zeros of the decimal digits that keyboards offer; nine follow each (Unicode, category Nd). */
const DIGIT_ZEROS = [0x0660, 0x06f0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0e50, 0x1040, 0x17e0, 0xff10];
const PLAIN_NUMBER = /^[-+]?\d*(?:\.\d*)?(?:e[-+]?\d+)?$/i;
/** A point or comma with three digits behind it: the end of a fraction, or of thousands. */
const AMBIGUOUS_SEPARATOR = /^([-+]?)([1-9]\d{0,2})[.,](\d{3})$/;
/** Spaces, apostrophes and the Arabic sign separate thousands and nothing else. */
const SPACED_THOUSANDS = /^[-+]?[1-9]\d{0,2}(?:(?: \d{3})+|(?:'\d{3})+)(?:[.,]\d+)?$/;
/** Several separators, or thousands and a fraction; in India two digits each before the last three. */
const COMMA_THOUSANDS = /^[-+]?[1-9](?:\d{0,2}(?:(?:,\d{3}){2,}|(?:,\d{3})+\.\d+)|\d?(?:,\d{2})+,\d{3}(?:\.\d+)?)$/;
const POINT_THOUSANDS = /^[-+]?[1-9]\d{0,2}(?:(?:\.\d{3}){2,}|(?:\.\d{3})+,\d+)$/;

/** @param {string} text Digits, signs and separators as ASCII has them. */
function toAscii(text) {
  const digits = text.trim().replace(/\p{Nd}/gu, (digit) => {
    const codePoint = Number(digit.codePointAt(0)), zeroPoint = DIGIT_ZEROS.find((digitZero) => codePoint >= digitZero && codePoint < digitZero + 10);
    return zeroPoint === undefined ? digit : String(codePoint - zeroPoint);
  });
  return digits.replace(/[\u200e\u200f\u061c]/g, "").replace(/[\u2212\u2013\uff0d]/g, "-").replace(/\uff0b/g, "+")
    .replace(/\uff0e/g, ".").replace(/[\uff0c\u060c]/g, ",").replace(/[\u2019\u02bc\u066c\uff07]/g, "'")
    .replace(/[\u00a0\u2007\u2009\u202f]/g, " ").replace(/^([-+]) +/, "$1");
}

/**
 * Read the number that a person wrote into the spelling of `draw.js`, or return both readings, for a
 * question. What is not a number stays as it is, and is refused there.
 * @param {string} writtenText
 * @param {Bounds} bounds
 * @returns {Reading}
 */
export function readNumber(writtenText, bounds) {
  const asciiText = toAscii(writtenText);
  const [, sign, leadingDigits, trailingDigits] = AMBIGUOUS_SEPARATOR.exec(asciiText) ?? [null, "", "", ""];
  if (leadingDigits) return chooseReading(`${sign}${leadingDigits}${trailingDigits}`, `${sign}${leadingDigits}.${trailingDigits}`, bounds);
  const decimalText = asciiText.replace(/\u066b/, "."); // the Arabic sign before a fraction means nothing else
  if (PLAIN_NUMBER.test(decimalText)) return { text: decimalText };
  if (/^[-+]?\d*,\d*$/.test(asciiText)) return { text: asciiText.replace(",", ".") };
  if (SPACED_THOUSANDS.test(decimalText)) return { text: decimalText.replace(/[' ]/g, "").replace(",", ".") };
  if (COMMA_THOUSANDS.test(asciiText)) return { text: asciiText.replace(/,/g, "") };
  if (POINT_THOUSANDS.test(asciiText)) return { text: asciiText.replace(/\./g, "").replace(",", ".") };
  return { text: asciiText };
}

/**
 * Choose between thousands and a fraction the reading that can be an answer; both where either can.
 * @type {(thousands: string, fraction: string, bounds: Bounds) => Reading}
 */
function chooseReading(thousands, fraction, { lower, upper, integer, clips }) {
  const low = lower ?? -Infinity, high = upper ?? Infinity, numbers = [thousands, fraction].map(Number);
  if (integer && !Number.isInteger(numbers[1])) return { text: thousands };
  // on one side of the bounds both are refused, or clipped, alike
  if (numbers.every((value) => value > high) || numbers.every((value) => value < low)) return { text: thousands };
  const fittingTexts = [thousands, fraction].filter((_, k) => clips || (numbers[k] >= low && numbers[k] <= high));
  if (fittingTexts.length === 1) return { text: fittingTexts[0] };
  return { question: [thousands, spellFraction(fraction)] };
}

/** Spell a fraction so that it is read as one: without zeros at its end, or with four digits. @param {string} text */
function spellFraction(text) {
  const shortenedText = text.replace(/\.?0+$/, "");
  return AMBIGUOUS_SEPARATOR.test(shortenedText) ? `${shortenedText}0` : shortenedText;
}
