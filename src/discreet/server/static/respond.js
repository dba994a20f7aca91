// @ts-check
/**
 * From a link to a receipt, without a page: announcement and document, question, draw, keep, send.
 *
 * The order is the promise. The question is kept when it is drawn; the report is kept before it
 * leaves, and what leaves is what was kept. Whoever looks at a draw gives up the key that could
 * withdraw it, first: reports that people take back when they dislike them would give them away.
 *
 * @module respond
 */

import { collectionOf, digestOf, DrawError } from "./draw.js";
import { ask, reasonOf, send, withdraw } from "./send.js";

/** @import { Keep, Kept } from "./keep.js" */
/** @import { Waiting } from "./send.js" */
/** @import { Answers, Plain } from "./types" */

/** Why a survey cannot be answered here; `reason` is a name in the catalogue of words. */
export class Stop extends Error {
  /** @param {string} reason @param {string} [detail] */
  constructor(reason, detail = "") {
    super(`${reason} ${detail}`.trim());
    this.name = "Stop";
    this.reason = reason;
    this.detail = detail;
  }
}

/** @param {string} text */
const hashOf = (text) => digestOf(new TextEncoder().encode(text));

/**
 * The one way to write an announcement: keys in the order of code points, no spaces. Its SHA-256 is
 * its digest.
 * @param {any} value Texts, whole numbers, true and false, in lists and by names.
 * @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort(inOrder).map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`;
}

/** @type {(one: string, other: string) => number} */
function inOrder(one, other) {
  const [a, b] = [one, other].map((text) => Array.from(text, (letter) => Number(letter.codePointAt(0))));
  const k = a.findIndex((point, place) => point !== b[place]);
  return k < 0 ? a.length - b.length : a[k] - (b[k] ?? -1);
}

/**
 * What the part of a link after # says: `#c=CODE&d=DIGEST`, the latter of the announcement.
 * @param {string} fragment
 */
export function linkOf(fragment) {
  const found = new URLSearchParams(fragment.replace(/^#/, ""));
  return { code: plainCode(found.get("c") ?? ""), digest: found.get("d") ?? "" };
}

/** @param {string} code As people type it. */
export const plainCode = (code) => code.replace(/[\s-]/g, "").toLowerCase();

/** One survey, for one person in this browser. */
export class Survey {
  /**
   * @param {string} address
   * @param {Keep} keep
   * @param {Plain} described
   * @param {import("./draw.js").Collection} collection
   */
  constructor(address, keep, described, collection) {
    this.place = "";
    this.code = "";
    this.question = 0;
    this.address = address;
    this.keep = keep;
    /** @type {Plain} */
    this.announcement = described.announcement;
    /** @type {"draft" | "open" | "closed"} */
    this.state = described.state;
    this.collection = collection;
    /** @type {Kept | undefined} */
    this.kept = undefined;
    this.earlier = false;
  }

  /**
   * Fetch a survey. Its announcement must be the one of the link, where that names one, and its
   * document the one that the announcement names.
   * @param {string} address Such as https://survey.example.org/api/v1/surveys/health
   * @param {Promise<Keep>} keep
   * @param {{ code: string, digest: string }} link
   */
  static async open(address, keep, link) {
    const [described, bytes] = await Promise.all([
      json(address), answerOf(`${address}/document`, { cache: "default" }).then((answer) => answer.arrayBuffer()),
    ]);
    const { announcement } = described, { digest: sealed, ...told } = announcement;
    const announced = await hashOf(canonical(told)), wanted = link.digest ? `sha256:${link.digest}` : sealed;
    if (announced !== wanted || announced !== sealed) throw new Stop("digest");
    const digest = announcement.collection;
    try {
      const collection = await collectionOf(bytes, { digest, unprotected: announcement.unprotected });
      const survey = new Survey(address, await keep, described, collection);
      await survey.#found(link.code);
      return survey;
    } catch (error) {
      if (error instanceof DrawError) throw new Stop(error.reason === "digest" ? "digest" : "document", error.message);
      throw error;
    }
  }

  get invited() {
    return this.announcement.entry === "invited";
  }

  /** What was kept here before, for this code or, without one, for whoever was here last. */
  async #found(/** @type {string} */ code) {
    const { digest } = this.collection;
    const [reports, questions] = await Promise.all([this.keep.all("report"), this.keep.all("question")]);
    const mine = [...reports, ...questions].filter((one) => one.collection === digest);
    const places = [...new Set(mine.map((one) => one.place))];
    if (this.invited && !code) {
      const unsent = mine.filter((one) => one.code && !reports.some((other) => other.place === one.place && !other.code));
      this.place = unsent[0]?.place ?? (places.length === 1 ? places[0] : "");
      this.code = unsent[0]?.code ?? "";
    } else {
      this.place = await placeOf(digest, code);
      this.code = code;
    }
    this.kept = reports.find((one) => one.place === this.place);
    this.earlier = reports.some((one) => one.survey === this.address && one.collection !== digest);
  }

  /** Use a code that the person has typed. @param {string} code */
  async enter(code) {
    await this.#found(plainCode(code));
  }

  /** Before anything is drawn: is it open, is the invitation unused? Then draw and keep the question. */
  async begin() {
    if (this.state !== "open") throw new Stop(this.state);
    if (this.invited) {
      if (!this.code) throw new Stop("invitation");
      const body = JSON.stringify({ code: this.code });
      const { state } = await json(`${this.address}/invitations/state`, { method: "POST", body, headers: { "Content-Type": "application/json" } });
      if (state !== "unused") throw new Stop(state);
    }
    const { collection, place, code } = this;
    if (collection.kind === "questionnaire" && !code) return; // there is nothing to keep yet
    const question = collection.drawQuestion();
    this.question = await this.keep.question({ place, collection: collection.digest, question, code });
  }

  /**
   * Draw and keep the report; where one is kept already, that one.
   * @param {Answers} answers
   * @param {{ personal?: Answers, byHand?: boolean, allow?: number }} [options]
   */
  async draw(answers, { personal, byHand = false, allow } = {}) {
    const { collection, place, question, address, code } = this;
    this.kept = await this.keep.report(place);
    if (this.kept) return this.kept;
    const drawn = await collection.report(answers, { question, personal, byHand });
    // who draws by hand has seen the draw: to withdraw would be to choose
    const seen = byHand && this.announcement.withdrawal === "blind";
    const key = seen || this.announcement.withdrawal === "none" ? null : drawn.key;
    this.kept = await this.keep.add({
      place, collection: collection.digest, survey: address, epsilon: collection.epsilon, question,
      text: drawn.text, id: drawn.id, key, code, byHand, state: "kept", reason: "",
    }, allow);
    return this.kept;
  }

  /**
   * Send what is kept, as often as it takes.
   * @param {(waiting: Waiting) => void} told
   */
  async send(told) {
    const unsent = (/** @type {Kept} */ kept) => ["kept", "refused"].includes(kept.state);
    const message = async () => { // people may clear the store meanwhile, and answer again in another tab
      const mine = /** @type {Kept} */ (this.kept), kept = await this.keep.restored(mine).catch(() => mine);
      this.kept = kept;
      return unsent(kept) ? kept : null;
    };
    const { outcome, reason } = await send(`${this.address}/reports`, message, told);
    const change = outcome === "refused" ? { state: /** @type {const} */ ("refused"), reason } : { state: /** @type {const} */ ("sent"), code: "" };
    try {
      return await this.#update((kept) => (unsent(kept) ? change : {}));
    } catch { // it has arrived; on the next visit it is sent once more, which changes nothing
      this.kept = { .../** @type {Kept} */ (this.kept), ...change };
      return this.kept;
    }
  }

  /** Look at what was sent. The key goes first, for good. */
  async look() {
    const open = this.announcement.withdrawal === "open";
    await this.#update((kept) => {
      if (kept.state.startsWith("withdr")) throw new Stop("withdrawn");
      return open ? {} : { key: null };
    });
    return /** @type {Kept} */ (this.kept);
  }

  /**
   * Withdraw what was sent, unseen.
   * @param {(waiting: Waiting) => void} told
   */
  async withdraw(told) {
    await this.#update((kept) => {
      if (kept.key === null) throw new Stop("looked");
      return { state: "withdrawing" };
    });
    const { id, key } = /** @type {Kept} */ (this.kept);
    const { outcome, reason } = await withdraw(`${this.address}/reports`, id, String(key), told);
    if (outcome !== "refused" || reason === "not-found") await this.#update(() => ({ state: "withdrawn", text: null, key: null }));
    else await this.#update(() => ({ state: "sent", reason }));
    return this.kept;
  }

  /** Forget everything but that this browser has answered. */
  async forget() {
    await this.#update((kept) => (kept.state === "sent" ? { text: null, key: null } : {}));
  }

  /** @param {Parameters<Keep["update"]>[1]} change */
  async #update(change) {
    this.kept = await this.keep.update(/** @type {Kept} */ (this.kept), change);
    return this.kept;
  }
}

/** @type {(digest: string, code: string) => Promise<string>} */
const placeOf = async (digest, code) => `${digest}|${code ? (await hashOf(code)).slice(7, 39) : ""}`;

/** @param {string} url @param {RequestInit} [options] */
async function answerOf(url, options) {
  /** @type {Response} */
  let answer;
  try {
    answer = await ask(url, options);
  } catch {
    throw new Stop("offline");
  }
  if (!answer.ok) {
    const reason = await reasonOf(answer);
    throw new Stop(["not-found", "too-many"].includes(reason) ? reason : "server", reason);
  }
  return answer;
}

/** @param {string} url @param {RequestInit} [options] */
const json = async (url, options) => (await answerOf(url, options)).json();
