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
let catalogue = {};
let languageTag = "en", regionTag = "en";

/** The catalogues that this page may load: language tag -> link. */
const findCatalogues = () => new Map(Array.from(document.querySelectorAll("link[data-words]"), (link) => {
  return [/** @type {HTMLLinkElement} */ (link).hreflang, /** @type {HTMLLinkElement} */ (link)];
}));

/**
 * Choose the offered language that the browser prefers.
 * @param {string[]} offered
 * @param {string} fallback
 */
export function chooseLanguage(offered, fallback) {
  for (const preferredTag of navigator.languages) {
    const matchingTag = offered.find((tag) => tag === preferredTag) ?? offered.find((tag) => getBaseTag(tag) === getBaseTag(preferredTag));
    if (matchingTag) return matchingTag;
  }
  return offered.includes(fallback) ? fallback : offered[0] ?? "en";
}

/** @param {string} tag */
const getBaseTag = (tag) => tag.split("-")[0];

/**
 * Load the words of a language, or the English ones where there is no catalogue for it.
 * @param {string} tag
 */
export async function loadLanguage(tag) {
  const catalogues = findCatalogues();
  const chosenTag = [tag, getBaseTag(tag), "en"].find((candidate) => catalogues.has(candidate)) ?? "en";
  const link = catalogues.get(chosenTag);
  if (!link) throw new Error("this page has no words");
  if (chosenTag !== languageTag || !catalogue.direction) {
    const response = await fetch(link.href, { integrity: link.dataset.words, credentials: "omit", referrerPolicy: "no-referrer" });
    catalogue = await response.json();
  }
  languageTag = chosenTag;
  regionTag = navigator.languages.find((candidate) => getBaseTag(candidate) === getBaseTag(chosenTag)) ?? chosenTag; // dates as people write them
  document.documentElement.lang = tag;
  document.documentElement.dir = catalogue.direction;
}

/**
 * Look up a text of the catalogue and fill in its values; the plural follows `count`.
 * @param {string} key
 * @param {Values} [values]
 */
export function say(key, values = {}) {
  let text = catalogue[key];
  if (text === undefined) throw new Error(`no words for ${key}`);
  if (typeof text === "object") text = text[new Intl.PluralRules(languageTag).select(Number(values.count))] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (/** @type {string} */ placeholder, /** @type {string} */ name) => {
    const value = values[name];
    return value === undefined ? placeholder : typeof value === "number" ? formatNumber(value) : value;
  });
}

/** @param {string} key */
export const hasText = (key) => catalogue[key] !== undefined;

/**
 * Format a number in the digits of a language. Thousands are not separated: what people read here they
 * may write, and "10,000" is ten in half of the world.
 * @param {number} value
 * @param {number} [minDigits] Least number of significant digits; whole numbers are written in full.
 */
export function formatNumber(value, minDigits = 3) {
  const integerDigits = Number.isFinite(value) ? Math.ceil(Math.log10(Math.abs(value) + 1)) : 1;
  const maximumSignificantDigits = Math.min(21, Math.max(minDigits, integerDigits));
  return new Intl.NumberFormat(regionTag, { maximumSignificantDigits, useGrouping: false }).format(value);
}

/** @param {string} day As 2027-03-31. */
export const formatDay = (day) => new Intl.DateTimeFormat(regionTag, { dateStyle: "long", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));

/** @param {string[]} texts */
export const formatList = (texts) => new Intl.ListFormat(languageTag, { type: "conjunction" }).format(texts);

/**
 * Make an HTML element.
 * @param {string} tag
 * @param {{ [name: string]: any }} [attributes] Functions are event listeners; true sets an attribute, false leaves it out.
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

/** Make a link that opens in another tab, since answers do not outlive this page. @type {(href: string, text: string) => HTMLElement} */
export const makeExternalLink = (href, text) => h("a", { href, target: "_blank", rel: "noopener" }, say("aside", { text }));

/**
 * Make the paragraphs of a collector's text: an empty line begins one.
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
 * Draw a hundred people as a hundred marks of two shapes.
 * @param {number} count Of the first kind.
 * @param {string} title The sentence that the picture shows.
 * @param {[string, string]} legendTexts
 */
export function drawHundredPeople(count, title, legendTexts) {
  const marks = Array.from({ length: 100 }, (_, k) => drawMark(k >= count, 10 + 20 * (k % 10), 10 + 20 * Math.floor(k / 10)));
  const picture = makeSvg("svg", { class: "hundred", viewBox: "0 0 200 200", "aria-hidden": "true", focusable: "false" }, ...marks);
  const legend = legendTexts.map((text, k) => h("li", {}, makeSvg("svg", { class: "mark", viewBox: "0 0 20 20", "aria-hidden": "true", focusable: "false" }, drawMark(k > 0, 10, 10)), text));
  return h("figure", {}, h("figcaption", {}, title), picture, h("ul", { class: "key" }, ...legend));
}
