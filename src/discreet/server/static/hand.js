// @ts-check
/**
 * One's own coin, dice or cards instead of the browser: the steps of the paper form, for a screen.
 * The page is told what came out, never what is true.
 *
 * @module hand
 */

import { labelOf } from "./questions.js";
import { list, say } from "./show.js";

/** @import { Collection } from "./draw.js" */
/** @import { Asked, WordsOf } from "./questions.js" */
/** @import { Law, Plain } from "./types" */

const MOST = 10_000; // numbers that somebody may be asked to draw from, as in the paper form

/** @type {(a: number, b: number) => number} */
const common = (a, b) => (b ? common(b, a % b) : a);

/**
 * A probability as hits of sides; null where nobody can draw it.
 * @param {string | number | null} theta As in the document: 0.4 or "2/5".
 */
export function fractionOf(theta) {
  const [, whole, digits = "", over] = /^(\d+)(?:\.(\d+))?(?:\/(\d+))?$/.exec(String(theta)) ?? [];
  if (whole === undefined || digits.length > 9) return null;
  const bottom = over ? Number(over) : 10 ** digits.length, top = Number(whole + digits), by = common(top, bottom);
  const [hits, sides] = [top / by, bottom / by];
  return hits > 0 && hits <= sides && sides <= MOST ? { hits, sides } : null;
}

/** @type {(low: number, high: number) => string} */
const range = (low, high) => (low === high ? say("hand.one", { low }) : say("hand.range", { low, high }));

/**
 * What a respondent does, one screen for each group; null where it cannot be drawn by hand.
 * @param {Collection} collection
 * @param {WordsOf} wordsOf
 * @returns {Asked[] | null}
 */
export function handSteps(collection, wordsOf) {
  const { groups, channels, personal } = collection.document;
  if (collection.kind !== "questionnaire") return null;
  const found = groups.map((/** @type {Plain} */ group, /** @type {number} */ k) => {
    const fraction = fractionOf(group.theta), /** @type {Law[]} */ laws = channels[k].laws ?? [], /** @type {string[]} */ names = group.questions;
    const totals = laws.map((law) => law.weights.reduce((sum, one) => sum + one, 0));
    if (!fraction || (personal !== "own" && totals.some((one) => one > MOST))) return null;
    const { hits, sides } = fraction, asked = { names, personal: false, title: say("hand.title", { count: k + 1 }) };
    if (hits === sides) return { ...asked, steps: [say("hand.truth")] };
    const steps = [say(sides === 2 ? "hand.coin" : "hand.draw", { sides: String(sides) }), say("hand.hit", { range: range(1, hits) })], rest = range(hits + 1, sides);
    if (channels[k].model === "related") return { ...asked, steps: [...steps, say("hand.opposite", { range: rest })] };
    if (personal === "own") {
      const own = names.map((name) => wordsOf(name).personal);
      return { ...asked, steps: [...steps, say("hand.own", { range: rest, questions: own.join(" ") })] };
    }
    steps.push(say("hand.rest", { range: rest }));
    laws.forEach((law, j) => steps.push(say("hand.law", { total: String(totals[j]), questions: list(law.places.map((one) => wordsOf(names[one]).wording)), table: tableOf(collection, law, names, wordsOf) })));
    return { ...asked, steps };
  });
  return found.includes(null) ? null : found;
}

/** @type {(collection: Collection, law: Law, names: string[], wordsOf: WordsOf) => string} */
function tableOf(collection, law, names, wordsOf) {
  const asked = law.places.map((place) => names[place]);
  const labels = asked.map((name) => (collection.choices(name) ?? []).map((one) => labelOf(one, wordsOf(name).answers)));
  /** @type {string[][]} */
  const rows = labels.reduce((/** @type {string[][]} */ sofar, some) => sofar.flatMap((row) => some.map((one) => [...row, one])), [[]]);
  let below = 0;
  const texts = rows.flatMap((row, k) => {
    const weight = law.weights[k], low = below + 1;
    below += weight;
    return weight ? [say("hand.means", { range: range(low, below), answer: list(row) })] : [];
  });
  return texts.join(" ");
}
