// @ts-check
/**
 * Stores in this browser the question that was drawn, the report before it is sent, and what all
 * collections of this origin cost together. `add` of IndexedDB is the lock: a second attempt, in
 * another tab or after a reload, gets what was stored first, and never another draw.
 *
 * @module keep
 */

/**
 * @typedef {object} StoredReport
 * @property {string} place Digest of the document and hash of the invitation.
 * @property {string} collection Digest of the document.
 * @property {string} survey Address of the survey.
 * @property {number} epsilon
 * @property {number} question
 * @property {string | null} text What is sent, byte for byte; null once it is forgotten.
 * @property {string} id
 * @property {string | null} key The key to withdraw the report; null once it is given up.
 * @property {string} code Of the invitation, until the report has arrived.
 * @property {boolean} byHand
 * @property {"kept" | "sent" | "refused" | "withdrawing" | "withdrawn"} state
 * @property {string} reason Why it was refused.
 */

/** Answering costs more than the person has allowed. */
export class BudgetError extends Error {
  /**
   * @param {number} spent
   * @param {number} total
   * @param {number} allowed
   */
  constructor(spent, total, allowed) {
    super(`epsilon ${total} in total, ${allowed} is allowed`);
    this.name = "BudgetError";
    this.spent = spent;
    this.total = total;
    this.allowed = allowed;
  }
}

const BUDGET_TOLERANCE = 1e-9; // relative: sums of doubles may differ in their last bits

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function awaitRequest(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @param {string} name */
async function openDatabase(name) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    for (const storeName of ["question", "report"]) request.result.createObjectStore(storeName, { keyPath: "place" });
    request.result.createObjectStore("setting");
  };
  const database = await awaitRequest(request);
  database.onversionchange = () => database.close();
  return database;
}

/** The store of one origin. */
export class DeviceStore {
  /** @param {string} name @param {IDBDatabase} database */
  constructor(name, database) {
    this.name = name;
    this.database = database;
  }

  /** Open the store, and check that it returns what is written. */
  static async open(name = "discreet") {
    const deviceStore = new DeviceStore(name, await openDatabase(name)), probeKey = crypto.randomUUID();
    await deviceStore.#runTransaction(["setting"], async ({ setting: settingStore }) => {
      await awaitRequest(settingStore.put(probeKey, probeKey));
      if ((await awaitRequest(settingStore.get(probeKey))) !== probeKey) throw new Error("nothing is stored here");
      await awaitRequest(settingStore.delete(probeKey));
    }, "relaxed"); // the probe need not survive a crash
    return deviceStore;
  }

  /**
   * Run one transaction, which is on the disk when this returns.
   * @template T
   * @param {string[]} storeNames
   * @param {(stores: { [name: string]: IDBObjectStore }) => Promise<T>} runRequests Awaits only its stores.
   * @param {"strict" | "relaxed"} [durability]
   * @returns {Promise<T>}
   */
  async #runTransaction(storeNames, runRequests, durability = "strict") {
    const transaction = await this.#openTransaction(storeNames, "readwrite", { durability });
    const completion = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new DOMException("not stored"));
    });
    completion.catch(() => undefined);
    try {
      const stores = Object.fromEntries(storeNames.map((name) => [name, transaction.objectStore(name)]));
      const result = await runRequests(stores);
      await completion;
      return result;
    } catch (error) {
      try { transaction.abort(); } catch { /* it has ended already */ }
      throw error;
    }
  }

  /**
   * Open a transaction. Clearing the data of a page closes its database, which is then opened again.
   * @type {(storeNames: string | string[], mode?: IDBTransactionMode, options?: IDBTransactionOptions) => Promise<IDBTransaction>}
   */
  async #openTransaction(storeNames, mode, options) {
    try {
      return this.database.transaction(storeNames, mode, options);
    } catch {
      this.database = await openDatabase(this.name);
      return this.database.transaction(storeNames, mode, options);
    }
  }

  /** @type {(storeName: string, key: string) => Promise<any>} */
  async #readValue(storeName, key) {
    return awaitRequest((await this.#openTransaction(storeName)).objectStore(storeName).get(key));
  }

  /**
   * Store the question drawn for a place, unless one is stored; return the number of the stored one.
   * @param {{ place: string, collection: string, question: number, code: string }} drawnQuestion
   * @returns {Promise<number>}
   */
  async keepQuestion(drawnQuestion) {
    return this.#runTransaction(["question"], async ({ question: questionStore }) => {
      const storedQuestion = await awaitRequest(questionStore.get(drawnQuestion.place));
      if (storedQuestion === undefined) await awaitRequest(questionStore.add(drawnQuestion));
      return (storedQuestion ?? drawnQuestion).question;
    });
  }

  /** @param {string} place @returns {Promise<StoredReport | undefined>} */
  readReport(place) {
    return this.#readValue("report", place);
  }

  /** @param {string} storeName @returns {Promise<any[]>} */
  async readAll(storeName) {
    return awaitRequest((await this.#openTransaction(storeName)).objectStore(storeName).getAll());
  }

  /**
   * Read the epsilon spent here, the total with one more collection, and the limit.
   * @param {string} place
   * @param {number} epsilon
   */
  async readBudget(place, epsilon) {
    const [reports, allowed] = await Promise.all([this.readAll("report"), this.#readValue("setting", "allowed")]);
    return computeBudget(reports, allowed, place, epsilon);
  }

  /**
   * Store a report before it is sent.
   * @param {StoredReport} report
   * @param {number} [newLimit] Total epsilon that the person has just allowed.
   * @returns {Promise<StoredReport>} The stored report: another one, if another tab was first.
   */
  async addReport(report, newLimit) {
    return this.#runTransaction(["report", "question", "setting"], async ({ report: reportStore, question: questionStore, setting: settingStore }) => {
      const storedReport = await awaitRequest(reportStore.get(report.place));
      if (storedReport !== undefined) return storedReport;
      const allowed = await awaitRequest(settingStore.get("allowed"));
      const budget = computeBudget(await awaitRequest(reportStore.getAll()), allowed, report.place, report.epsilon);
      const limit = Math.max(budget.allowed, newLimit ?? 0);
      if (budget.total > limit * (1 + BUDGET_TOLERANCE)) throw new BudgetError(budget.spent, budget.total, limit);
      if (allowed === undefined || limit > allowed) await awaitRequest(settingStore.put(limit, "allowed"));
      await awaitRequest(reportStore.add(report));
      await awaitRequest(questionStore.delete(report.place)); // the report knows it, and the code that came with it
      return report;
    });
  }

  /**
   * Read the report stored at the place of `fallback`, which is stored again if it was cleared.
   * @param {StoredReport} fallback
   * @returns {Promise<StoredReport>}
   */
  async restoreReport(fallback) {
    return (await this.readReport(fallback.place)) ?? this.#runTransaction(["report"], async ({ report: reportStore }) => {
      const storedReport = await awaitRequest(reportStore.get(fallback.place));
      if (storedReport === undefined) await awaitRequest(reportStore.add(fallback));
      return storedReport ?? fallback;
    });
  }

  /**
   * Update what is stored about a report; its text never changes.
   * @param {StoredReport} fallback Stored again, if the store was cleared.
   * @param {(current: StoredReport) => Partial<Omit<StoredReport, "place" | "id" | "question">>} change
   * @returns {Promise<StoredReport>}
   */
  async updateReport(fallback, change) {
    return this.#runTransaction(["report"], async ({ report: reportStore }) => {
      const current = (await awaitRequest(reportStore.get(fallback.place))) ?? fallback, changed = { ...current, ...change(current) };
      if (changed.text !== null && changed.text !== current.text) throw new Error("what was drawn does not change");
      await awaitRequest(reportStore.put(changed));
      return changed;
    });
  }
}

/** @type {(reports: StoredReport[], allowed: number | undefined, place: string, epsilon: number) => { spent: number, total: number, allowed: number, otherSurveys: number }} */
function computeBudget(reports, allowed, place, epsilon) {
  const otherReports = reports.filter((report) => report.place !== place && report.epsilon < Infinity);
  const spent = otherReports.reduce((sum, report) => sum + report.epsilon, 0);
  // an unprotected answer costs nothing here: the person has accepted that; the first collection sets the limit
  const cost = epsilon < Infinity ? epsilon : 0;
  return { spent, total: spent + cost, allowed: allowed ?? cost, otherSurveys: otherReports.length };
}
