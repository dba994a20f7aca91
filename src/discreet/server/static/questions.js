// @ts-check
/**
 * One screen of questions: native fields, no default choice; earlier answers stay.
 *
 * @module questions
 */

import { isDate } from "./dates.js";
import { DrawError } from "./draw.js";
import { readNumber } from "./numbers.js";
import { formatNumber, h, say } from "./show.js";

/** @import { Collection } from "./draw.js" */
/** @import { Choice, JsonObject } from "./types.js" */

/**
 * @typedef {{ names: string[], personal: boolean, title?: string, steps?: string[] }} QuestionScreen
 * @typedef {(name: string) => { wording: string, hint: string, answers: string[], personal: string }} GetWords
 */

const MAX_RADIOS = 12; // more answers are a list to choose from

/**
 * Make the form of one screen.
 * @param {Collection} collection
 * @param {QuestionScreen} screen
 * @param {GetWords} getWords
 * @param {Map<string, any>} answers Read, and written when all of this screen fits.
 * @param {() => void} onAnswered
 */
export function makeQuestionForm(collection, screen, getWords, answers, onAnswered) {
  const isOnlyField = screen.names.length === 1 && !screen.title;
  const fields = screen.names.map((name) => makeField(collection, name, screen.personal, getWords(name), answers, isOnlyField));
  const submitForm = (/** @type {Event} */ event) => {
    event.preventDefault();
    const invalidFields = fields.filter((field) => !field.validateAnswer());
    if (invalidFields.length) return invalidFields[0].focus();
    fields.forEach((field) => answers.set(field.key, field.readAnswer()));
    return onAnswered();
  };
  const words = getWords(screen.names[0]);
  const heading = screen.title ?? (screen.personal ? words.personal : words.wording);
  const form = h("form", { submit: submitForm, novalidate: true, autocomplete: "off" },
    screen.steps && h("ol", { class: "steps" }, ...screen.steps.map((step) => h("li", {}, step))),
    ...fields.map((field) => field.element));
  return { form, heading };
}

/** Make the key of an answer in the map of answers. @type {(name: string, personal: boolean) => string} */
export const makeAnswerKey = (name, personal) => (personal ? `personal|${name}` : name);

/** @type {(choice: Choice, labels: string[]) => string} */
export function formatChoice(choice, labels) {
  if (choice.kind === "missing") return say("answer.missing");
  if (choice.kind === "other") return say("answer.other");
  if (choice.between) {
    const [low, high] = choice.between;
    return low === high ? formatNumber(low, 6) : say("answer.between", { low: formatNumber(low, 6), high: formatNumber(high, 6) });
  }
  if (labels[choice.answer.cell]) return labels[choice.answer.cell];
  return translateLabel(choice.label);
}

/** Translate the commonest answers. @param {string} label */
function translateLabel(label) {
  return ["yes", "no", "true", "false"].includes(label) ? say(`answer.${label}`) : label;
}

/** @type {(collection: Collection, name: string, personal: boolean, words: ReturnType<GetWords>, answers: Map<string, any>, isOnlyField: boolean) => any} */
function makeField(collection, name, personal, words, answers, isOnlyField) {
  const key = makeAnswerKey(name, personal), choices = collection.choices(name), previousAnswer = answers.get(key);
  const id = `q-${collection.names.indexOf(name)}`, targetOfPlan = /** @type {JsonObject} */ ({ optional: false });
  const feature = collection.features.find((described) => described.name === name) ?? targetOfPlan;
  const problemLine = h("p", { class: "problem", id: `${id}-problem`, role: "alert" });
  const content = [words.hint && h("p", { class: "hint", id: `${id}-hint` }, words.hint)];
  const describedBy = [words.hint && `${id}-hint`, choices ? "" : `${id}-bounds`, `${id}-problem`].filter(Boolean).join(" ");
  const labelledBy = isOnlyField ? { "aria-labelledby": "heading" } : {};
  const legend = !isOnlyField && h("legend", {}, personal ? words.personal : words.wording);
  /** @type {any} */
  let input;
  /** @type {() => any} */
  let readAnswer;
  if (!choices) {
    const skipBox = h("input", { type: "checkbox", id: `${id}-missing`, checked: previousAnswer === null, change: () => { input.disabled = skipBox.checked; } });
    const isDateField = isDate(feature), bounds = isDateField ? { type: "date", min: feature.lower, max: feature.upper } : { type: "text" };
    input = h("input", { ...bounds, inputmode: feature.integer && feature.lower >= 0 ? "numeric" : "decimal", id, autocomplete: "off", "aria-describedby": describedBy,
      ...(isOnlyField ? labelledBy : { "aria-label": words.wording }), value: typeof previousAnswer === "string" ? previousAnswer : "", disabled: previousAnswer === null });
    readAnswer = () => {
      if (feature.optional && skipBox.checked) return null;
      if (isDateField) return input.value;
      const reading = readNumber(input.value, { ...feature, clips: collection.document.schema?.outliers === "clip" });
      if ("question" in reading) throw new AmbiguousNumber(reading.question);
      return reading.text;
    };
    const rangeHint = isDateField ? say("answer.date", formatBounds(feature)) : feature.lower === null || feature.lower === undefined ? "" : say(feature.integer ? "answer.whole" : "answer.range", { low: formatNumber(feature.lower, 6), high: formatNumber(feature.upper, 6) });
    content.push(h("p", { class: "hint", id: `${id}-bounds` }, rangeHint), input,
      feature.optional && h("label", { class: "choice", for: `${id}-missing` }, skipBox, h("span", {}, say("answer.missing"))));
  } else if (choices.length > MAX_RADIOS) {
    const options = choices.map((choice) => h("option", { value: choice.answer.cell, selected: previousAnswer?.cell === choice.answer.cell }, formatChoice(choice, words.answers)));
    input = h("select", { id, "aria-describedby": describedBy, ...(isOnlyField ? labelledBy : { "aria-label": words.wording }) }, h("option", { selected: !previousAnswer }, say("answer.choose")), ...options);
    readAnswer = () => (input.selectedIndex < 1 ? undefined : { cell: Number(input.value) });
    content.push(input);
  } else {
    const radios = choices.map((choice) => h("input", { type: "radio", name: id, id: `${id}-${choice.answer.cell}`, value: choice.answer.cell, checked: previousAnswer?.cell === choice.answer.cell, "aria-describedby": describedBy }));
    input = radios[0];
    readAnswer = () => { const selected = radios.find((radio) => radio.checked); return selected && { cell: Number(selected.value) }; };
    content.push(...choices.map((choice, k) => h("label", { class: "choice", for: `${id}-${choice.answer.cell}` }, radios[k], h("span", {}, formatChoice(choice, words.answers)))));
  }
  const validateAnswer = () => {
    let reason = "", placeholderValues = formatBounds(feature);
    try {
      const answer = readAnswer();
      if (answer === undefined) reason = "missing";
      else collection.check(name, answer);
    } catch (error) {
      if (error instanceof AmbiguousNumber) {
        reason = "ambiguous";
        placeholderValues = { written: input.value.trim(), ...error.readings };
      } else if (!(error instanceof DrawError)) throw error;
      else reason = ["number", "date", "whole", "outside", "missing"].includes(error.reason) ? error.reason : "unknown";
    }
    if (isDate(feature) && !choices && reason) reason = reason === "outside" ? "early" : "date";
    problemLine.replaceChildren(...(reason ? [say(`problem.${reason === "missing" && !choices ? "empty" : reason}`, placeholderValues)] : []));
    input.toggleAttribute("aria-invalid", Boolean(reason));
    if (reason) input.setAttribute("aria-invalid", "true");
    return !reason;
  };
  const element = h("fieldset", choices && choices.length <= MAX_RADIOS ? labelledBy : {}, legend, ...content, problemLine);
  return { key, element, readAnswer, validateAnswer, focus: () => input.focus() };
}

/** A number that can be read in two ways, of which the person is asked to choose one. */
class AmbiguousNumber extends Error {
  /** @param {[string, string]} spellings Of thousands, and of a fraction. */
  constructor([thousands, fraction]) {
    super("ambiguous");
    const decimalPoint = formatNumber(0.5).replace(/\p{Nd}/gu, "");
    this.readings = { thousands, fraction: fraction.replace(".", decimalPoint) };
  }
}

/** @type {(feature: JsonObject) => { [name: string]: string }} */
const formatBounds = (feature) => (isDate(feature) ? { low: feature.lower, high: feature.upper } : { low: formatNumber(feature.lower ?? 0, 6), high: formatNumber(feature.upper ?? 0, 6) });
