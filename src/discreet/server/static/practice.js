// @ts-check
/**
 * A practice round with a harmless question: drawn before one's eyes as often as one likes, with the
 * chances of this survey, and never sent.
 *
 * @module practice
 */

import { perturb, SystemSource } from "./draw.js";
import { factsOf } from "./promise.js";
import { h, say } from "./show.js";

/** @import { Collection } from "./draw.js" */

const ONE = 2n ** 64n;

/**
 * What would be sent for one of two answers.
 * @param {Collection} collection
 * @param {number} question
 * @returns {(cell: number) => number}
 */
export function trial(collection, question) {
  const [fact] = factsOf(collection, question), source = new SystemSource();
  if (collection.kind === "questionnaire") {
    const channel = collection.document.channels[0];
    const parameters = { theta: channel.theta, laws: [{ places: [0], weights: [1, 1] }], sizes: [2] };
    return (cell) => perturb(fact.mechanism, parameters, [cell], source)[0];
  }
  // two answers at the epsilon of the question: e^eps to 1
  const odds = Math.exp(-fact.epsilon), p = (ONE * BigInt(Math.round(2 ** 52 / (1 + odds)))) >> 52n;
  return (cell) => perturb("de", { size: 2, p: String(p) }, cell, source)[0];
}

/**
 * The screen.
 * @param {(heading: string, ...content: any[]) => void} show
 * @param {Collection} collection
 * @param {number} question
 * @param {() => void} back
 */
export function practice(show, collection, question, back) {
  const draw = trial(collection, question), names = [say("practice.tea"), say("practice.coffee")];
  let said = -1, times = 0, same = 0;
  const result = h("p", { class: "drawn", role: "status" }), count = h("p", {}), meaning = h("p", {});
  const problem = h("p", { class: "problem", role: "alert" }), log = h("ol", { class: "log", "aria-hidden": "true" });
  const choose = (/** @type {number} */ cell) => { if (cell !== said) { times = same = 0; log.replaceChildren(); } said = cell; problem.replaceChildren(); };
  const act = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (said < 0) return problem.replaceChildren(say("problem.missing"));
    const sent = draw(said);
    times += 1;
    same += Number(sent === said);
    result.replaceChildren(say("practice.sent", { count: times, answer: names[sent] }));
    count.replaceChildren(say("practice.count", { count: times, same }));
    meaning.replaceChildren(say("practice.meaning", { answer: names[sent] }));
    log.append(h("li", { class: sent === said ? "truth" : "other" }, names[sent]));
    while (log.children.length > 30) log.firstChild?.remove();
    return undefined;
  };
  const radios = names.map((name, cell) => h("label", { class: "choice" }, h("input", { type: "radio", name: "practice", change: () => choose(cell) }), h("span", {}, name)));
  show(say("practice.title"), h("p", { class: "note" }, say("practice.never")),
    h("form", { submit: act, novalidate: true, autocomplete: "off" },
      h("fieldset", {}, h("legend", {}, say("practice.question")), ...radios, problem),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, say("practice.draw")), h("button", { type: "button", click: back }, say("practice.done")))),
    result, count, meaning, log);
}
