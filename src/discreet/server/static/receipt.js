// @ts-check
/**
 * The screen after sending: the state of the report, and the choice to look at it or to keep the right
 * to withdraw it.
 *
 * @module receipt
 */

import { listCells } from "./practice.js";
import { formatChoice } from "./questions.js";
import { SurveyError } from "./respond.js";
import { describeProtection } from "./promise.js";
import { formatDay, h, hasText, makeExternalLink, makeParagraphs, say } from "./show.js";

/** @import { StoredReport } from "./keep.js" */
/** @import { Survey } from "./respond.js" */
/** @import { GetWords } from "./questions.js" */

/**
 * @typedef {object} ReceiptContext What the page provides.
 * @property {Survey} survey
 * @property {(heading: string, ...content: any[]) => void} renderScreen
 * @property {(label: string, onClick: () => void, kind?: string) => HTMLButtonElement} makeButton
 * @property {{ thanks?: string }} announcedWords
 * @property {GetWords} getWords
 * @property {string} aboutUrl
 * @property {string} code
 * @property {() => Promise<void>} deliverReport
 */

/** @param {ReceiptContext} context */
export function renderReceipt(context) {
  const { survey, renderScreen, makeButton, announcedWords, aboutUrl } = context, report = /** @type {StoredReport} */ (survey.storedReport);
  if (report.state === "refused") {
    const reason = hasText(`refused.${report.reason}`) ? report.reason : "other";
    return renderScreen(say("refused.title"), h("p", { class: "warning" }, say(`refused.${reason}`)), h("p", {}, say("refused.kept")),
      h("div", { class: "buttons" }, makeButton(say("sending.again"), async () => { await context.deliverReport(); renderReceipt(context); }, "primary")));
  }
  if (report.state === "withdrawn") return renderScreen(say("withdrawn.title"), h("p", {}, say("withdrawn.text")));
  if (report.state === "withdrawing") return void withdrawReport(context);
  const { closes, deletes } = survey.announcement;
  return renderScreen(
    say("receipt.title"),
    h("p", { class: "promise" }, say("receipt.text")),
    ...makeParagraphs(announcedWords.thanks ?? ""),
    report.reason && h("p", { class: "warning" }, say("receipt.stays")),
    report.text !== null && makeChoiceSection(context, report),
    report.text === null && h("p", {}, say("receipt.forgotten")),
    h("h2", {}, say("receipt.next")),
    h("ul", {},
      h("li", {}, say("receipt.batch", { count: survey.announcement.batch })),
      h("li", {}, closes ? say("receipt.closes", { day: formatDay(closes) }) : say("receipt.open")),
      h("li", {}, deletes ? say("deletes.day", { day: formatDay(deletes) }) : say("deletes.none")),
      h("li", {}, say("receipt.once"))),
    h("details", {}, h("summary", {}, say("receipt.details")),
      h("dl", {}, ...[[say("receipt.id"), report.id], [say("exact.announced"), survey.announcement.digest], [say("exact.document"), report.collection], [say("exact.code"), context.code]]
        .flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, h("code", {}, text))])),
      h("p", {}, makeExternalLink(`${aboutUrl}#check`, say("footer.check")))),
    report.text !== null && h("details", {}, h("summary", {}, say("forget.title")), h("p", {}, say("forget.text")),
      makeButton(say("forget.act"), () => survey.forgetReport().then(() => renderReceipt(context), (error) => renderFailure(context, "forget.title", error)))),
  );
}

/** @type {(context: ReceiptContext, report: StoredReport) => HTMLElement} */
function makeChoiceSection(context, report) {
  const { survey, makeButton } = context, withdrawalRule = survey.announcement.withdrawal, messageArea = h("div", { class: "sent", tabindex: "-1" });
  const showReport = async () => {
    try {
      messageArea.replaceChildren(...describeReport(context, await survey.lookAtReport()));
    } catch (error) {
      return renderFailure(context, "look.title", error);
    }
    if (offersChoice) choiceSection.replaceChildren(h("p", { class: "note" }, say("look.given")), messageArea);
    else lookSection.remove();
    return messageArea.focus();
  };
  const isClosed = survey.state === "closed", canWithdraw = report.key !== null && !isClosed, offersChoice = canWithdraw && withdrawalRule === "blind", sectionHeadingTag = offersChoice ? "h3" : "h2";
  const [withdrawSection, lookSection] = [
    h("section", {}, h(sectionHeadingTag, {}, say("withdraw.title")), h("p", {}, say("withdraw.text")), makeWithdrawButtons(context)),
    h("section", {}, h(sectionHeadingTag, {}, say("look.title")), h("p", {}, say(offersChoice ? "look.text" : "look.free")), makeButton(say("look.act"), showReport)),
  ];
  const buttons = h("div", { class: "pair" }, lookSection, canWithdraw && withdrawSection);
  const reasonKey = report.key !== null ? "withdraw.closed" : report.byHand ? "withdraw.byhand" : "look.given";
  const withdrawalNote = !canWithdraw && withdrawalRule !== "none" && h("p", { class: "note" }, say(reasonKey));
  const choiceSection = h("div", {}, offersChoice && h("h2", {}, say("choice.title")), buttons, withdrawalNote, messageArea);
  return choiceSection;
}

/** @param {unknown} error */
const findStopReason = (error) => (error instanceof SurveyError ? error.reason : error instanceof DOMException ? "store" : "unexpected");

/** @type {(context: ReceiptContext, title: string, error: unknown) => void} */
const renderFailure = (context, title, error) => context.renderScreen(say(title), h("p", { class: "warning" }, say(`stop.${findStopReason(error)}`)));

/** @param {ReceiptContext} context */
function makeWithdrawButtons(context) {
  const { makeButton } = context, buttons = h("div", { class: "buttons" });
  const askForConfirmation = () => {
    buttons.replaceChildren(h("p", { role: "alert" }, say("withdraw.sure")), makeButton(say("withdraw.act"), () => void withdrawReport(context), "primary"), makeButton(say("withdraw.keep"), showWithdrawButton));
    buttons.querySelector("button")?.focus();
  };
  const showWithdrawButton = () => buttons.replaceChildren(makeButton(say("withdraw.act"), askForConfirmation));
  showWithdrawButton();
  return buttons;
}

/** @param {ReceiptContext} context */
async function withdrawReport(context) {
  const statusLine = h("p", { role: "status" }, say("withdraw.now"));
  context.renderScreen(say("withdraw.title"), statusLine);
  try {
    await context.survey.withdrawReport(({ seconds }) => statusLine.replaceChildren(say("sending.waiting", { count: seconds })));
  } catch (error) { // another tab was first, or the store fails
    return renderFailure(context, "withdraw.title", error);
  }
  return renderReceipt(context);
}

/** @type {(context: ReceiptContext, report: StoredReport) => HTMLElement[]} */
function describeReport({ survey, getWords }, report) {
  const { collection } = survey, { value } = JSON.parse(String(report.text));
  /** @type {(name: string, cell: number) => string} */
  const formatCell = (name, cell) => formatChoice((collection.choices(name) ?? [])[cell], getWords(name).answers);
  /** @type {(cells: [string, number][]) => HTMLElement} */
  const listAnswers = (cells) => h("dl", {}, ...cells.flatMap(([name, cell]) => [h("dt", {}, getWords(name).wording), h("dd", {}, formatCell(name, cell))]));
  let textKey = "sent.coded", answerList = null;
  if (describeProtection(collection, report.question).some(({ sent }) => sent === "verdict")) {
    const { mechanism, parameters } = collection.document.questions[report.question], cells = listCells(mechanism, parameters, value);
    textKey = cells.length === 1 ? (cells[0] ? "sent.right" : "sent.wrong") : "sent.coded";
  } else if (collection.isSheet) {
    textKey = "sent.answers";
    answerList = listAnswers(collection.names.map((name, k) => [name, value[k]]));
  } else if (collection.asked(report.question).every((name) => collection.choices(name))) {
    const { mechanism, parameters } = collection.document.questions[report.question], [{ sent }] = describeProtection(collection, report.question);
    const cells = sent === "noise" ? [] : listCells(mechanism, parameters, value).map((cell) => splitCell(collection, report.question, cell));
    if (sent === "answers") [textKey, answerList] = ["sent.answers", listAnswers(cells[0])];
    else if (cells.length) [textKey, answerList] = ["sent.list", h("ul", { class: "list", tabindex: "0", "aria-label": say("sent.title") }, ...cells.map((cellAnswers) => h("li", {}, cellAnswers.map(([name, cell]) => formatCell(name, cell)).join(" · "))))];
  }
  return [h("h2", {}, say("sent.title")), h("p", {}, say(textKey)), ...(answerList ? [answerList] : []),
    h("pre", { tabindex: "0", "aria-label": say("sent.message") }, String(report.text))];
}

/**
 * Split a cell of a plan's question into its answers.
 * @type {(collection: import("./draw.js").Collection, question: number, cell: number) => [string, number][]}
 */
function splitCell(collection, question, cell) {
  const names = collection.asked(question);
  /** @type {[string, number][]} */
  const answers = [];
  let remainder = cell;
  for (const name of [/** @type {string} */ (names.at(-1)), ...names.slice(0, -1)].reverse()) { // the class varies slowest
    const size = collection.choices(name)?.length ?? 1;
    answers.unshift([name, remainder % size]);
    remainder = Math.floor(remainder / size);
  }
  return answers;
}
