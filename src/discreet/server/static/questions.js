// @ts-check
/**
 * One screen of questions: native fields, nothing chosen before, what was chosen stays.
 *
 * @module questions
 */

import { DrawError } from "./draw.js";
import { h, number, say } from "./show.js";

/** @import { Collection } from "./draw.js" */
/** @import { Choice, Plain } from "./types" */

/**
 * @typedef {{ names: string[], personal: boolean, title?: string, steps?: string[] }} Asked
 * @typedef {(name: string) => { wording: string, hint: string, answers: string[], personal: string }} WordsOf
 */

const RADIOS = 12;
/** From so many answers on they are a list to choose from. */

/**
 * A form for one screen.
 * @param {Collection} collection
 * @param {Asked} asked
 * @param {WordsOf} wordsOf
 * @param {Map<string, any>} answers Read, and written when all of this screen fits.
 * @param {() => void} next
 */
export function asker(collection, asked, wordsOf, answers, next) {
  const single = asked.names.length === 1 && !asked.title;
  const parts = asked.names.map((name) => partOf(collection, name, asked.personal, wordsOf(name), answers, single));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const wrong = parts.filter((part) => !part.checked());
    if (wrong.length) return wrong[0].focus();
    parts.forEach((part) => answers.set(part.key, part.answer()));
    return next();
  };
  const words = wordsOf(asked.names[0]);
  const heading = asked.title ?? (asked.personal ? words.personal : words.wording);
  const form = h("form", { submit, novalidate: true, autocomplete: "off" },
    asked.steps && h("ol", { class: "steps" }, ...asked.steps.map((step) => h("li", {}, step))),
    ...parts.map((part) => part.element));
  return { form, heading };
}

/** Where an answer is held. @type {(name: string, personal: boolean) => string} */
export const keyOf = (name, personal) => (personal ? `personal|${name}` : name);

/** @type {(choice: Choice, labels: string[]) => string} */
export function labelOf(choice, labels) {
  if (choice.kind === "missing") return say("answer.missing");
  if (choice.kind === "other") return say("answer.other");
  if (choice.between) {
    const [low, high] = choice.between;
    return low === high ? number(low, 6) : say("answer.between", { low: number(low, 6), high: number(high, 6) });
  }
  if (labels[choice.answer.cell]) return labels[choice.answer.cell];
  return known(choice.label);
}

/** @param {string} label The commonest answers are words of ours. */
function known(label) {
  return ["yes", "no", "true", "false"].includes(label) ? say(`answer.${label}`) : label;
}

/** @type {(collection: Collection, name: string, personal: boolean, words: ReturnType<WordsOf>, answers: Map<string, any>, single: boolean) => any} */
function partOf(collection, name, personal, words, answers, single) {
  const key = keyOf(name, personal), choices = collection.choices(name), before = answers.get(key);
  const id = `q-${collection.names.indexOf(name)}`, bounds = featureOf(collection, name);
  const problem = h("p", { class: "problem", id: `${id}-problem`, role: "alert" });
  const hinted = [words.hint && h("p", { class: "hint", id: `${id}-hint` }, words.hint)];
  const described = [words.hint && `${id}-hint`, choices ? "" : `${id}-bounds`, `${id}-problem`].filter(Boolean).join(" ");
  const named = single ? { "aria-labelledby": "heading" } : {};
  const legend = !single && h("legend", {}, personal ? words.personal : words.wording);
  /** @type {any} */
  let field;
  /** @type {() => any} */
  let answer;
  if (!choices) {
    const skip = h("input", { type: "checkbox", id: `${id}-missing`, checked: before === null, change: () => { field.disabled = skip.checked; } });
    field = h("input", { type: "text", inputmode: bounds.integer && bounds.lower >= 0 ? "numeric" : "decimal", id, autocomplete: "off", "aria-describedby": described,
      ...(single ? named : { "aria-label": words.wording }), value: typeof before === "string" ? before : "", disabled: before === null });
    answer = () => (bounds.optional && skip.checked ? null : field.value.trim().replace(/^([-+]?\d*),(\d+)$/, "$1.$2"));
    const range = bounds.lower === null || bounds.lower === undefined ? "" : say(bounds.integer ? "answer.whole" : "answer.range", { low: number(bounds.lower, 6), high: number(bounds.upper, 6) });
    hinted.push(h("p", { class: "hint", id: `${id}-bounds` }, range), field,
      bounds.optional && h("label", { class: "choice", for: `${id}-missing` }, skip, h("span", {}, say("answer.missing"))));
  } else if (choices.length > RADIOS) {
    const options = choices.map((one) => h("option", { value: one.answer.cell, selected: before?.cell === one.answer.cell }, labelOf(one, words.answers)));
    field = h("select", { id, "aria-describedby": described, ...(single ? named : { "aria-label": words.wording }) }, h("option", { selected: !before }, say("answer.choose")), ...options);
    answer = () => (field.selectedIndex < 1 ? undefined : { cell: Number(field.value) });
    hinted.push(field);
  } else {
    const radios = choices.map((one) => h("input", { type: "radio", name: id, id: `${id}-${one.answer.cell}`, value: one.answer.cell, checked: before?.cell === one.answer.cell, "aria-describedby": described }));
    field = radios[0];
    answer = () => { const on = radios.find((one) => one.checked); return on && { cell: Number(on.value) }; };
    hinted.push(...choices.map((one, k) => h("label", { class: "choice", for: `${id}-${one.answer.cell}` }, radios[k], h("span", {}, labelOf(one, words.answers)))));
  }
  const checked = () => {
    let reason = "";
    try {
      const given = answer();
      if (given === undefined) reason = "missing";
      else collection.check(name, given);
    } catch (error) {
      if (!(error instanceof DrawError)) throw error;
      reason = ["number", "whole", "outside", "missing"].includes(error.reason) ? error.reason : "unknown";
    }
    problem.replaceChildren(...(reason ? [say(`problem.${reason === "missing" && !choices ? "empty" : reason}`, boundsOf(bounds))] : []));
    field.toggleAttribute("aria-invalid", Boolean(reason));
    if (reason) field.setAttribute("aria-invalid", "true");
    return !reason;
  };
  const element = h("fieldset", choices && choices.length <= RADIOS ? named : {}, legend, ...hinted, problem);
  return { key, element, answer, checked, focus: () => field.focus() };
}

/** @param {Plain} feature */
const boundsOf = (feature) => ({ low: number(feature.lower ?? 0, 6), high: number(feature.upper ?? 0, 6) });

/** @type {(collection: Collection, name: string) => Plain} */
function featureOf(collection, name) {
  const { schema, projection, questions } = collection.document;
  const all = collection.kind === "plan" ? (projection ? projection.schema : schema).features : questions;
  return all.find((/** @type {Plain} */ one) => one.name === name) ?? { optional: false };
}
