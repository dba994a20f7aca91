// @ts-check
/**
 * What this browser keeps: the question that was drawn, the report before it leaves, and what all
 * collections of this origin cost together. `add` of IndexedDB is the lock: whoever comes second,
 * in another tab or after a reload, gets what was kept first, and never another draw.
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
 * @property {string | null} key Whoever has it may withdraw; null once it is given up.
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

  /** Open it, and see that it really stores something. */
  static async open(name = "discreet") {
    const deviceStore = new DeviceStore(name, await openDatabase(name)), probe = crypto.randomUUID();
    await deviceStore.#runTransaction(["setting"], async ({ setting }) => {
      await awaitRequest(setting.put(probe, probe));
      if ((await awaitRequest(setting.get(probe))) !== probe) throw new Error("nothing is stored here");
      await awaitRequest(setting.delete(probe));
    }, "relaxed"); // nothing of it need survive
    return deviceStore;
  }

  /**
   * One transaction that is on the disk when this returns.
   * @template T
   * @param {string[]} names
   * @param {(stores: { [name: string]: IDBObjectStore }) => Promise<T>} work Awaits only its stores.
   * @param {"strict" | "relaxed"} [durability]
   * @returns {Promise<T>}
   */
  async #runTransaction(names, work, durability = "strict") {
    const transaction = await this.#openTransaction(names, "readwrite", { durability });
    const completion = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new DOMException("not stored"));
    });
    completion.catch(() => undefined);
    try {
      const stores = Object.fromEntries(names.map((name) => [name, transaction.objectStore(name)]));
      const result = await work(stores);
      await completion;
      return result;
    } catch (error) {
      try { transaction.abort(); } catch { /* it has ended already */ }
      throw error;
    }
  }

  /**
   * A transaction; people who clear the data of a page close its database.
   * @type {(names: string | string[], mode?: IDBTransactionMode, options?: IDBTransactionOptions) => Promise<IDBTransaction>}
   */
  async #openTransaction(names, mode, options) {
    try {
      return this.database.transaction(names, mode, options);
    } catch {
      this.database = await openDatabase(this.name);
      return this.database.transaction(names, mode, options);
    }
  }

  /** @type {(storeName: string, key: string) => Promise<any>} */
  async #readValue(storeName, key) {
    return awaitRequest((await this.#openTransaction(storeName)).objectStore(storeName).get(key));
  }

  /**
   * The question of a place: the one that was kept, or else the given one, which is kept now.
   * @param {{ place: string, collection: string, question: number, code: string }} drawnQuestion
   * @returns {Promise<number>}
   */
  async keepQuestion(drawnQuestion) {
    return this.#runTransaction(["question"], async ({ question }) => {
      const storedQuestion = await awaitRequest(question.get(drawnQuestion.place));
      if (storedQuestion === undefined) await awaitRequest(question.add(drawnQuestion));
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
   * What was spent here, what one more collection would make of it, and what is allowed.
   * @param {string} place
   * @param {number} epsilon
   */
  async readBudget(place, epsilon) {
    const [reports, allowed] = await Promise.all([this.readAll("report"), this.#readValue("setting", "allowed")]);
    return computeBudget(reports, allowed, place, epsilon);
  }

  /**
   * Keep a report for good, before it leaves.
   * @param {StoredReport} report
   * @param {number} [newLimit] What the person allows in total, said now.
   * @returns {Promise<StoredReport>} The one that is kept: another one, if another tab was first.
   */
  async addReport(report, newLimit) {
    return this.#runTransaction(["report", "question", "setting"], async ({ report: reports, question, setting }) => {
      const storedReport = await awaitRequest(reports.get(report.place));
      if (storedReport !== undefined) return storedReport;
      const allowed = await awaitRequest(setting.get("allowed"));
      const budget = computeBudget(await awaitRequest(reports.getAll()), allowed, report.place, report.epsilon);
      const limit = Math.max(budget.allowed, newLimit ?? 0);
      if (budget.total > limit * (1 + BUDGET_TOLERANCE)) throw new BudgetError(budget.spent, budget.total, limit);
      if (allowed === undefined || limit > allowed) await awaitRequest(setting.put(limit, "allowed"));
      await awaitRequest(reports.add(report));
      await awaitRequest(question.delete(report.place)); // the report knows it, and the code that came with it
      return report;
    });
  }

  /**
   * What is kept at the place of a report: the report itself again, if the store was cleared.
   * @param {StoredReport} fallback
   * @returns {Promise<StoredReport>}
   */
  async restoreReport(fallback) {
    return (await this.readReport(fallback.place)) ?? this.#runTransaction(["report"], async ({ report }) => {
      const storedReport = await awaitRequest(report.get(fallback.place));
      if (storedReport === undefined) await awaitRequest(report.add(fallback));
      return storedReport ?? fallback;
    });
  }

  /**
   * Change what is kept about a report; never the report itself.
   * @param {StoredReport} fallback It is kept again, if the store was cleared.
   * @param {(current: StoredReport) => Partial<Omit<StoredReport, "place" | "id" | "question">>} change
   * @returns {Promise<StoredReport>}
   */
  async updateReport(fallback, change) {
    return this.#runTransaction(["report"], async ({ report }) => {
      const current = (await awaitRequest(report.get(fallback.place))) ?? fallback, changed = { ...current, ...change(current) };
      if (changed.text !== null && changed.text !== current.text) throw new Error("what was drawn does not change");
      await awaitRequest(report.put(changed));
      return changed;
    });
  }
}

/** @type {(reports: StoredReport[], allowed: number | undefined, place: string, epsilon: number) => { spent: number, total: number, allowed: number, otherSurveys: number }} */
function computeBudget(reports, allowed, place, epsilon) {
  const otherReports = reports.filter((report) => report.place !== place && report.epsilon < Infinity);
  const spent = otherReports.reduce((sum, report) => sum + report.epsilon, 0);
  // whoever answers without protection has said so; the first collection sets what later ones may spend
  const cost = epsilon < Infinity ? epsilon : 0;
  return { spent, total: spent + cost, allowed: allowed ?? cost, otherSurveys: otherReports.length };
}
