// @ts-check
/**
 * Dates as cells and numbers: the twin of `discreet/schema/dates.py`.
 *
 * @module dates
 */

/** @import { Feature, PartName } from "./types.js" */

const DATE_PATTERN = /^[\t-\r ]*(([0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?(Z|[-+]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?)?[\t-\r ]*$/;
const SPILL_PATTERN = /(0001-01-01[T ][0-9:.]*[+](0[1-9]|[12][0-9]|00:?(0[1-9]|[1-5]))|9999-12-31[T ][0-9:.]*-)/;
const HOUR = 3_600_000, DAY = 24 * HOUR; // milliseconds

/** The public values of each part of a date, in the order of its cells. @type {Record<PartName, string[]>} */
export const PART_VALUES = {
  weekday: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
  "month of year": ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"],
  hour: Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, "0")}:00`),
};
/** How much of a date a label shows. @type {Record<string, number>} */
const LABEL_LENGTHS = { day: 10, month: 7, year: 4 };

/** Whether the answer is a date that is counted in days. @param {{ by?: any }} feature */
export const isDate = (feature) => typeof feature.by === "string" && Object.hasOwn(LABEL_LENGTHS, feature.by);

/**
 * The values of a part of a date; undefined of any other feature.
 * @param {Feature} feature
 * @returns {string[] | undefined}
 */
export function listPartValues(feature) {
  return typeof feature.by === "string" && Object.hasOwn(PART_VALUES, feature.by) ? PART_VALUES[/** @type {PartName} */ (feature.by)] : undefined;
}

/**
 * Whole hours since 1970, in UTC if there is a zone; null where the text is not a date.
 * @param {unknown} answer
 */
export function readHour(answer) {
  if (typeof answer !== "string" || !DATE_PATTERN.test(answer) || SPILL_PATTERN.test(answer)) return null;
  const text = answer.replace(/^[\t-\r ]+|[\t-\r ]+$/g, ""), zone = /([-+])(\d\d):?(\d\d)?$/.exec(text.slice(16));
  const offset = zone ? Number(`${zone[1]}1`) * (60 * Number(zone[2]) + Number(zone[3] ?? 0)) : 0;
  const minutes = 60 * Number(text.slice(11, 13)) + Number(text.slice(14, 16)) - offset;
  return Date.parse(`${text.slice(0, 10)}T00:00Z`) / HOUR + Math.floor(minutes / 60);
}

/** The day that a date is, counted from 1970. @param {string} text */
const readDay = (text) => Math.floor(Number(readHour(text)) / 24);

/**
 * Days since the first day of a feature; null where the answer is not a date.
 * @type {(feature: Feature, answer: unknown) => number | null}
 */
export function countDays(feature, answer) {
  const hour = readHour(answer);
  return hour === null ? null : Math.floor(hour / 24) - readDay(String(feature.lower));
}

/** The bounds of a feature as numbers: of a date, in days since its first. @param {Feature} feature */
export function readBounds(feature) {
  if (!isDate(feature)) return { lower: feature.lower, upper: feature.upper, integer: feature.integer };
  return { lower: 0, upper: readDay(String(feature.upper)) - readDay(String(feature.lower)), integer: true };
}

/**
 * The cell of a part of a date; undefined where the answer is not a date.
 * @type {(feature: Feature, answer: unknown) => number | undefined}
 */
export function findPartCell(feature, answer) {
  const hour = readHour(answer);
  if (hour === null) return undefined;
  if (feature.by === "hour") return hour - 24 * Math.floor(hour / 24);
  const day = new Date(hour * HOUR);
  return feature.by === "weekday" ? (day.getUTCDay() + 6) % 7 : day.getUTCMonth();
}

/**
 * The first and last day, month or year of a bin, as its label shows them.
 * @type {(feature: Feature, low: number, high: number) => [string, string]}
 */
export function formatUnits(feature, low, high) {
  const length = LABEL_LENGTHS[String(feature.by)], firstDay = readDay(String(feature.lower));
  const [lowText, highText] = [low, high].map((day) => new Date((firstDay + day) * DAY).toISOString().slice(0, length));
  return [lowText, highText];
}
