// @ts-check
/**
 * A practice round with a harmless question: repeated draws on the screen, by the mechanism and with
 * the probabilities of this survey. Nothing is sent.
 *
 * @module practice
 */

import { perturb, SystemSource } from "./draw.js";
import { describeProtection } from "./promise.js";
import { formatNumber, h, say } from "./show.js";

/** @import { Collection } from "./draw.js" */
/** @import { JsonObject } from "./types.js" */

const MAX_RADIOS = 12; // more answers are a list to choose from
const PRACTICE_LEVELS = 11; // numbers to choose from, evenly spaced over [-1, 1]

/**
 * List the cells that a message supports.
 * @param {string} mechanism
 * @param {JsonObject} params Its parameters, as in a document.
 * @param {number[]} value What is sent.
 * @returns {number[]}
 */
export function listCells(mechanism, params, value) {
  /** @param {number} bits */
  const hasEvenParity = (bits) => bits.toString(2).replaceAll("0", "").length % 2 === 0;
  const [a, b, c, hashedCell] = value;
  /** @type {{ [name: string]: (cell: number) => boolean }} */
  const cellTests = {
    de: (cell) => cell === a,
    ss: (cell) => value.includes(cell),
    hr: (cell) => hasEvenParity(a & (cell + 1)),
    olh: (cell) => (((a * cell + b) % params.prime) * cell + c) % params.prime % params.hashes === hashedCell,
  };
  const isListed = cellTests[mechanism] ?? ((cell) => ((value[cell >> 4] >> (cell & 15)) & 1) === 1);
  return Array.from({ length: params.size }, (_, cell) => cell).filter(isListed);
}

/**
 * Make a practice question and its draw: for a questionnaire by its first group, with one question of
 * two answers; for a plan by the drawn question, with as many answers.
 * @param {Collection} collection
 * @param {number} question
 * @returns {{ kind: "answers" | "set" | "coded", size: number, draw: (cell: number) => number[] }}
 */
export function makeTrial(collection, question) {
  const source = new SystemSource();
  if (collection.isSheet) {
    const { model, theta } = collection.document.channels[0];
    const params = { theta, laws: [{ places: [0], weights: [1, 1] }], sizes: [2] };
    return { kind: "answers", size: 2, draw: (cell) => perturb(model, params, [cell], source) };
  }
  const { mechanism, parameters, power, features } = collection.document.questions[question], { size } = parameters;
  const [{ sent }] = describeProtection(collection, question);
  if (power) { // the numbers of the first class; those of the others are zero
    const classCount = size / features.length;
    /** @type {(cell: number) => number[]} */
    const makeVector = (cell) => Array.from({ length: size }, (_, place) => (place % classCount ? 0 : (2 * cell) / (PRACTICE_LEVELS - 1) - 1));
    return { kind: "coded", size: PRACTICE_LEVELS, draw: (cell) => perturb(mechanism, parameters, makeVector(cell), source) };
  }
  /** @param {number} cell */
  const draw = (cell) => perturb(mechanism, parameters, cell, source);
  if (sent === "noise") return { kind: "coded", size, draw };
  return { kind: sent === "set" ? "set" : "answers", size, draw: (cell) => listCells(mechanism, parameters, draw(cell)) };
}

/**
 * Show the screen.
 * @param {(heading: string, ...content: any[]) => void} renderScreen
 * @param {Collection} collection
 * @param {number} question
 * @param {() => void} goBack
 */
export function renderPractice(renderScreen, collection, question, goBack) {
  const { kind, size, draw } = makeTrial(collection, question), isTwoChoice = kind === "answers" && size === 2;
  const optionLabels = isTwoChoice ? [say("practice.tea"), say("practice.coffee")] : Array.from({ length: size }, (_, k) => formatNumber(k + 1));
  const questionText = isTwoChoice ? say("practice.question") : say("practice.number", { total: size });
  const textKey = kind === "answers" ? "practice" : `practice.${kind}`;
  let chosenCell = -1, drawCount = 0, truthCount = 0;
  const resultLine = h("p", { class: "drawn", role: "status" }), countLine = h("p", {}), meaningLine = h("p", {});
  const problemLine = h("p", { class: "problem", role: "alert", id: "practice-problem" }), drawLog = h("ol", { class: "log", "aria-hidden": "true" });
  const chooseCell = (/** @type {number} */ cell) => {
    if (cell !== chosenCell) { drawCount = truthCount = 0; drawLog.replaceChildren(); }
    chosenCell = cell;
    problemLine.replaceChildren();
  };
  const drawOnce = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (chosenCell < 0) return problemLine.replaceChildren(say("problem.missing"));
    const drawnValues = draw(chosenCell), holdsTruth = kind !== "coded" && drawnValues.includes(chosenCell);
    const answer = (kind === "coded" ? drawnValues.map((value) => formatNumber(value, 6)) : drawnValues.map((cell) => optionLabels[cell])).join(" · ") || say("practice.empty");
    drawCount += 1;
    truthCount += Number(holdsTruth);
    resultLine.replaceChildren(say(`${textKey}.sent`, { count: drawCount, answer }));
    countLine.replaceChildren(say(`${textKey}.count`, { count: drawCount, same: truthCount }));
    meaningLine.replaceChildren(say(`${textKey}.meaning`, { answer }));
    drawLog.append(h("li", { class: kind === "coded" ? "" : holdsTruth ? "truth" : "other" }, kind === "set" && size > MAX_RADIOS ? formatNumber(drawCount) : answer));
    while (drawLog.children.length > 30) drawLog.firstChild?.remove();
    return undefined;
  };
  const radios = optionLabels.map((optionLabel, cell) => h("label", { class: "choice" }, h("input", { type: "radio", name: "practice", "aria-describedby": problemLine.id, change: () => chooseCell(cell) }), h("span", {}, optionLabel)));
  const menu = h("select", { "aria-label": questionText, "aria-describedby": problemLine.id, change: (/** @type {any} */ event) => chooseCell(event.target.selectedIndex - 1) },
    h("option", {}, say("answer.choose")), ...optionLabels.map((optionLabel) => h("option", {}, optionLabel)));
  renderScreen(say("practice.title"), h("p", { class: "note" }, say("practice.never")),
    h("form", { submit: drawOnce, novalidate: true, autocomplete: "off" },
      h("fieldset", {}, h("legend", {}, questionText), ...(size > MAX_RADIOS ? [menu] : radios), problemLine),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, say("practice.draw")), h("button", { type: "button", click: goBack }, say("practice.done")))),
    resultLine, countLine, meaningLine, drawLog);
}
