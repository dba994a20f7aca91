// @ts-check
/**
 * Draws by hand, with a coin, dice or cards: the steps of the paper form, one screen per group. The
 * page learns the outcome only, never the true answers.
 *
 * @module hand
 */

import { formatChoice } from "./questions.js";
import { formatList, say } from "./show.js";

/** @import { Collection } from "./draw.js" */
/** @import { QuestionScreen, GetWords } from "./questions.js" */
/** @import { AnswerLaw, JsonObject } from "./types.js" */

const MAX_SIDES = 10_000; // most numbers to draw from by hand, as in the paper form

/** @type {(a: number, b: number) => number} */
const computeGcd = (a, b) => (b ? computeGcd(b, a % b) : a);

/**
 * Parse a probability as hits out of sides; null where it cannot be drawn by hand.
 * @param {string | number | null} theta As in the document: 0.4 or "2/5".
 */
export function parseFraction(theta) {
  const [, integerDigits, decimalDigits = "", divisorDigits] = /^(\d+)(?:\.(\d+))?(?:\/(\d+))?$/.exec(String(theta)) ?? [];
  if (integerDigits === undefined || decimalDigits.length > 9) return null;
  const denominator = divisorDigits ? Number(divisorDigits) : 10 ** decimalDigits.length, numerator = Number(integerDigits + decimalDigits), divisor = computeGcd(numerator, denominator);
  const [hits, sides] = [numerator / divisor, denominator / divisor];
  return hits > 0 && hits <= sides && sides <= MAX_SIDES ? { hits, sides } : null;
}

/** @type {(low: number, high: number) => string} */
const formatRange = (low, high) => (low === high ? say("hand.one", { low }) : say("hand.range", { low, high }));

/**
 * Write the steps of the draw, one screen per group; null where it cannot be drawn by hand.
 * @param {Collection} collection
 * @param {GetWords} getWords
 * @returns {QuestionScreen[] | null}
 */
export function makeHandScreens(collection, getWords) {
  const { groups, channels, personal } = collection.document;
  const screens = groups.map((/** @type {JsonObject} */ group, /** @type {number} */ k) => {
    const fraction = parseFraction(group.theta), /** @type {AnswerLaw[]} */ laws = channels[k].laws ?? [], /** @type {string[]} */ names = group.questions;
    const weightTotals = laws.map((law) => law.weights.reduce((sum, weight) => sum + weight, 0));
    if (!fraction || (personal !== "own" && weightTotals.some((total) => total > MAX_SIDES))) return null;
    const { hits, sides } = fraction, screen = { names, personal: false, title: say("hand.title", { count: k + 1 }) };
    if (hits === sides) return { ...screen, steps: [say("hand.truth")] };
    const steps = [say(sides === 2 ? "hand.coin" : "hand.draw", { sides: String(sides) }), say("hand.hit", { range: formatRange(1, hits) })], missRange = formatRange(hits + 1, sides);
    if (channels[k].model === "related") return { ...screen, steps: [...steps, say("hand.opposite", { range: missRange })] };
    if (personal === "own") {
      const personalWordings = names.map((name) => getWords(name).personal);
      return { ...screen, steps: [...steps, say("hand.own", { range: missRange, questions: personalWordings.join(" ") })] };
    }
    steps.push(say("hand.rest", { range: missRange }));
    laws.forEach((law, j) => steps.push(say("hand.law", { total: String(weightTotals[j]), questions: formatList(law.places.map((place) => getWords(names[place]).wording)), table: describeLaw(collection, law, names, getWords) })));
    return { ...screen, steps };
  });
  return screens.includes(null) ? null : screens;
}

/** @type {(collection: Collection, law: AnswerLaw, names: string[], getWords: GetWords) => string} */
function describeLaw(collection, law, names, getWords) {
  const lawNames = law.places.map((place) => names[place]);
  const labels = lawNames.map((name) => (collection.choices(name) ?? []).map((choice) => formatChoice(choice, getWords(name).answers)));
  /** @type {string[][]} */
  const rows = labels.reduce((/** @type {string[][]} */ prefixes, options) => prefixes.flatMap((row) => options.map((label) => [...row, label])), [[]]);
  let cumulative = 0;
  const rangeTexts = rows.flatMap((row, k) => {
    const weight = law.weights[k], low = cumulative + 1;
    cumulative += weight;
    return weight ? [say("hand.means", { range: formatRange(low, cumulative), answer: formatList(row) })] : [];
  });
  return rangeTexts.join(" ");
}
