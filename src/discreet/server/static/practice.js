// @ts-check
/**
 * A practice round with a harmless question: drawn before one's eyes as often as one likes, by the
 * mechanism and with the chances of this survey, and never sent.
 *
 * @module practice
 */

import { perturb, SystemSource } from "./draw.js";
import { factsOf } from "./promise.js";
import { formatNumber, h, say } from "./show.js";

/** @import { Collection } from "./draw.js" */
/** @import { Plain } from "./types.js" */

const MAX_RADIOS = 12; // more answers are a list to choose from
const PRACTICE_LEVELS = 11; // numbers to choose from, evenly spaced over [-1, 1]

/**
 * Which cells a message speaks for: the list that it stands for.
 * @param {string} mechanism
 * @param {Plain} params Its parameters, as in a document.
 * @param {number[]} value What is sent.
 * @returns {number[]}
 */
export function listCells(mechanism, params, value) {
  /** @param {number} bits */
  const hasEvenParity = (bits) => bits.toString(2).replaceAll("0", "").length % 2 === 0;
  const [a, b, c, hashed] = value;
  /** @type {{ [name: string]: (cell: number) => boolean }} */
  const listers = {
    de: (cell) => cell === a,
    ss: (cell) => value.includes(cell),
    hr: (cell) => hasEvenParity(a & (cell + 1)),
    olh: (cell) => (((a * cell + b) % params.prime) * cell + c) % params.prime % params.hashes === hashed,
  };
  const isListed = listers[mechanism] ?? ((cell) => ((value[cell >> 4] >> (cell & 15)) & 1) === 1);
  return Array.from({ length: params.size }, (_, cell) => cell).filter(isListed);
}

/**
 * What there is to choose from, and what would be sent for it. Of a questionnaire the first group,
 * for one question with two answers; of a plan the drawn question, with as many answers.
 * @param {Collection} collection
 * @param {number} question
 * @returns {{ kind: "answers" | "set" | "coded", size: number, draw: (cell: number) => number[] }}
 */
export function makeTrial(collection, question) {
  const source = new SystemSource();
  if (collection.kind === "questionnaire") {
    const { model, theta } = collection.document.channels[0];
    const params = { theta, laws: [{ places: [0], weights: [1, 1] }], sizes: [2] };
    return { kind: "answers", size: 2, draw: (cell) => perturb(model, params, [cell], source) };
  }
  const { mechanism, parameters, power, features } = collection.document.questions[question], { size } = parameters;
  const [{ sent }] = factsOf(collection, question);
  if (power) { // numbers of one class stand in every so many places; the others are zero
    const classes = size / features.length;
    /** @type {(cell: number) => number[]} */
    const makeVector = (cell) => Array.from({ length: size }, (_, place) => (place % classes ? 0 : (2 * cell) / (PRACTICE_LEVELS - 1) - 1));
    return { kind: "coded", size: PRACTICE_LEVELS, draw: (cell) => perturb(mechanism, parameters, makeVector(cell), source) };
  }
  /** @param {number} cell */
  const draw = (cell) => perturb(mechanism, parameters, cell, source);
  if (sent === "noise") return { kind: "coded", size, draw };
  return { kind: sent === "set" ? "set" : "answers", size, draw: (cell) => listCells(mechanism, parameters, draw(cell)) };
}

/**
 * The screen.
 * @param {(heading: string, ...content: any[]) => void} renderScreen
 * @param {Collection} collection
 * @param {number} question
 * @param {() => void} goBack
 */
export function renderPractice(renderScreen, collection, question, goBack) {
  const { kind, size, draw } = makeTrial(collection, question), isTwoChoice = kind === "answers" && size === 2;
  const names = isTwoChoice ? [say("practice.tea"), say("practice.coffee")] : Array.from({ length: size }, (_, k) => formatNumber(k + 1));
  const questionText = isTwoChoice ? say("practice.question") : say("practice.number", { total: size });
  const textKey = kind === "answers" ? "practice" : `practice.${kind}`;
  let chosenCell = -1, drawCount = 0, truthCount = 0;
  const resultLine = h("p", { class: "drawn", role: "status" }), countLine = h("p", {}), meaningLine = h("p", {});
  const problem = h("p", { class: "problem", role: "alert", id: "practice-problem" }), log = h("ol", { class: "log", "aria-hidden": "true" });
  const chooseCell = (/** @type {number} */ cell) => {
    if (cell !== chosenCell) { drawCount = truthCount = 0; log.replaceChildren(); }
    chosenCell = cell;
    problem.replaceChildren();
  };
  const drawOnce = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (chosenCell < 0) return problem.replaceChildren(say("problem.missing"));
    const sent = draw(chosenCell), holdsTruth = kind !== "coded" && sent.includes(chosenCell);
    const answer = (kind === "coded" ? sent.map((value) => formatNumber(value, 6)) : sent.map((cell) => names[cell])).join(" · ") || say("practice.empty");
    drawCount += 1;
    truthCount += Number(holdsTruth);
    resultLine.replaceChildren(say(`${textKey}.sent`, { count: drawCount, answer }));
    countLine.replaceChildren(say(`${textKey}.count`, { count: drawCount, same: truthCount }));
    meaningLine.replaceChildren(say(`${textKey}.meaning`, { answer }));
    log.append(h("li", { class: kind === "coded" ? "" : holdsTruth ? "truth" : "other" }, kind === "set" && size > MAX_RADIOS ? formatNumber(drawCount) : answer));
    while (log.children.length > 30) log.firstChild?.remove();
    return undefined;
  };
  const radios = names.map((name, cell) => h("label", { class: "choice" }, h("input", { type: "radio", name: "practice", "aria-describedby": problem.id, change: () => chooseCell(cell) }), h("span", {}, name)));
  const menu = h("select", { "aria-label": questionText, "aria-describedby": problem.id, change: (/** @type {any} */ event) => chooseCell(event.target.selectedIndex - 1) },
    h("option", {}, say("answer.choose")), ...names.map((name) => h("option", {}, name)));
  renderScreen(say("practice.title"), h("p", { class: "note" }, say("practice.never")),
    h("form", { submit: drawOnce, novalidate: true, autocomplete: "off" },
      h("fieldset", {}, h("legend", {}, questionText), ...(size > MAX_RADIOS ? [menu] : radios), problem),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, say("practice.draw")), h("button", { type: "button", click: goBack }, say("practice.done")))),
    resultLine, countLine, meaningLine, log);
}
