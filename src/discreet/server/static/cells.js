// @ts-check
/**
 * Encodes answers as public cells or numbers: the twin of `discreet/encoding.py`.
 *
 * @module cells
 */

import { countDays, findPartCell, formatUnits, isDate, listPartValues, readBounds } from "./dates.js";
import { findPlaces } from "./random.js";

/** @import { Answer, Choice, Feature, Reason, Rules } from "./types.js" */

/** A refusal, with a reason that a page can put into its own words. */
export class DrawError extends Error {
  /**
   * @param {Reason} reason
   * @param {string} message In English.
   * @param {string | null} [field] The question it is about.
   */
  constructor(reason, message, field = null) {
    super(field === null ? message : `${field}: ${message}`);
    this.name = "DrawError";
    this.reason = reason;
    this.field = field;
  }
}

/** The public cells of one question, and how an answer becomes one of them. */
export class Cells {
  /**
   * @param {Feature} feature
   * @param {Rules} rules
   * @param {number[]} [cutPoints] Cut points of a number.
   */
  constructor(feature, rules, cutPoints = []) {
    const { name, optional } = feature, values = feature.values ?? listPartValues(feature), properSize = values ? values.length : cutPoints.length + 1;
    this.feature = feature;
    this.values = values;
    this.name = name;
    this.rules = rules;
    this.cutPoints = cutPoints;
    this.otherCell = feature.values && rules.unseen === "other" ? properSize : null;
    this.size = properSize + Number(this.otherCell !== null) + Number(optional);
    this.missingCell = optional ? this.size - 1 : null;
    this.cellByText = new Map(values?.map((value, k) => [formatValue(value), k]));
  }

  /** @returns {Choice[]} */
  get choices() {
    const { values } = this, { lower, upper, integer } = readBounds(this.feature);
    const step = Number(integer ?? false), edges = [lower, ...this.cutPoints, Number(upper) + step];
    return Array.from({ length: this.size }, (_, cell) => {
      const base = { answer: { cell }, value: null, between: null };
      if (cell === this.missingCell) return { ...base, kind: "missing", label: "(missing)" };
      if (cell === this.otherCell) return { ...base, kind: "other", label: "(other)" };
      if (values) return { ...base, kind: "value", label: formatValue(values[cell]), value: values[cell] };
      const low = Number(edges[cell]), high = Number(edges[cell + 1]) - step;
      if (isDate(this.feature)) {
        const [lowText, highText] = formatUnits(this.feature, low, high);
        return { ...base, kind: "bin", label: lowText === highText ? lowText : `${lowText} to ${highText}` };
      }
      const label = low === high ? formatShort(low) : `${formatShort(low)} to ${formatShort(high)}`;
      return { ...base, kind: "bin", label, between: [low, high] };
    });
  }

  /**
   * The cell of an answer.
   * @param {Answer} answer
   * @param {boolean} [acceptsLabels] Whether the label of a bin is an answer, too.
   * @returns {number}
   */
  encodeAnswer(answer, acceptsLabels = false) {
    const { name, feature, rules, values } = this;
    if (typeof answer === "object" && answer !== null) {
      const cell = Number(answer.cell);
      if (Number.isInteger(cell) && cell >= 0 && cell < this.size) return cell;
      throw new DrawError("cell", `there are ${this.size} choices, and this is none of them`, name);
    }
    if (values) {
      const cell = this.#findValueCell(answer) ?? (feature.values || isMissing(answer, rules) ? undefined : findPartCell(feature, answer));
      if (cell !== undefined) return cell;
    } else if (acceptsLabels && typeof answer === "string") {
      const cells = findPlaces(this.choices.map((choice) => choice.label === answer));
      if (cells.length === 1) return cells[0];
      if (cells.length) throw new DrawError("ambiguous", "this names several answers; write the number itself", name);
    }
    const number = values ? NaN : parseNumber(feature, rules, answer);
    if (!Number.isNaN(number)) return this.cutPoints.filter((edge) => edge <= number).length;
    if (this.missingCell !== null && (!values || isMissing(answer, rules))) return this.missingCell;
    if (isMissing(answer, rules)) throw makeMissingError(name);
    if (values && !feature.values) throw new DrawError("date", "this is not a date", name);
    if (this.otherCell === null) throw new DrawError("unknown", "this is not one of the public values", name);
    return this.otherCell;
  }

  /** @param {string | number | bigint | boolean | null | undefined} answer */
  #findValueCell(answer) {
    if (answer === null || answer === undefined || Number.isNaN(answer)) return undefined;
    const cell = this.cellByText.get(formatValue(answer));
    if (typeof answer === "boolean") {
      return cell ?? this.cellByText.get(answer ? "True" : "False") ?? this.cellByText.get(answer ? "1" : "0");
    }
    return cell ?? (/^(true|false)$/i.test(String(answer)) ? this.cellByText.get(String(answer).toLowerCase()) : undefined);
  }
}

/** @param {string} name */
export const makeMissingError = (name) => new DrawError("missing", "there is no answer", name);

/** @type {(answer: unknown, rules: Rules) => boolean} */
function isMissing(answer, rules) {
  if (typeof answer === "string") return answer === "" || rules.missing_tokens.includes(answer);
  return answer === null || answer === undefined || Number.isNaN(answer);
}

const NUMBER_PATTERN = /^[\t-\r ]*([-+]?)(?:((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)|(inf(?:inity)?)|nan)[\t-\r ]*$/i;

/**
 * A number inside its public bounds; NaN where it is missing.
 * @type {(feature: Feature, rules: Rules, answer: Answer) => number}
 */
export function parseNumber(feature, rules, answer) {
  const { name, optional } = feature, { lower, upper, integer } = readBounds(feature);
  const low = Number(lower ?? -Infinity), high = Number(upper ?? Infinity);
  let number = NaN;
  if (isDate(feature)) {
    const days = isMissing(answer, rules) ? NaN : countDays(feature, answer);
    if (days === null) throw new DrawError("date", "this is not a date", name);
    number = days;
  } else if (typeof answer === "string" && !isMissing(answer, rules)) {
    const [, sign, digits, infinityName] = NUMBER_PATTERN.exec(answer) ?? [null];
    if (sign === undefined) throw new DrawError("number", "this is not a number", name);
    number = Number(`${sign}${infinityName ? "Infinity" : digits ?? "NaN"}`);
  } else if (["number", "bigint", "boolean"].includes(typeof answer)) {
    number = Number(answer);
  } else if (typeof answer === "object" && answer !== null) {
    throw new DrawError("number", "this is not a number", name);
  }
  if (Number.isNaN(number)) {
    if (!optional) throw makeMissingError(name);
    return NaN;
  }
  if ((number < low || number > high) && rules.outliers === "error") {
    throw new DrawError("outside", `this lies outside ${formatShort(low)} to ${formatShort(high)}`, name);
  }
  if (integer && number !== Math.floor(number)) throw new DrawError("whole", "this is not a whole number", name);
  return Math.min(Math.max(number, low), high);
}

/**
 * The one spelling of a value, as Python's: 1 and "1" are the same, true is "true".
 * @param {string | number | bigint | boolean} value
 */
function formatValue(value) {
  if (typeof value !== "number") return String(value);
  if (Math.abs(value) === Infinity) return value > 0 ? "inf" : "-inf";
  if (Number.isInteger(value)) return String(BigInt(value));
  const [digits, exponent] = value.toExponential().split("e");
  if (Number(exponent) >= -4) return String(value); // a number that is not whole stays below 1e16
  return `${digits}e-${exponent.slice(1).padStart(2, "0")}`;
}

/**
 * A number in at most six digits, as Python's format "g" writes it: ties go to the even digit.
 * @param {number} number
 */
export function formatShort(number) {
  if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
  if (number === 0) return Object.is(number, -0) ? "-0" : "0";
  const exactText = number.toExponential(40), roundedText = exactText.slice(0, exactText.indexOf(".") + 6);
  const isTie = /^50*e/.test(exactText.slice(roundedText.length)) && Number(roundedText.slice(-1)) % 2 === 0;
  const [digits, power] = (isTie ? roundedText + exactText.slice(exactText.indexOf("e")) : number.toExponential(5)).split("e");
  if (Number(power) >= -4 && Number(power) < 6) return String(Number(`${digits}e${power}`));
  return `${digits.replace(/\.?0+$/, "")}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}
