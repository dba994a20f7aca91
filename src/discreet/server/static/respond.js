// @ts-check
/**
 * The steps of one response, without a page: fetch the announcement and the document, draw the
 * question, draw the report, store it, send it.
 *
 * The promise depends on the order. The question is stored when it is drawn; the report is stored
 * before it is sent, and the stored bytes are sent. The key that could withdraw the report is deleted
 * before a person looks at the draw: to withdraw the draws that one dislikes would reveal the truth.
 *
 * @module respond
 */

import { collectionOf, digestOf, DrawError } from "./draw.js";
import { deleteReport, parseProblem, postReport, sendRequest } from "./send.js";

/** @import { DeviceStore, StoredReport } from "./keep.js" */
/** @import { Waiting } from "./send.js" */
/** @import { Answers, JsonObject } from "./types.js" */

/** Why a survey cannot be answered here; `reason` is a name in the catalogue of words. */
export class SurveyError extends Error {
  /** @param {string} reason @param {string} [detail] */
  constructor(reason, detail = "") {
    super(`${reason} ${detail}`.trim());
    this.name = "SurveyError";
    this.reason = reason;
    this.detail = detail;
  }
}

/** @param {string} text */
const hashText = (text) => digestOf(new TextEncoder().encode(text));

/**
 * Write an announcement in its canonical form: keys in the order of code points, no spaces. Its
 * SHA-256 is its digest.
 * @param {any} value Texts, whole numbers and booleans, in lists and objects.
 * @returns {string}
 */
export function writeCanonical(value) {
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort(compareCodePoints).map((name) => `${JSON.stringify(name)}:${writeCanonical(value[name])}`).join()}}`;
}

/** @type {(firstText: string, secondText: string) => number} */
function compareCodePoints(firstText, secondText) {
  const [firstPoints, secondPoints] = [firstText, secondText].map((text) => Array.from(text, (letter) => Number(letter.codePointAt(0))));
  const k = firstPoints.findIndex((point, place) => point !== secondPoints[place]);
  return k < 0 ? firstPoints.length - secondPoints.length : firstPoints[k] - (secondPoints[k] ?? -1);
}

/**
 * Parse the fragment of a link, `#c=CODE&d=DIGEST`: an invitation and the digest of the announcement.
 * @param {string} fragment
 */
export function parseLink(fragment) {
  const fragmentParams = new URLSearchParams(fragment.replace(/^#/, ""));
  return { code: normalizeCode(fragmentParams.get("c") ?? ""), digest: fragmentParams.get("d") ?? "" };
}

/** @param {string} code As people type it. */
export const normalizeCode = (code) => code.replace(/[\s-]/g, "").toLowerCase();

/** One survey, for one person in this browser. */
export class Survey {
  /**
   * @param {string} address
   * @param {DeviceStore} store
   * @param {JsonObject} description
   * @param {import("./draw.js").Collection} collection
   */
  constructor(address, store, description, collection) {
    this.place = "";
    this.code = "";
    this.question = 0;
    this.address = address;
    this.store = store;
    /** @type {JsonObject} */
    this.announcement = description.announcement;
    /** @type {"draft" | "open" | "closed"} */
    this.state = description.state;
    this.collection = collection;
    /** @type {StoredReport | undefined} */
    this.storedReport = undefined;
    this.hasAnsweredEarlier = false;
    this.preview = false;
  }

  /**
   * Fetch a survey. Its announcement must be the one of the link, where that names one, and its
   * document the one that the announcement names.
   * @param {string} address Such as https://survey.example.org/api/v1/surveys/health
   * @param {Promise<DeviceStore>} store
   * @param {{ code: string, digest: string }} link
   * @param {boolean} [preview] For its collector, who is signed in at the desk: nobody else can see a
   *     draft. Nothing is stored or sent.
   */
  static async open(address, store, link, preview = false) {
    /** @type {RequestInit} */
    const requestOptions = preview ? { credentials: "same-origin" } : {};
    const [description, bytes] = await Promise.all([
      fetchJson(address, requestOptions), fetchResponse(`${address}/document`, { cache: preview ? "no-store" : "default", ...requestOptions }).then((response) => response.arrayBuffer()),
    ]);
    const { announcement } = description, { digest: sealedDigest, ...content } = announcement;
    const computedDigest = await hashText(writeCanonical(content)), expectedDigest = link.digest ? `sha256:${link.digest}` : sealedDigest;
    if (computedDigest !== expectedDigest || computedDigest !== sealedDigest) throw new SurveyError("digest");
    const digest = announcement.collection;
    try {
      const collection = await collectionOf(bytes, { digest, unprotected: announcement.unprotected });
      const survey = new Survey(address, await store, description, collection);
      survey.preview = preview;
      if (!preview) await survey.#findStored(link.code);
      return survey;
    } catch (error) {
      if (error instanceof DrawError) throw new SurveyError(error.reason === "digest" ? "digest" : "document", error.message);
      throw error;
    }
  }

  get isInvited() {
    return this.announcement.entry === "invited";
  }

  /** Find what is stored here for this code or, without a code, for the last person here. */
  async #findStored(/** @type {string} */ code) {
    const { digest } = this.collection;
    const [reports, questions] = await Promise.all([this.store.readAll("report"), this.store.readAll("question")]);
    const entries = [...reports, ...questions].filter((entry) => entry.collection === digest);
    const places = [...new Set(entries.map((entry) => entry.place))];
    if (this.isInvited && !code) {
      const unsentEntries = entries.filter((entry) => entry.code && !reports.some((report) => report.place === entry.place && !report.code));
      this.place = unsentEntries[0]?.place ?? (places.length === 1 ? places[0] : "");
      this.code = unsentEntries[0]?.code ?? "";
    } else {
      this.place = await makePlace(digest, code);
      this.code = code;
    }
    this.storedReport = reports.find((report) => report.place === this.place);
    this.hasAnsweredEarlier = reports.some((report) => report.survey === this.address && report.collection !== digest);
  }

  /** Use a code that the person has typed. @param {string} code */
  async enterCode(code) {
    await this.#findStored(normalizeCode(code));
  }

  /** Check that the survey is open and the invitation unused, then draw and store the question. */
  async begin() {
    if (this.preview) {
      this.question = this.collection.drawQuestion();
      return;
    }
    if (this.state !== "open") throw new SurveyError(this.state);
    if (this.isInvited) {
      if (!this.code) throw new SurveyError("invitation");
      const body = JSON.stringify({ code: this.code });
      const { state } = await fetchJson(`${this.address}/invitations/state`, { method: "POST", body, headers: { "Content-Type": "application/json" } });
      if (state !== "unused") throw new SurveyError(state);
    }
    const { collection, place, code } = this;
    if (collection.isSheet && !code) return; // there is nothing to keep yet
    const question = collection.drawQuestion();
    this.question = await this.store.keepQuestion({ place, collection: collection.digest, question, code });
  }

  /**
   * Draw and store the report, or return the one that is stored.
   * @param {Answers} answers
   * @param {{ personal?: Answers, byHand?: boolean, newLimit?: number }} [options]
   */
  async drawReport(answers, { personal, byHand = false, newLimit } = {}) {
    const { collection, place, question, address, code } = this;
    if (this.preview) throw new SurveyError("draft"); // whatever page this is: a preview leaves no trace
    this.storedReport = await this.store.readReport(place);
    if (this.storedReport) return this.storedReport;
    const report = await collection.report(answers, { question, personal, byHand });
    // a draw by hand has been seen: to withdraw it would be to choose
    const hasSeenDraw = byHand && this.announcement.withdrawal === "blind";
    const key = hasSeenDraw || this.announcement.withdrawal === "none" ? null : report.key;
    this.storedReport = await this.store.addReport({
      place, collection: collection.digest, survey: address, epsilon: collection.epsilon, question,
      text: report.text, id: report.id, key, code, byHand, state: "kept", reason: "",
    }, newLimit);
    return this.storedReport;
  }

  /**
   * Send the stored report, and try again until the server has answered.
   * @param {(waiting: Waiting) => void} onWaiting
   */
  async sendReport(onWaiting) {
    const isUnsent = (/** @type {StoredReport} */ current) => ["kept", "refused"].includes(current.state);
    const loadUnsent = async () => { // people may clear the store meanwhile, and answer again in another tab
      const lastKnown = /** @type {StoredReport} */ (this.storedReport), current = await this.store.restoreReport(lastKnown).catch(() => lastKnown);
      this.storedReport = current;
      return isUnsent(current) ? current : null;
    };
    const { outcome, reason } = await postReport(`${this.address}/reports`, loadUnsent, onWaiting);
    const change = outcome === "refused" ? { state: /** @type {const} */ ("refused"), reason } : { state: /** @type {const} */ ("sent"), code: "" };
    try {
      return await this.#updateReport((current) => (isUnsent(current) ? change : {}));
    } catch { // it has arrived; on the next visit it is sent once more, which changes nothing
      this.storedReport = { .../** @type {StoredReport} */ (this.storedReport), ...change };
      return this.storedReport;
    }
  }

  /** Delete the key for good, then return the report to look at. */
  async lookAtReport() {
    const keepsKey = this.announcement.withdrawal === "open";
    await this.#updateReport((current) => {
      if (current.state.startsWith("withdr")) throw new SurveyError("withdrawn");
      return keepsKey ? {} : { key: null };
    });
    return /** @type {StoredReport} */ (this.storedReport);
  }

  /**
   * Withdraw the report that nobody has looked at.
   * @param {(waiting: Waiting) => void} onWaiting
   */
  async withdrawReport(onWaiting) {
    await this.#updateReport((current) => {
      if (current.key === null) throw new SurveyError("looked");
      return { state: "withdrawing" };
    });
    const { id, key } = /** @type {StoredReport} */ (this.storedReport);
    const { outcome, reason } = await deleteReport(`${this.address}/reports`, id, String(key), onWaiting);
    if (outcome !== "refused" || reason === "not-found") await this.#updateReport(() => ({ state: "withdrawn", text: null, key: null }));
    else await this.#updateReport(() => ({ state: "sent", reason }));
    return this.storedReport;
  }

  /** Forget everything but that this browser has answered. */
  async forgetReport() {
    await this.#updateReport((current) => (current.state === "sent" ? { text: null, key: null } : {}));
  }

  /** @param {Parameters<DeviceStore["updateReport"]>[1]} change */
  async #updateReport(change) {
    this.storedReport = await this.store.updateReport(/** @type {StoredReport} */ (this.storedReport), change);
    return this.storedReport;
  }
}

/** @type {(digest: string, code: string) => Promise<string>} */
const makePlace = async (digest, code) => `${digest}|${code ? (await hashText(code)).slice(7, 39) : ""}`;

/** @param {string} url @param {RequestInit} [options] */
async function fetchResponse(url, options) {
  /** @type {Response} */
  let response;
  try {
    response = await sendRequest(url, options);
  } catch {
    throw new SurveyError("offline");
  }
  if (!response.ok) {
    const reason = await parseProblem(response);
    throw new SurveyError(["not-found", "too-many"].includes(reason) ? reason : "server", reason);
  }
  return response;
}

/** @param {string} url @param {RequestInit} [options] */
const fetchJson = async (url, options) => (await fetchResponse(url, options)).json();
