// @ts-check
/**
 * After sending: what became of the report, and the choice to look at it or to keep the right to
 * withdraw it.
 *
 * @module receipt
 */

import { listed } from "./practice.js";
import { labelOf } from "./questions.js";
import { Stop } from "./respond.js";
import { factsOf } from "./promise.js";
import { aside, day, h, known, paragraphs, say } from "./show.js";

/** @import { Kept } from "./keep.js" */
/** @import { Survey } from "./respond.js" */
/** @import { WordsOf } from "./questions.js" */

/**
 * @typedef {object} Frame What the page gives.
 * @property {Survey} survey
 * @property {(heading: string, ...content: any[]) => void} show
 * @property {(label: string, act: () => void, kind?: string) => HTMLButtonElement} button
 * @property {{ thanks?: string }} words
 * @property {WordsOf} wordsOf
 * @property {string} about
 * @property {string} code
 * @property {() => Promise<void>} deliver
 */

/** @param {Frame} frame */
export function receipt(frame) {
  const { survey, show, button, words, about } = frame, kept = /** @type {Kept} */ (survey.kept);
  if (kept.state === "refused") {
    const reason = known(`refused.${kept.reason}`) ? kept.reason : "other";
    return show(say("refused.title"), h("p", { class: "warning" }, say(`refused.${reason}`)), h("p", {}, say("refused.kept")),
      h("div", { class: "buttons" }, button(say("sending.again"), async () => { await frame.deliver(); receipt(frame); }, "primary")));
  }
  if (kept.state === "withdrawn") return show(say("withdrawn.title"), h("p", {}, say("withdrawn.text")));
  if (kept.state === "withdrawing") return void takeBack(frame);
  const { closes, deletes } = survey.announcement;
  return show(
    say("receipt.title"),
    h("p", { class: "promise" }, say("receipt.text")),
    ...paragraphs(words.thanks ?? ""),
    kept.reason && h("p", { class: "warning" }, say("receipt.stays")),
    kept.text !== null && choice(frame, kept),
    kept.text === null && h("p", {}, say("receipt.forgotten")),
    h("h2", {}, say("receipt.next")),
    h("ul", {},
      h("li", {}, say("receipt.batch", { count: survey.announcement.batch })),
      h("li", {}, closes ? say("receipt.closes", { day: day(closes) }) : say("receipt.open")),
      h("li", {}, deletes ? say("deletes.day", { day: day(deletes) }) : say("deletes.none")),
      h("li", {}, say("receipt.once"))),
    h("details", {}, h("summary", {}, say("receipt.details")),
      h("dl", {}, ...[[say("receipt.id"), kept.id], [say("exact.announced"), survey.announcement.digest], [say("exact.document"), kept.collection], [say("exact.code"), frame.code]]
        .flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, h("code", {}, text))])),
      h("p", {}, aside(`${about}#check`, say("footer.check")))),
    kept.text !== null && h("details", {}, h("summary", {}, say("forget.title")), h("p", {}, say("forget.text")),
      button(say("forget.act"), () => survey.forget().then(() => receipt(frame), (error) => failed(frame, "forget.title", error)))),
  );
}

/** @type {(frame: Frame, kept: Kept) => HTMLElement} */
function choice(frame, kept) {
  const { survey, button } = frame, rule = survey.announcement.withdrawal, place = h("div", { class: "sent", tabindex: "-1" });
  const look = async () => {
    try {
      place.replaceChildren(...shown(frame, await survey.look()));
    } catch (error) {
      return failed(frame, "look.title", error);
    }
    if (both) whole.replaceChildren(h("p", { class: "note" }, say("look.given")), place);
    else see.remove();
    return place.focus();
  };
  const closed = survey.state === "closed", able = kept.key !== null && !closed, both = able && rule === "blind", level = both ? "h3" : "h2";
  const [withdraw, see] = [
    h("section", {}, h(level, {}, say("withdraw.title")), h("p", {}, say("withdraw.text")), confirmed(frame)),
    h("section", {}, h(level, {}, say("look.title")), h("p", {}, say(both ? "look.text" : "look.free")), button(say("look.act"), look)),
  ];
  const buttons = h("div", { class: "pair" }, see, able && withdraw);
  const why = kept.key !== null ? "withdraw.closed" : kept.byHand ? "withdraw.byhand" : "look.given";
  const gone = !able && rule !== "none" && h("p", { class: "note" }, say(why));
  const whole = h("div", {}, both && h("h2", {}, say("choice.title")), buttons, gone, place);
  return whole;
}

/** @param {unknown} error */
const reasonOf = (error) => (error instanceof Stop ? error.reason : error instanceof DOMException ? "store" : "unexpected");

/** @type {(frame: Frame, title: string, error: unknown) => void} */
const failed = (frame, title, error) => frame.show(say(title), h("p", { class: "warning" }, say(`stop.${reasonOf(error)}`)));

/** @param {Frame} frame */
function confirmed(frame) {
  const { button } = frame, place = h("div", { class: "buttons" });
  const sure = () => {
    place.replaceChildren(h("p", { role: "alert" }, say("withdraw.sure")), button(say("withdraw.act"), () => void takeBack(frame), "primary"), button(say("withdraw.keep"), first));
    place.querySelector("button")?.focus();
  };
  const first = () => place.replaceChildren(button(say("withdraw.act"), sure));
  first();
  return place;
}

/** @param {Frame} frame */
async function takeBack(frame) {
  const status = h("p", { role: "status" }, say("withdraw.now"));
  frame.show(say("withdraw.title"), status);
  try {
    await frame.survey.withdraw(({ seconds }) => status.replaceChildren(say("sending.waiting", { count: seconds })));
  } catch (error) { // another tab was first, or the store fails
    return failed(frame, "withdraw.title", error);
  }
  return receipt(frame);
}

/** @type {(frame: Frame, kept: Kept) => HTMLElement[]} */
function shown({ survey, wordsOf }, kept) {
  const { collection } = survey, { value } = JSON.parse(String(kept.text));
  /** @type {(name: string, cell: number) => string} */
  const label = (name, cell) => labelOf((collection.choices(name) ?? [])[cell], wordsOf(name).answers);
  /** @type {(cells: [string, number][]) => HTMLElement} */
  const answered = (cells) => h("dl", {}, ...cells.flatMap(([name, cell]) => [h("dt", {}, wordsOf(name).wording), h("dd", {}, label(name, cell))]));
  let words = "sent.coded", told = null;
  if (collection.kind === "questionnaire") {
    words = "sent.answers";
    told = answered(collection.names.map((name, k) => [name, value[k]]));
  } else if (collection.asked(kept.question).every((name) => collection.choices(name))) {
    const { mechanism, parameters } = collection.document.questions[kept.question], [{ sent }] = factsOf(collection, kept.question);
    const cells = sent === "noise" ? [] : listed(mechanism, parameters, value).map((cell) => namedCells(collection, kept.question, cell));
    if (sent === "answers") [words, told] = ["sent.answers", answered(cells[0])];
    else if (cells.length) [words, told] = ["sent.list", h("ul", { class: "list", tabindex: "0", "aria-label": say("sent.title") }, ...cells.map((one) => h("li", {}, one.map(([name, cell]) => label(name, cell)).join(" · "))))];
  }
  return [h("h2", {}, say("sent.title")), h("p", {}, say(words)), ...(told ? [told] : []),
    h("pre", { tabindex: "0", "aria-label": say("sent.message") }, String(kept.text))];
}

/**
 * A cell of a question of a plan as the answers that it stands for.
 * @type {(collection: import("./draw.js").Collection, question: number, cell: number) => [string, number][]}
 */
function namedCells(collection, question, cell) {
  const names = collection.asked(question);
  /** @type {[string, number][]} */
  const found = [];
  let left = cell;
  for (const name of [/** @type {string} */ (names.at(-1)), ...names.slice(0, -1)].reverse()) { // the class varies slowest
    const size = collection.choices(name)?.length ?? 1;
    found.unshift([name, left % size]);
    left = Math.floor(left / size);
  }
  return found;
}
