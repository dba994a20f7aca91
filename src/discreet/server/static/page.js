// @ts-check
/**
 * The respondent's page: five steps, one screen at a time. Answers are held in memory only, and are
 * wiped when the page is left and when they have been drawn from.
 *
 * @module page
 */

import { DrawError } from "./draw.js";
import { makeAnswerKey, makeQuestionForm } from "./questions.js";
import { makeHandScreens } from "./hand.js";
import { BudgetError, DeviceStore } from "./keep.js";
import { renderPractice } from "./practice.js";
import { countPeople, describeProtection, posteriorOf } from "./promise.js";
import { renderReceipt } from "./receipt.js";
import { parseLink, Survey, SurveyError } from "./respond.js";
import { chooseLanguage, drawHundredPeople, formatDay, formatNumber, h, loadLanguage, makeExternalLink, makeParagraphs, say } from "./show.js";

/** @import { JsonObject, PartProtection } from "./types.js" */
/** @import { QuestionScreen } from "./questions.js" */

/** @param {string} name */
const readSetting = (name) => /** @type {HTMLMetaElement | null} */ (document.querySelector(`meta[name="${name}"]`))?.content ?? "";

const WEAK_EPSILON = 5; // above this epsilon the page warns that the protection is weak
const EXAMPLE_PRIOR = 0.1; // probability of a statement before the message, in the example of the review
const SECONDS_PER_QUESTION = 20; // for the estimated time of answering
const mainElement = /** @type {HTMLElement} */ (document.querySelector("main"));
const collectorUrl = readSetting("discreet-collector");
const previewPath = /^\/desk\/([^/]+)\/preview\/?$/.exec(location.pathname);
const surveyName = readSetting("discreet-survey") || (previewPath ? previewPath[1] : location.pathname.replace(/\/+$/, "").split("/").pop());
const aboutUrl = `${collectorUrl}/s/${surveyName}/about`;

/** @type {Survey} */
let survey;
/** @type {Map<string, any>} */
const answers = new Map();
let language = "en", byHand = false, step = 0, isSending = false, hasAnswered = false;
/** @type {unknown} Why this survey cannot be answered here, once that is known. */
let stopError;

// ---------------------------------------------------------------- words of the collector

/** @returns {JsonObject} */
const announcedWords = () => survey.announcement.words[language] ?? {};
const getTitle = () => announcedWords().title || survey.collection.document.title || surveyName;

/** @param {string} questionName @returns {{ wording: string, hint: string, answers: string[], personal: string }} */
function getWords(questionName) {
  const question = (survey.collection.document.questions ?? []).find((/** @type {JsonObject} */ entry) => entry.name === questionName) ?? {};
  const announced = announcedWords().questions?.[questionName] ?? {};
  return { wording: announced.wording || question.wording || questionName, hint: announced.hint ?? "", answers: announced.answers ?? [], personal: question.personal?.wording || questionName };
}

// ---------------------------------------------------------------- screens

/**
 * Show a screen and read its heading out.
 * @param {string} heading
 * @param {...any} content
 */
function renderScreen(heading, ...content) {
  const title = h("h1", { tabindex: "-1", id: "heading" }, heading);
  mainElement.replaceChildren(...content.filter((child) => child?.dataset?.above), title, ...content.filter((child) => child && !child.dataset?.above));
  document.title = `${heading} · ${survey ? getTitle() : document.title.split(" · ").pop()}`;
  title.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** @type {(label: string, onClick: () => void, kind?: string) => HTMLButtonElement} */
const makeButton = (label, onClick, kind = "") => h("button", { type: "button", class: kind, click: onClick }, label);
/** @param {string} text */
const makeProgressLine = (text) => h("p", { class: "progress", "data-above": "yes" }, text);

/** List the screens of questions. @returns {QuestionScreen[]} */
function listScreens() {
  const { collection } = survey;
  if (byHand) return makeHandScreens(collection, getWords) ?? [];
  const questionScreens = collection.asked(survey.question).map((name) => ({ names: [name], personal: false }));
  return [...questionScreens, ...collection.personal.map((name) => ({ names: [name], personal: true }))];
}

/** @param {number} targetStep */
function goTo(targetStep) {
  history.pushState({ at: targetStep }, "");
  renderStep(targetStep);
}

/** @param {number} targetStep 0 start, 1 … n questions, then the review. */
function renderStep(targetStep) {
  step = targetStep;
  if (stopError) return renderFailure(stopError);
  if (survey.storedReport || hasAnswered) return void renderOutcome().catch(renderFailure);
  const screens = listScreens(), firstOpenIndex = screens.findIndex(({ names, personal }) => !names.every((name) => answers.has(makeAnswerKey(name, personal))));
  if (targetStep === 0) return renderStart();
  if (firstOpenIndex >= 0 && targetStep > firstOpenIndex) return renderQuestion(screens, firstOpenIndex + 1); // answers were wiped, but the history of the browser leads here
  return targetStep <= screens.length ? renderQuestion(screens, targetStep) : void renderReview().catch(renderFailure);
}

function renderStart() {
  const { announcement, collection } = survey, { introduction, purpose } = announcedWords();
  const count = listScreens().reduce((sum, screen) => sum + screen.names.length, 0), minutes = Math.max(1, Math.ceil(count * SECONDS_PER_QUESTION / 60));
  const device = collection.document.device, handScreens = device !== undefined && device !== "software" && makeHandScreens(collection, getWords);
  const isVerdict = describeProtection(collection, survey.question).some(({ sent }) => sent === "verdict");
  const promiseKey = device === "hand" ? "start.promise.hand" : isVerdict ? "start.promise.verdict" : "start.promise";
  const startAnswering = (/** @type {boolean} */ usesHand) => { if (usesHand !== byHand) answers.clear(); byHand = usesHand; goTo(1); };
  renderScreen(
    getTitle(),
    survey.preview && h("p", { class: "note" }, say("preview.note")),
    collection.void.length > 0 && h("p", { class: "warning" }, say("start.unprotected")),
    announcement.asks && h("p", { class: "asks" }, say("start.asks", { who: announcement.asks })),
    ...makeParagraphs(introduction || collection.document.introduction || ""),
    ...makeParagraphs(purpose ?? ""),
    collection.void.length === 0 && h("p", { class: "promise" }, say(promiseKey)),
    collection.void.length === 0 && collection.epsilon > WEAK_EPSILON && h("p", { class: "warning" }, say("weak")),
    survey.hasAnsweredEarlier && h("p", { class: "note" }, say("start.earlier")),
    h("ul", { class: "facts" },
      h("li", {}, say("start.questions", { count })), h("li", {}, say("start.minutes", { count: minutes })),
      h("li", {}, say("start.voluntary")),
      announcement.closes && h("li", {}, say("start.closes", { day: formatDay(announcement.closes) })),
      announcement.deletes && h("li", {}, say("start.deletes", { day: formatDay(announcement.deletes) })),
      announcement.contact && h("li", {}, say("start.contact", { contact: announcement.contact }))),
    h("div", { class: "buttons" },
      device !== "hand" && makeButton(say("start.begin"), () => startAnswering(false), "primary"),
      handScreens && makeButton(say("start.hand"), () => startAnswering(true), device === "hand" ? "primary" : ""),
      device !== "hand" && collection.void.length === 0 && makeButton(say("start.practice"), () => { history.pushState({ at: 0 }, ""); renderPractice(renderScreen, collection, survey.question, () => history.back()); })),
  );
  if (device === "hand" && !handScreens) renderScreen(getTitle(), h("p", { class: "warning" }, say("stop.hand")));
}

/** @param {QuestionScreen[]} screens @param {number} targetStep */
function renderQuestion(screens, targetStep) {
  const screen = screens[targetStep - 1];
  const { form, heading } = makeQuestionForm(survey.collection, screen, getWords, answers, () => goTo(targetStep + 1));
  form.append(h("div", { class: "buttons" },
    h("button", { type: "submit", class: "primary" }, say("next")), makeButton(say("back"), () => history.back())));
  renderScreen(heading, makeProgressLine(say(byHand ? "question.part" : "question.progress", { count: targetStep, total: screens.length })), form);
}

/** @type {(protection: PartProtection, partNumber: number | null) => HTMLElement} */
function makeProtectionSection(protection, partNumber) {
  const truthCount = countPeople(protection.truth ?? posteriorOf(0.5, protection.epsilon)), otherCount = 100 - truthCount;
  const othersInSet = protection.other === null ? 0 : Math.max(0, Math.floor(protection.other * 100 + 1e-9));
  return h("section", { class: "part" },
    partNumber !== null && h("h2", {}, say("review.part", { count: partNumber })),
    partNumber !== null && h("ul", { class: "about" }, ...protection.names.map((name) => h("li", {}, getWords(name).wording))),
    drawHundredPeople(truthCount, say(`review.${protection.sent}`, { count: truthCount, rest: otherCount }), [say(`review.${protection.sent}.true`, { count: truthCount }), say(`review.${protection.sent}.other`, { count: otherCount })]),
    protection.sent === "set" && othersInSet > 0 && h("p", {}, say("review.set.others", { count: othersInSet })));
}

async function renderReview() {
  const { collection, store, place, question } = survey;
  const budget = await store.readBudget(place, collection.epsilon), exceedsLimit = budget.total > budget.allowed * (1 + 1e-9);
  const protections = describeProtection(collection, question), isProtected = collection.epsilon < Infinity;
  const consentBox = h("input", { type: "checkbox", id: "allow", "aria-describedby": "problem" });
  const problemLine = h("p", { class: "problem", id: "problem", role: "alert" });
  const posteriorCount = countPeople(posteriorOf(EXAMPLE_PRIOR, collection.epsilon));
  const submitReview = () => {
    if (exceedsLimit && !consentBox.checked) {
      problemLine.replaceChildren(say("budget.needed"));
      return consentBox.focus();
    }
    return void drawAndSend(exceedsLimit ? budget.total : undefined);
  };
  renderScreen(
    say("review.title"),
    byHand && h("p", {}, say("review.byhand")),
    ...protections.map((protection, k) => makeProtectionSection(protection, protections.length > 1 ? k + 1 : null)),
    isProtected ? h("p", { class: "promise" }, say("review.limit", { before: 100 * EXAMPLE_PRIOR, after: posteriorCount }))
      : h("p", { class: "warning" }, say("start.unprotected")),
    isProtected && collection.epsilon > WEAK_EPSILON && h("p", { class: "warning" }, say("weak")),
    ...makeTrafficNotes(),
    makeExactDetails(protections),
    exceedsLimit && h("div", { class: "budget" },
      h("h2", {}, say("budget.title")),
      h("p", {}, say("budget.text", { count: budget.otherSurveys, before: 100 * EXAMPLE_PRIOR, after: countPeople(posteriorOf(EXAMPLE_PRIOR, budget.total)), epsilon: formatRoundedUp(budget.total), allowed: formatRoundedUp(budget.allowed) })),
      h("label", { for: "allow", class: "choice" }, consentBox, h("span", {}, say("budget.allow")))),
    problemLine,
    h("div", { class: "buttons" }, makeButton(say(byHand ? "review.send.hand" : "review.send"), submitReview, "primary"), makeButton(say("back"), () => history.back())),
  );
}

/** Round up, towards less protection. @param {number} value */
const formatRoundedUp = (value) => formatNumber(Math.ceil(value * 1000 - 1e-6) / 1000, 4);

const makeTrafficNotes = () => [
  h("h2", {}, say("seen.title")),
  h("ul", {}, ...["seen.time", "seen.address", "seen.message"].map((key) => h("li", {}, say(key)))),
  h("p", {}, say("seen.not")),
];

/** @param {PartProtection[]} protections */
function makeExactDetails(protections) {
  const { collection, announcement } = survey;
  const rows = protections.flatMap((protection, k) => [
    [say("exact.mechanism", { count: k + 1 }), protection.mechanism],
    [say("exact.epsilon"), formatRoundedUp(protection.epsilon)],
    ...(protection.truth === null ? [] : [[say("exact.truth"), String(protection.truth)]]),
    ...(protection.other === null ? [] : [[say("exact.other"), String(protection.other)]]),
  ]);
  rows.push([say("exact.total"), formatRoundedUp(collection.epsilon)], [say("exact.announced"), announcement.digest], [say("exact.document"), announcement.collection], [say("exact.code"), readSetting("discreet-code")]);
  return h("details", {}, h("summary", {}, say("exact.title")),
    h("dl", {}, ...rows.flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, h("code", {}, text))])),
    h("p", {}, makeExternalLink(`${survey.address}/document`, say("exact.read")), " · ", makeExternalLink(`${aboutUrl}#check`, say("footer.check"))));
}

// ---------------------------------------------------------------- sending and after

/** @param {number | undefined} newLimit */
async function drawAndSend(newLimit) {
  if (survey.preview) {
    wipeAnswers();
    return renderScreen(say("preview.title"), h("p", {}, say("preview.end")), h("div", { class: "buttons" }, makeButton(say("start.begin"), () => goTo(0), "primary")));
  }
  if (isSending) return;
  isSending = true;
  try {
    const answersByName = Object.fromEntries([...answers].filter(([key]) => !key.startsWith("personal|")));
    const personalAnswers = [...answers].filter(([key]) => key.startsWith("personal|")).map(([key, answer]) => [key.slice(9), answer]);
    await survey.drawReport(answersByName, { byHand, newLimit, ...(personalAnswers.length && !byHand ? { personal: Object.fromEntries(personalAnswers) } : {}) });
    wipeAnswers();
    history.replaceState({ at: 0 }, "");
    await renderOutcome();
  } catch (error) {
    if (error instanceof BudgetError) return void renderReview().catch(renderFailure);
    renderFailure(error);
  } finally {
    isSending = false;
  }
}

function wipeAnswers() {
  answers.clear();
  document.querySelector("form")?.reset();
}

/** Send a stored report that was not sent yet, then show its state. */
async function renderOutcome() {
  hasAnswered = true;
  if (survey.storedReport?.state === "kept") await deliverReport();
  renderReceipt({ survey, renderScreen, makeButton, announcedWords: announcedWords(), getWords, aboutUrl, code: readSetting("discreet-code"), deliverReport });
}

async function deliverReport() {
  const statusLine = h("p", { role: "status" }, say("sending.now"));
  const retryButtons = h("div", { class: "buttons" });
  renderScreen(say("sending.title"), statusLine, h("p", {}, say("sending.kept")), retryButtons);
  await survey.sendReport(({ seconds, retry }) => {
    statusLine.replaceChildren(say(navigator.onLine ? "sending.waiting" : "sending.offline", { count: seconds }));
    retryButtons.replaceChildren(makeButton(say("sending.again"), () => { statusLine.replaceChildren(say("sending.now")); retry(); }, "primary"));
  });
}

// ---------------------------------------------------------------- what stops us

/** @param {unknown} error */
function renderFailure(error) {
  stopError = error;
  const reason = error instanceof SurveyError ? error.reason : error instanceof DrawError ? "document" : error instanceof DOMException ? "store" : "unexpected";
  if (reason === "invitation" || reason === "unknown") return renderInvitation(reason);
  const detail = error instanceof Error && !["SurveyError"].includes(error.name) ? `${error.name}: ${error.message}` : "";
  renderScreen(say("stop.title"), h("p", { class: "warning" }, say(`stop.${reason}`)), h("p", {}, say("stop.nothing")),
    detail && h("details", {}, h("summary", {}, say("exact.title")), h("code", {}, detail)),
    ["offline", "server", "too-many"].includes(reason) && h("div", { class: "buttons" }, makeButton(say("stop.again"), () => location.reload(), "primary")));
}

/** @param {string} reason */
function renderInvitation(reason) {
  const problemLine = h("p", { class: "problem", id: "problem", role: "alert" }, reason === "unknown" ? say("invitation.unknown") : "");
  const codeField = h("input", { id: "code", autocomplete: "off", autocapitalize: "none", spellcheck: "false", "aria-describedby": "problem", required: true });
  const submitCode = async (/** @type {Event} */ event) => {
    event.preventDefault();
    await survey.enterCode(codeField.value).then(beginSurvey, renderFailure);
  };
  renderScreen(getTitle(), h("p", {}, say("invitation.text")), h("form", { submit: submitCode, novalidate: true },
    h("label", { for: "code" }, say("invitation.code")), codeField, problemLine,
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, say("next")))));
}

// ---------------------------------------------------------------- opening

async function beginSurvey() {
  stopError = undefined;
  try {
    if (survey.storedReport) return await renderOutcome();
    await survey.begin();
    history.replaceState({ at: 0 }, "");
    renderStep(0);
  } catch (error) {
    renderFailure(error);
  }
}

/** @param {string[]} offered */
function renderLanguages(offered) {
  const header = document.querySelector("header");
  if (offered.length < 2 || !header) return;
  const changeLanguage = async (/** @type {any} */ event) => {
    try {
      await loadLanguage(event.target.value);
    } catch { // its words cannot be fetched now
      event.target.value = language;
      return;
    }
    language = event.target.value;
    renderFooter();
    if (!isSending && survey) renderStep(step);
  };
  const languageOptions = offered.map((tag) => h("option", { value: tag, selected: tag === language, lang: tag }, new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag));
  header.replaceChildren(h("label", { for: "language" }, say("language")), h("select", { id: "language", change: changeLanguage }, ...languageOptions));
}

function renderFooter() {
  const footer = document.querySelector("footer");
  footer?.replaceChildren(makeExternalLink(aboutUrl, say("footer.seen")), " · ", makeExternalLink(`${aboutUrl}#check`, say("footer.check")),
    h("p", { class: "fingerprint" }, say("footer.code"), " ", h("code", {}, readSetting("discreet-code"))));
  const languageLabel = document.querySelector("header label");
  if (languageLabel) languageLabel.textContent = say("language");
}

async function openSurvey() {
  const wordsLoading = loadLanguage(chooseLanguage(Array.from(document.querySelectorAll("link[data-words]"), (link) => /** @type {HTMLLinkElement} */ (link).hreflang), "en"));
  const link = parseLink(location.hash);
  // the code stays in no address; the digest, the same for everyone, is compared again after a reload
  if (location.hash) history.replaceState(null, "", location.pathname + location.search + (link.digest && `#d=${link.digest}`));
  try {
    if (!isSecureContext || !crypto.subtle) throw new SurveyError("insecure");
    const store = DeviceStore.open().catch(() => { throw new SurveyError("store"); });
    const surveyOpening = Survey.open(`${collectorUrl || location.origin}/api/v1/surveys/${surveyName}`, store, link, previewPath !== null);
    [survey] = await Promise.all([surveyOpening, store, wordsLoading]);
    const { words, language: defaultLanguage } = survey.announcement, offered = Object.keys(words);
    language = chooseLanguage(offered, defaultLanguage || "en");
    await loadLanguage(language);
    renderLanguages(offered);
    renderFooter();
  } catch (error) {
    await wordsLoading;
    return renderFailure(error);
  }
  await beginSurvey();
}

addEventListener("popstate", (event) => survey && !isSending && renderStep(event.state?.at ?? 0));
addEventListener("pagehide", wipeAnswers);
addEventListener("pageshow", (event) => event.persisted && location.reload());
addEventListener("hashchange", () => location.hash && location.reload()); // another invitation in the same tab
await openSurvey();
