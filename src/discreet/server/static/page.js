// @ts-check
/**
 * The respondent's page: five steps, one screen at a time. Answers are held in memory only, and are
 * wiped when the page is left and when they have been drawn from.
 *
 * @module page
 */

import { DrawError } from "./draw.js";
import { asker, keyOf } from "./questions.js";
import { handSteps } from "./hand.js";
import { BudgetError, Keep } from "./keep.js";
import { practice } from "./practice.js";
import { factsOf, outOf, posteriorOf } from "./promise.js";
import { receipt } from "./receipt.js";
import { linkOf, Stop, Survey } from "./respond.js";
import { aside, day, h, hundred, number, paragraphs, preferred, say, speak } from "./show.js";

/** @import { Fact, Plain } from "./types" */
/** @import { Asked } from "./questions.js" */

/** @param {string} name */
const setting = (name) => /** @type {HTMLMetaElement | null} */ (document.querySelector(`meta[name="${name}"]`))?.content ?? "";

const WEAK = 5, PRIOR = 0.1, SECONDS = 20;
const main = /** @type {HTMLElement} */ (document.querySelector("main"));
const collector = setting("discreet-collector");
const name = setting("discreet-survey") || location.pathname.replace(/\/+$/, "").split("/").pop();
const about = `${collector}/s/${name}/about`;

/** @type {Survey} */
let survey;
/** @type {Map<string, any>} */
const answers = new Map();
let tongue = "en", byHand = false, at = 0, busy = false, done = false;
/** @type {unknown} Why this survey cannot be answered here, once that is known. */
let stopped;

// ---------------------------------------------------------------- words of the collector

/** @returns {Plain} */
const told = () => survey.announcement.words[tongue] ?? {};
const title = () => told().title || survey.collection.document.title || name;

/** @param {string} asked @returns {{ wording: string, hint: string, answers: string[], personal: string }} */
function wordsOf(asked) {
  const own = (survey.collection.document.questions ?? []).find((/** @type {Plain} */ one) => one.name === asked) ?? {};
  const words = told().questions?.[asked] ?? {};
  return { wording: words.wording || own.wording || asked, hint: words.hint ?? "", answers: words.answers ?? [], personal: own.personal?.wording || asked };
}

// ---------------------------------------------------------------- screens

/**
 * Show a screen and read its heading out.
 * @param {string} heading
 * @param {...any} content
 */
function show(heading, ...content) {
  const top = h("h1", { tabindex: "-1", id: "heading" }, heading);
  main.replaceChildren(...content.filter((one) => one?.dataset?.above), top, ...content.filter((one) => one && !one.dataset?.above));
  document.title = `${heading} · ${survey ? title() : document.title.split(" · ").pop()}`;
  top.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** @type {(label: string, act: () => void, kind?: string) => HTMLButtonElement} */
const button = (label, act, kind = "") => h("button", { type: "button", class: kind, click: act }, label);
/** @param {string} text */
const above = (text) => h("p", { class: "progress", "data-above": "yes" }, text);

/** @returns {Asked[]} What is asked, one screen each. */
function asked() {
  const { collection } = survey;
  if (byHand) return handSteps(collection, wordsOf) ?? [];
  const names = collection.asked(survey.question).map((one) => ({ names: [one], personal: false }));
  return [...names, ...collection.personal.map((one) => ({ names: [one], personal: true }))];
}

/** @param {number} to */
function go(to) {
  history.pushState({ at: to }, "");
  render(to);
}

/** @param {number} to 0 start, 1 … n questions, then the review. */
function render(to) {
  at = to;
  if (stopped) return failed(stopped);
  if (survey.kept || done) return void ended().catch(failed);
  const steps = asked(), open = steps.findIndex(({ names, personal }) => !names.every((one) => answers.has(keyOf(one, personal))));
  if (to === 0) return start();
  if (open >= 0 && to > open) return question(steps, open + 1); // answers were wiped, but the history of the browser leads here
  return to <= steps.length ? question(steps, to) : void review().catch(failed);
}

function start() {
  const { announcement, collection } = survey, { introduction, purpose } = told();
  const count = asked().reduce((sum, one) => sum + one.names.length, 0), minutes = Math.max(1, Math.ceil(count * SECONDS / 60));
  const hand = collection.document.device, able = hand !== undefined && hand !== "software" && handSteps(collection, wordsOf);
  const begin = (/** @type {boolean} */ own) => { if (own !== byHand) answers.clear(); byHand = own; go(1); };
  show(
    title(),
    collection.void.length > 0 && h("p", { class: "warning" }, say("start.unprotected")),
    announcement.asks && h("p", { class: "asks" }, say("start.asks", { who: announcement.asks })),
    ...paragraphs(introduction || collection.document.introduction || ""),
    ...paragraphs(purpose ?? ""),
    collection.void.length === 0 && h("p", { class: "promise" }, say(hand === "hand" ? "start.promise.hand" : "start.promise")),
    collection.void.length === 0 && collection.epsilon > WEAK && h("p", { class: "warning" }, say("weak")),
    survey.earlier && h("p", { class: "note" }, say("start.earlier")),
    h("ul", { class: "facts" },
      h("li", {}, say("start.questions", { count })), h("li", {}, say("start.minutes", { count: minutes })),
      h("li", {}, say("start.voluntary")),
      announcement.closes && h("li", {}, say("start.closes", { day: day(announcement.closes) })),
      announcement.deletes && h("li", {}, say("start.deletes", { day: day(announcement.deletes) })),
      announcement.contact && h("li", {}, say("start.contact", { contact: announcement.contact }))),
    h("div", { class: "buttons" },
      hand !== "hand" && button(say("start.begin"), () => begin(false), "primary"),
      able && button(say("start.hand"), () => begin(true), hand === "hand" ? "primary" : ""),
      hand !== "hand" && collection.void.length === 0 && button(say("start.practice"), () => { history.pushState({ at: 0 }, ""); practice(show, collection, survey.question, () => history.back()); })),
  );
  if (hand === "hand" && !able) show(title(), h("p", { class: "warning" }, say("stop.hand")));
}

/** @param {Asked[]} steps @param {number} to */
function question(steps, to) {
  const step = steps[to - 1];
  const { form, heading } = asker(survey.collection, step, wordsOf, answers, () => go(to + 1));
  form.append(h("div", { class: "buttons" },
    h("button", { type: "submit", class: "primary" }, say("next")), button(say("back"), () => history.back())));
  show(heading, above(say(byHand ? "question.part" : "question.progress", { count: to, total: steps.length })), form);
}

/** @type {(fact: Fact, part: number | null) => HTMLElement} */
function picture(fact, part) {
  const count = outOf(fact.truth ?? posteriorOf(0.5, fact.epsilon)), rest = 100 - count;
  const few = fact.other === null ? 0 : Math.max(0, Math.floor(fact.other * 100 + 1e-9));
  return h("section", { class: "part" },
    part !== null && h("h2", {}, say("review.part", { count: part })),
    part !== null && h("ul", { class: "about" }, ...fact.names.map((one) => h("li", {}, wordsOf(one).wording))),
    hundred(count, say(`review.${fact.sent}`, { count, rest }), [say(`review.${fact.sent}.true`, { count }), say(`review.${fact.sent}.other`, { count: rest })]),
    fact.sent === "set" && few > 0 && h("p", {}, say("review.set.others", { count: few })));
}

async function review() {
  const { collection, keep, place, question: drawn } = survey;
  const budget = await keep.budget(place, collection.epsilon), over = budget.total > budget.allowed * (1 + 1e-9);
  const facts = factsOf(collection, drawn), protects = collection.epsilon < Infinity;
  const tick = h("input", { type: "checkbox", id: "allow", "aria-describedby": "problem" });
  const problem = h("p", { class: "problem", id: "problem", role: "alert" });
  const limit = outOf(posteriorOf(PRIOR, collection.epsilon));
  const act = () => {
    if (over && !tick.checked) {
      problem.replaceChildren(say("budget.needed"));
      return tick.focus();
    }
    return void drawAndSend(over ? budget.total : undefined);
  };
  show(
    say("review.title"),
    byHand && h("p", {}, say("review.byhand")),
    ...facts.map((fact, k) => picture(fact, facts.length > 1 ? k + 1 : null)),
    protects ? h("p", { class: "promise" }, say("review.limit", { before: 100 * PRIOR, after: limit }))
      : h("p", { class: "warning" }, say("start.unprotected")),
    protects && collection.epsilon > WEAK && h("p", { class: "warning" }, say("weak")),
    ...seen(),
    exactly(facts),
    over && h("div", { class: "budget" },
      h("h2", {}, say("budget.title")),
      h("p", {}, say("budget.text", { count: budget.others, before: 100 * PRIOR, after: outOf(posteriorOf(PRIOR, budget.total)), epsilon: up(budget.total), allowed: up(budget.allowed) })),
      h("label", { for: "allow", class: "choice" }, tick, h("span", {}, say("budget.allow")))),
    problem,
    h("div", { class: "buttons" }, button(say(byHand ? "review.send.hand" : "review.send"), act, "primary"), button(say("back"), () => history.back())),
  );
}

/** @param {number} value Rounded up: towards less protection. */
const up = (value) => number(Math.ceil(value * 1000 - 1e-6) / 1000, 4);

const seen = () => [
  h("h2", {}, say("seen.title")),
  h("ul", {}, ...["seen.time", "seen.address", "seen.message"].map((key) => h("li", {}, say(key)))),
  h("p", {}, say("seen.not")),
];

/** @param {Fact[]} facts */
function exactly(facts) {
  const { collection, announcement } = survey;
  const rows = facts.flatMap((fact, k) => [
    [say("exact.mechanism", { count: k + 1 }), fact.mechanism],
    [say("exact.epsilon"), up(fact.epsilon)],
    ...(fact.truth === null ? [] : [[say("exact.truth"), String(fact.truth)]]),
    ...(fact.other === null ? [] : [[say("exact.other"), String(fact.other)]]),
  ]);
  rows.push([say("exact.total"), up(collection.epsilon)], [say("exact.announced"), announcement.digest], [say("exact.document"), announcement.collection], [say("exact.code"), setting("discreet-code")]);
  return h("details", {}, h("summary", {}, say("exact.title")),
    h("dl", {}, ...rows.flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, h("code", {}, text))])),
    h("p", {}, aside(`${survey.address}/document`, say("exact.read")), " · ", aside(`${about}#check`, say("footer.check"))));
}

// ---------------------------------------------------------------- sending and after

/** @param {number | undefined} allow */
async function drawAndSend(allow) {
  if (busy) return;
  busy = true;
  try {
    const given = Object.fromEntries([...answers].filter(([one]) => !one.startsWith("personal|")));
    const own = [...answers].filter(([one]) => one.startsWith("personal|")).map(([one, answer]) => [one.slice(9), answer]);
    await survey.draw(given, { byHand, allow, ...(own.length && !byHand ? { personal: Object.fromEntries(own) } : {}) });
    wipe();
    history.replaceState({ at: 0 }, "");
    await ended();
  } catch (error) {
    if (error instanceof BudgetError) return void review().catch(failed);
    failed(error);
  } finally {
    busy = false;
  }
}

function wipe() {
  answers.clear();
  document.querySelector("form")?.reset();
}

/** Whatever is kept is sent if it was not, and then its state is shown. */
async function ended() {
  done = true;
  if (survey.kept?.state === "kept") await deliver();
  receipt({ survey, show, button, words: told(), wordsOf, about, code: setting("discreet-code"), deliver });
}

async function deliver() {
  const status = h("p", { role: "status" }, say("sending.now"));
  const again = h("div", { class: "buttons" });
  show(say("sending.title"), status, h("p", {}, say("sending.kept")), again);
  await survey.send(({ seconds, now }) => {
    status.replaceChildren(say(navigator.onLine ? "sending.waiting" : "sending.offline", { count: seconds }));
    again.replaceChildren(button(say("sending.again"), () => { status.replaceChildren(say("sending.now")); now(); }, "primary"));
  });
}

// ---------------------------------------------------------------- what stops us

/** @param {unknown} error */
function failed(error) {
  stopped = error;
  const reason = error instanceof Stop ? error.reason : error instanceof DrawError ? "document" : error instanceof DOMException ? "store" : "unexpected";
  if (reason === "invitation" || reason === "unknown") return invitation(reason);
  const detail = error instanceof Error && !["Stop"].includes(error.name) ? `${error.name}: ${error.message}` : "";
  show(say("stop.title"), h("p", { class: "warning" }, say(`stop.${reason}`)), h("p", {}, say("stop.nothing")),
    detail && h("details", {}, h("summary", {}, say("exact.title")), h("code", {}, detail)),
    ["offline", "server", "too-many"].includes(reason) && h("div", { class: "buttons" }, button(say("stop.again"), () => location.reload(), "primary")));
}

/** @param {string} reason */
function invitation(reason) {
  const problem = h("p", { class: "problem", id: "problem", role: "alert" }, reason === "unknown" ? say("invitation.unknown") : "");
  const field = h("input", { id: "code", autocomplete: "off", autocapitalize: "none", spellcheck: "false", "aria-describedby": "problem", required: true });
  const enter = async (/** @type {Event} */ event) => {
    event.preventDefault();
    await survey.enter(field.value).then(opened, failed);
  };
  show(title(), h("p", {}, say("invitation.text")), h("form", { submit: enter, novalidate: true },
    h("label", { for: "code" }, say("invitation.code")), field, problem,
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, say("next")))));
}

// ---------------------------------------------------------------- opening

async function opened() {
  stopped = undefined;
  try {
    if (survey.kept) return await ended();
    await survey.begin();
    history.replaceState({ at: 0 }, "");
    render(0);
  } catch (error) {
    failed(error);
  }
}

/** @param {string[]} offered */
function languages(offered) {
  const place = document.querySelector("header");
  if (offered.length < 2 || !place) return;
  const change = async (/** @type {any} */ event) => {
    try {
      await speak(event.target.value);
    } catch { // its words cannot be fetched now
      event.target.value = tongue;
      return;
    }
    tongue = event.target.value;
    footer();
    if (!busy && survey) render(at);
  };
  const names = offered.map((one) => h("option", { value: one, selected: one === tongue, lang: one }, new Intl.DisplayNames([one], { type: "language" }).of(one) ?? one));
  place.replaceChildren(h("label", { for: "language" }, say("language")), h("select", { id: "language", change }, ...names));
}

function footer() {
  const place = document.querySelector("footer");
  place?.replaceChildren(aside(about, say("footer.seen")), " · ", aside(`${about}#check`, say("footer.check")),
    h("p", { class: "fingerprint" }, say("footer.code"), " ", h("code", {}, setting("discreet-code"))));
  const label = document.querySelector("header label");
  if (label) label.textContent = say("language");
}

async function open() {
  const speaking = speak(preferred(Array.from(document.querySelectorAll("link[data-words]"), (one) => /** @type {HTMLLinkElement} */ (one).hreflang), "en"));
  const link = linkOf(location.hash);
  // the code stays in no address; the digest, the same for everyone, is compared again after a reload
  if (location.hash) history.replaceState(null, "", location.pathname + location.search + (link.digest && `#d=${link.digest}`));
  try {
    if (!isSecureContext || !crypto.subtle) throw new Stop("insecure");
    const keep = Keep.open().catch(() => { throw new Stop("store"); });
    const found = Survey.open(`${collector || location.origin}/api/v1/surveys/${name}`, keep, link);
    [survey] = await Promise.all([found, keep, speaking]);
    const { words, language } = survey.announcement, offered = Object.keys(words);
    tongue = preferred(offered, language || "en");
    await speak(tongue);
    languages(offered);
    footer();
  } catch (error) {
    await speaking;
    return failed(error);
  }
  await opened();
}

addEventListener("popstate", (event) => survey && !busy && render(event.state?.at ?? 0));
addEventListener("pagehide", wipe);
addEventListener("pageshow", (event) => event.persisted && location.reload());
addEventListener("hashchange", () => location.hash && location.reload()); // another invitation in the same tab
await open();
