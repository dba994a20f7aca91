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
const catalogues = () => new Map(Array.from(document.querySelectorAll("link[data-words]"), (link) => {
  return [/** @type {HTMLLinkElement} */ (link).hreflang, /** @type {HTMLLinkElement} */ (link)];
}));

/**
 * Which of some languages a person reads best.
 * @param {string[]} offered
 * @param {string} otherwise
 */
export function preferred(offered, otherwise) {
  for (const wanted of navigator.languages) {
    const found = offered.find((one) => one === wanted) ?? offered.find((one) => base(one) === base(wanted));
    if (found) return found;
  }
  return offered.includes(otherwise) ? otherwise : offered[0] ?? "en";
}

/** @param {string} tag */
const base = (tag) => tag.split("-")[0];

/**
 * Speak a language from now on, English where there is no catalogue for it.
 * @param {string} tag
 */
export async function speak(tag) {
  const all = catalogues();
  const chosen = [tag, base(tag), "en"].find((one) => all.has(one)) ?? "en";
  const link = all.get(chosen);
  if (!link) throw new Error("this page has no words");
  if (chosen !== language || !words.direction) {
    const answer = await fetch(link.href, { integrity: link.dataset.words, credentials: "omit", referrerPolicy: "no-referrer" });
    words = await answer.json();
  }
  language = chosen;
  region = navigator.languages.find((one) => base(one) === base(chosen)) ?? chosen; // dates as people write them
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
  return text.replace(/\{(\w+)\}/g, (/** @type {string} */ whole, /** @type {string} */ name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? number(value) : value;
  });
}

/** @param {string} key */
export const known = (key) => words[key] !== undefined;

/** @param {number} value @param {number} [digits] At least so many count; whole numbers are whole. */
export function number(value, digits = 3) {
  const whole = Number.isFinite(value) ? Math.ceil(Math.log10(Math.abs(value) + 1)) : 1;
  return new Intl.NumberFormat(region, { maximumSignificantDigits: Math.min(21, Math.max(digits, whole)) }).format(value);
}

/** @param {string} day As 2027-03-31. */
export const day = (day) => new Intl.DateTimeFormat(region, { dateStyle: "long", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));

/** @param {string[]} texts */
export const list = (texts) => new Intl.ListFormat(language, { type: "conjunction" }).format(texts);

/**
 * An element.
 * @param {string} tag
 * @param {{ [name: string]: any }} [attributes] Functions listen; true and false set and leave out.
 * @param {...Child} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== undefined && value !== "") made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(.../** @type {(Node | string)[]} */ (children.filter((one) => one !== null && one !== false && one !== undefined && one !== "")));
  return made;
}

/** A link beside the survey: in a tab of its own, since answers do not outlive this page. @type {(href: string, text: string) => HTMLElement} */
export const aside = (href, text) => h("a", { href, target: "_blank", rel: "noopener" }, say("aside", { text }));

/**
 * Texts of the collector: an empty line begins a paragraph.
 * @param {string} text
 * @returns {HTMLElement[]}
 */
export const paragraphs = (text) => text.split(/\n\s*\n/).filter((one) => one.trim()).map((one) => h("p", {}, one.trim()));

const SVG = "http://www.w3.org/2000/svg";

/** @type {(tag: string, attributes: { [name: string]: string | number }, ...children: Node[]) => SVGElement} */
function drawn(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** @type {(other: boolean, x: number, y: number) => SVGElement} */
function mark(other, x, y) {
  if (!other) return drawn("circle", { class: "truth", cx: x, cy: y, r: 6.5 });
  return drawn("path", { class: "other", d: `M${x} ${y - 7}l7 7-7 7-7-7z` });
}

/**
 * A hundred people as a hundred marks of two shapes.
 * @param {number} count Of the first kind.
 * @param {string} title The sentence that the picture shows.
 * @param {[string, string]} kinds
 */
export function hundred(count, title, kinds) {
  const marks = Array.from({ length: 100 }, (_, k) => mark(k >= count, 10 + 20 * (k % 10), 10 + 20 * Math.floor(k / 10)));
  const picture = drawn("svg", { class: "hundred", viewBox: "0 0 200 200", "aria-hidden": "true", focusable: "false" }, ...marks);
  const key = kinds.map((text, k) => h("li", {}, drawn("svg", { class: "mark", viewBox: "0 0 20 20", "aria-hidden": "true", focusable: "false" }, mark(k > 0, 10, 10)), text));
  return h("figure", {}, h("figcaption", {}, title), picture, h("ul", { class: "key" }, ...key));
}
