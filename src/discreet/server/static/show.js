// @ts-check
/**
 * Words, elements and pictures. Texts come from a catalogue (words/*.json) and go into the page as
 * text, never as markup.
 *
 * @module show
 */

/** @typedef {{ [name: string]: string | number }} Values */
/** @typedef {Node | string | null | false | undefined} Child */

/** @type {{ [name: string]: any }} */
let words = {};
let language = "en", region = "en";

/** The catalogues that this page may load: language tag -> link. */
const findCatalogues = () => new Map(Array.from(document.querySelectorAll("link[data-words]"), (link) => {
  return [/** @type {HTMLLinkElement} */ (link).hreflang, /** @type {HTMLLinkElement} */ (link)];
}));

/**
 * Which of some languages a person reads best.
 * @param {string[]} offered
 * @param {string} fallback
 */
export function chooseLanguage(offered, fallback) {
  for (const preferredTag of navigator.languages) {
    const match = offered.find((tag) => tag === preferredTag) ?? offered.find((tag) => getBaseTag(tag) === getBaseTag(preferredTag));
    if (match) return match;
  }
  return offered.includes(fallback) ? fallback : offered[0] ?? "en";
}

/** @param {string} tag */
const getBaseTag = (tag) => tag.split("-")[0];

/**
 * Speak a language from now on, English where there is no catalogue for it.
 * @param {string} tag
 */
export async function loadLanguage(tag) {
  const catalogues = findCatalogues();
  const chosenTag = [tag, getBaseTag(tag), "en"].find((candidate) => catalogues.has(candidate)) ?? "en";
  const link = catalogues.get(chosenTag);
  if (!link) throw new Error("this page has no words");
  if (chosenTag !== language || !words.direction) {
    const answer = await fetch(link.href, { integrity: link.dataset.words, credentials: "omit", referrerPolicy: "no-referrer" });
    words = await answer.json();
  }
  language = chosenTag;
  region = navigator.languages.find((candidate) => getBaseTag(candidate) === getBaseTag(chosenTag)) ?? chosenTag; // dates as people write them
  document.documentElement.lang = tag;
  document.documentElement.dir = words.direction;
}

/**
 * A text of the catalogue, with its values put in; the plural follows `count`.
 * @param {string} key
 * @param {Values} [values]
 */
export function say(key, values = {}) {
  let text = words[key];
  if (text === undefined) throw new Error(`no words for ${key}`);
  if (typeof text === "object") text = text[new Intl.PluralRules(language).select(Number(values.count))] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (/** @type {string} */ placeholder, /** @type {string} */ name) => {
    const value = values[name];
    return value === undefined ? placeholder : typeof value === "number" ? formatNumber(value) : value;
  });
}

/** @param {string} key */
export const hasText = (key) => words[key] !== undefined;

/**
 * A number in the digits of a language. Thousands are not separated: what people read here they
 * may write, and "10,000" is ten in half of the world.
 * @param {number} value
 * @param {number} [digits] At least so many count; whole numbers are whole.
 */
export function formatNumber(value, digits = 3) {
  const integerDigits = Number.isFinite(value) ? Math.ceil(Math.log10(Math.abs(value) + 1)) : 1;
  const maximumSignificantDigits = Math.min(21, Math.max(digits, integerDigits));
  return new Intl.NumberFormat(region, { maximumSignificantDigits, useGrouping: false }).format(value);
}

/** @param {string} day As 2027-03-31. */
export const formatDay = (day) => new Intl.DateTimeFormat(region, { dateStyle: "long", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));

/** @param {string[]} texts */
export const formatList = (texts) => new Intl.ListFormat(language, { type: "conjunction" }).format(texts);

/**
 * An element.
 * @param {string} tag
 * @param {{ [name: string]: any }} [attributes] Functions listen; true and false set and leave out.
 * @param {...Child} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value !== undefined && value !== "") element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(.../** @type {(Node | string)[]} */ (children.filter((child) => child !== null && child !== false && child !== undefined && child !== "")));
  return element;
}

/** A link beside the survey: in a tab of its own, since answers do not outlive this page. @type {(href: string, text: string) => HTMLElement} */
export const makeExternalLink = (href, text) => h("a", { href, target: "_blank", rel: "noopener" }, say("aside", { text }));

/**
 * Texts of the collector: an empty line begins a paragraph.
 * @param {string} text
 * @returns {HTMLElement[]}
 */
export const makeParagraphs = (text) => text.split(/\n\s*\n/).filter((paragraph) => paragraph.trim()).map((paragraph) => h("p", {}, paragraph.trim()));

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/** @type {(tag: string, attributes: { [name: string]: string | number }, ...children: Node[]) => SVGElement} */
function makeSvg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG_NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @type {(isOther: boolean, x: number, y: number) => SVGElement} */
function drawMark(isOther, x, y) {
  if (!isOther) return makeSvg("circle", { class: "truth", cx: x, cy: y, r: 6.5 });
  return makeSvg("path", { class: "other", d: `M${x} ${y - 7}l7 7-7 7-7-7z` });
}

/**
 * A hundred people as a hundred marks of two shapes.
 * @param {number} count Of the first kind.
 * @param {string} title The sentence that the picture shows.
 * @param {[string, string]} kinds
 */
export function drawHundred(count, title, kinds) {
  const marks = Array.from({ length: 100 }, (_, k) => drawMark(k >= count, 10 + 20 * (k % 10), 10 + 20 * Math.floor(k / 10)));
  const picture = makeSvg("svg", { class: "hundred", viewBox: "0 0 200 200", "aria-hidden": "true", focusable: "false" }, ...marks);
  const legend = kinds.map((text, k) => h("li", {}, makeSvg("svg", { class: "mark", viewBox: "0 0 20 20", "aria-hidden": "true", focusable: "false" }, drawMark(k > 0, 10, 10)), text));
  return h("figure", {}, h("figcaption", {}, title), picture, h("ul", { class: "key" }, ...legend));
}
