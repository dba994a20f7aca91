// @ts-check
/**
 * What this browser keeps: the question that was drawn, the report before it leaves, and what all
 * collections of this origin cost together. `add` of IndexedDB is the lock: whoever comes second,
 * in another tab or after a reload, gets what was kept first, and never another draw.
 *
 * @module keep
 */

/**
 * @typedef {object} Kept
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

const TOLERANCE = 1e-9;

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @param {string} name */
async function opened(name) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    for (const store of ["question", "report"]) request.result.createObjectStore(store, { keyPath: "place" });
    request.result.createObjectStore("setting");
  };
  const database = await done(request);
  database.onversionchange = () => database.close();
  return database;
}

/** The store of one origin. */
export class Keep {
  /** @param {string} name @param {IDBDatabase} database */
  constructor(name, database) {
    this.name = name;
    this.database = database;
  }

  /** Open it, and see that it really stores something. */
  static async open(name = "discreet") {
    const keep = new Keep(name, await opened(name)), trial = crypto.randomUUID();
    await keep.#change(["setting"], async ({ setting }) => {
      await done(setting.put(trial, trial));
      if ((await done(setting.get(trial))) !== trial) throw new Error("nothing is stored here");
      await done(setting.delete(trial));
    }, "relaxed"); // nothing of it need survive
    return keep;
  }

  /**
   * One transaction that is on the disk when this returns.
   * @template T
   * @param {string[]} names
   * @param {(stores: { [name: string]: IDBObjectStore }) => Promise<T>} work Awaits only its stores.
   * @param {"strict" | "relaxed"} [durability]
   * @returns {Promise<T>}
   */
  async #change(names, work, durability = "strict") {
    const transaction = await this.#begin(names, "readwrite", { durability });
    const end = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new DOMException("not stored"));
    });
    end.catch(() => undefined);
    try {
      const stores = Object.fromEntries(names.map((name) => [name, transaction.objectStore(name)]));
      const made = await work(stores);
      await end;
      return made;
    } catch (error) {
      try { transaction.abort(); } catch { /* it has ended already */ }
      throw error;
    }
  }

  /**
   * A transaction; people who clear the data of a page close its database.
   * @type {(names: string | string[], mode?: IDBTransactionMode, options?: IDBTransactionOptions) => Promise<IDBTransaction>}
   */
  async #begin(names, mode, options) {
    try {
      return this.database.transaction(names, mode, options);
    } catch {
      this.database = await opened(this.name);
      return this.database.transaction(names, mode, options);
    }
  }

  /** @type {(store: string, key: string) => Promise<any>} */
  async #read(store, key) {
    return done((await this.#begin(store)).objectStore(store).get(key));
  }

  /**
   * The question of a place: the one that was kept, or else the given one, which is kept now.
   * @param {{ place: string, collection: string, question: number, code: string }} drawn
   * @returns {Promise<number>}
   */
  async question(drawn) {
    return this.#change(["question"], async ({ question }) => {
      const known = await done(question.get(drawn.place));
      if (known === undefined) await done(question.add(drawn));
      return (known ?? drawn).question;
    });
  }

  /** @param {string} place @returns {Promise<Kept | undefined>} */
  report(place) {
    return this.#read("report", place);
  }

  /** @param {string} store @returns {Promise<any[]>} */
  async all(store) {
    return done((await this.#begin(store)).objectStore(store).getAll());
  }

  /**
   * What was spent here, what one more collection would make of it, and what is allowed.
   * @param {string} place
   * @param {number} epsilon
   */
  async budget(place, epsilon) {
    const [reports, allowed] = await Promise.all([this.all("report"), this.#read("setting", "allowed")]);
    return sumOf(reports, allowed, place, epsilon);
  }

  /**
   * Keep a report for good, before it leaves.
   * @param {Kept} report
   * @param {number} [allow] What the person allows in total, said now.
   * @returns {Promise<Kept>} The one that is kept: another one, if another tab was first.
   */
  async add(report, allow) {
    return this.#change(["report", "question", "setting"], async ({ report: reports, question, setting }) => {
      const known = await done(reports.get(report.place));
      if (known !== undefined) return known;
      const allowed = await done(setting.get("allowed"));
      const sum = sumOf(await done(reports.getAll()), allowed, report.place, report.epsilon);
      const most = Math.max(sum.allowed, allow ?? 0);
      if (sum.total > most * (1 + TOLERANCE)) throw new BudgetError(sum.spent, sum.total, most);
      if (allowed === undefined || most > allowed) await done(setting.put(most, "allowed"));
      await done(reports.add(report));
      await done(question.delete(report.place)); // the report knows it, and the code that came with it
      return report;
    });
  }

  /**
   * What is kept at the place of a report: the report itself again, if the store was cleared.
   * @param {Kept} before
   * @returns {Promise<Kept>}
   */
  async restored(before) {
    return (await this.report(before.place)) ?? this.#change(["report"], async ({ report }) => {
      const known = await done(report.get(before.place));
      if (known === undefined) await done(report.add(before));
      return known ?? before;
    });
  }

  /**
   * Change what is kept about a report; never the report itself.
   * @param {Kept} before It is kept again, if the store was cleared.
   * @param {(kept: Kept) => Partial<Omit<Kept, "place" | "id" | "question">>} change
   * @returns {Promise<Kept>}
   */
  async update(before, change) {
    return this.#change(["report"], async ({ report }) => {
      const kept = (await done(report.get(before.place))) ?? before, made = { ...kept, ...change(kept) };
      if (made.text !== null && made.text !== kept.text) throw new Error("what was drawn does not change");
      await done(report.put(made));
      return made;
    });
  }
}

/** @type {(reports: Kept[], allowed: number | undefined, place: string, epsilon: number) => { spent: number, total: number, allowed: number, others: number }} */
function sumOf(reports, allowed, place, epsilon) {
  const others = reports.filter((one) => one.place !== place && one.epsilon < Infinity);
  const spent = others.reduce((sum, one) => sum + one.epsilon, 0);
  // whoever answers without protection has said so; the first collection sets what later ones may spend
  const cost = epsilon < Infinity ? epsilon : 0;
  return { spent, total: spent + cost, allowed: allowed ?? cost, others: others.length };
}
