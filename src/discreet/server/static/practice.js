// @ts-check
/**
 * A practice round with a harmless question: drawn before one's eyes as often as one likes, by the
 * mechanism and with the chances of this survey, and never sent.
 *
 * @module practice
 */

import { perturb, SystemSource } from "./draw.js";
import { factsOf } from "./promise.js";
import { h, number, say } from "./show.js";

/** @import { Collection } from "./draw.js" */
/** @import { Plain } from "./types" */

const RADIOS = 12, STEPS = 11;

/**
 * Which cells a message speaks for: the list that it stands for.
 * @param {string} mechanism
 * @param {Plain} the Its parameters, as in a document.
 * @param {number[]} value What is sent.
 * @returns {number[]}
 */
export function listed(mechanism, the, value) {
  /** @param {number} bits */
  const even = (bits) => bits.toString(2).replaceAll("0", "").length % 2 === 0;
  const [a, b, c, hashed] = value;
  /** @type {{ [name: string]: (cell: number) => boolean }} */
  const tests = {
    de: (cell) => cell === a,
    ss: (cell) => value.includes(cell),
    hr: (cell) => even(a & (cell + 1)),
    olh: (cell) => (((a * cell + b) % the.prime) * cell + c) % the.prime % the.hashes === hashed,
  };
  const test = tests[mechanism] ?? ((cell) => ((value[cell >> 4] >> (cell & 15)) & 1) === 1);
  return Array.from({ length: the.size }, (_, cell) => cell).filter(test);
}

/**
 * What there is to choose from, and what would be sent for it. Of a questionnaire the first group,
 * for one question with two answers; of a plan the drawn question, with as many answers.
 * @param {Collection} collection
 * @param {number} question
 * @returns {{ kind: "answers" | "set" | "coded", size: number, draw: (cell: number) => number[] }}
 */
export function trial(collection, question) {
  const source = new SystemSource();
  if (collection.kind === "questionnaire") {
    const { model, theta } = collection.document.channels[0];
    const the = { theta, laws: [{ places: [0], weights: [1, 1] }], sizes: [2] };
    return { kind: "answers", size: 2, draw: (cell) => perturb(model, the, [cell], source) };
  }
  const { mechanism, parameters, power, features } = collection.document.questions[question], { size } = parameters;
  const [{ sent }] = factsOf(collection, question);
  if (power) { // numbers of one class stand in every so many places; the others are zero
    const classes = size / features.length;
    /** @type {(cell: number) => number[]} */
    const vector = (cell) => Array.from({ length: size }, (_, place) => (place % classes ? 0 : (2 * cell) / (STEPS - 1) - 1));
    return { kind: "coded", size: STEPS, draw: (cell) => perturb(mechanism, parameters, vector(cell), source) };
  }
  /** @param {number} cell */
  const draw = (cell) => perturb(mechanism, parameters, cell, source);
  if (sent === "noise") return { kind: "coded", size, draw };
  return { kind: sent === "set" ? "set" : "answers", size, draw: (cell) => listed(mechanism, parameters, draw(cell)) };
}

/**
 * The screen.
 * @param {(heading: string, ...content: any[]) => void} show
 * @param {Collection} collection
 * @param {number} question
 * @param {() => void} back
 */
export function practice(show, collection, question, back) {
  const { kind, size, draw } = trial(collection, question), drinks = kind === "answers" && size === 2;
  const names = drinks ? [say("practice.tea"), say("practice.coffee")] : Array.from({ length: size }, (_, k) => number(k + 1));
  const asked = drinks ? say("practice.question") : say("practice.number", { total: size });
  const key = kind === "answers" ? "practice" : `practice.${kind}`;
  let said = -1, times = 0, same = 0;
  const result = h("p", { class: "drawn", role: "status" }), count = h("p", {}), meaning = h("p", {});
  const problem = h("p", { class: "problem", role: "alert", id: "practice-problem" }), log = h("ol", { class: "log", "aria-hidden": "true" });
  const choose = (/** @type {number} */ cell) => {
    if (cell !== said) { times = same = 0; log.replaceChildren(); }
    said = cell;
    problem.replaceChildren();
  };
  const act = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (said < 0) return problem.replaceChildren(say("problem.missing"));
    const sent = draw(said), holds = kind !== "coded" && sent.includes(said);
    const answer = (kind === "coded" ? sent.map((one) => number(one, 6)) : sent.map((one) => names[one])).join(" · ") || say("practice.empty");
    times += 1;
    same += Number(holds);
    result.replaceChildren(say(`${key}.sent`, { count: times, answer }));
    count.replaceChildren(say(`${key}.count`, { count: times, same }));
    meaning.replaceChildren(say(`${key}.meaning`, { answer }));
    log.append(h("li", { class: kind === "coded" ? "" : holds ? "truth" : "other" }, kind === "set" && size > RADIOS ? number(times) : answer));
    while (log.children.length > 30) log.firstChild?.remove();
    return undefined;
  };
  const radios = names.map((name, cell) => h("label", { class: "choice" }, h("input", { type: "radio", name: "practice", "aria-describedby": problem.id, change: () => choose(cell) }), h("span", {}, name)));
  const list = h("select", { "aria-label": asked, "aria-describedby": problem.id, change: (/** @type {any} */ event) => choose(event.target.selectedIndex - 1) },
    h("option", {}, say("answer.choose")), ...names.map((name) => h("option", {}, name)));
  show(say("practice.title"), h("p", { class: "note" }, say("practice.never")),
    h("form", { submit: act, novalidate: true, autocomplete: "off" },
      h("fieldset", {}, h("legend", {}, asked), ...(size > RADIOS ? [list] : radios), problem),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, say("practice.draw")), h("button", { type: "button", click: back }, say("practice.done")))),
    result, count, meaning, log);
}
