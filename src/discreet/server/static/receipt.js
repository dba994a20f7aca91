// @ts-check
/**
 * After sending: what became of the report, and the choice to look at it or to keep the right to
 * withdraw it.
 *
 * @module receipt
 */

import { labelOf } from "./questions.js";
import { Stop } from "./respond.js";
import { factsOf } from "./promise.js";
import { day, h, known, paragraphs, say } from "./show.js";

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
  const closes = survey.announcement.closes;
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
      h("li", {}, say("receipt.once"))),
    h("details", {}, h("summary", {}, say("receipt.details")),
      h("dl", {}, ...[[say("receipt.id"), kept.id], [say("exact.document"), kept.collection], [say("exact.code"), frame.code]]
        .flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, h("code", {}, text))])),
      h("p", {}, h("a", { href: `${about}#check` }, say("footer.check")))),
    kept.text !== null && h("details", {}, h("summary", {}, say("forget.title")), h("p", {}, say("forget.text")),
      button(say("forget.act"), async () => { await survey.forget(); receipt(frame); })),
  );
}

/** @type {(frame: Frame, kept: Kept) => HTMLElement} */
function choice(frame, kept) {
  const { survey, button } = frame, rule = survey.announcement.withdrawal, place = h("div", { class: "sent", tabindex: "-1" });
  const look = async () => {
    try {
      place.replaceChildren(...shown(frame, await survey.look()));
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
      return frame.show(say("look.title"), h("p", { class: "warning" }, say(`stop.${error.reason}`)));
    }
    if (both) whole.replaceChildren(h("p", { class: "note" }, say("look.given")), place);
    else see.remove();
    return place.focus();
  };
  const both = kept.key !== null && rule === "blind", level = both ? "h3" : "h2";
  const [withdraw, see] = [
    h("section", {}, h(level, {}, say("withdraw.title")), h("p", {}, say("withdraw.text")), confirmed(frame)),
    h("section", {}, h(level, {}, say("look.title")), h("p", {}, say(both ? "look.text" : "look.free")), button(say("look.act"), look)),
  ];
  const buttons = h("div", { class: "pair" }, see, kept.key !== null && withdraw);
  const gone = kept.key === null && rule !== "none" && h("p", { class: "note" }, say(kept.byHand ? "withdraw.byhand" : "look.given"));
  const whole = h("div", {}, both && h("h2", {}, say("choice.title")), buttons, gone, place);
  return whole;
}

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
  } catch (error) { // another tab was first
    if (!(error instanceof Stop)) throw error;
    return frame.show(say("withdraw.title"), h("p", { class: "warning" }, say(`stop.${error.reason}`)));
  }
  return receipt(frame);
}

/** @type {(frame: Frame, kept: Kept) => HTMLElement[]} */
function shown({ survey, wordsOf }, kept) {
  const { collection } = survey, { value } = JSON.parse(String(kept.text));
  /** @type {[string, number][]} */
  const cells = [];
  if (collection.kind === "questionnaire") collection.names.forEach((name, k) => cells.push([name, value[k]]));
  else if (factsOf(collection, kept.question)[0].sent === "answers" && collection.asked(kept.question).every((name) => collection.choices(name))) {
    const names = collection.asked(kept.question);
    const order = [names.at(-1), ...names.slice(0, -1)]; // the class varies slowest
    let left = value[0];
    for (const name of order.reverse()) {
      const size = collection.choices(String(name))?.length ?? 1;
      cells.unshift([String(name), left % size]);
      left = Math.floor(left / size);
    }
  }
  const list = cells.flatMap(([name, cell]) => {
    const choices = collection.choices(name), words = wordsOf(name);
    return [h("dt", {}, words.wording), h("dd", {}, choices ? labelOf(choices[cell], words.answers) : String(cell))];
  });
  return [h("h2", {}, say("sent.title")), h("p", {}, say(list.length ? "sent.answers" : "sent.coded")), ...(list.length ? [h("dl", {}, ...list)] : []),
    h("pre", { tabindex: "0", "aria-label": say("sent.message") }, String(kept.text))];
}
