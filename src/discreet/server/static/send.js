// @ts-check
/**
 * Sends kept bytes until they have arrived or are refused. Sending them again is safe: the server
 * stores the same report once.
 *
 * @module send
 */

/**
 * @typedef {{ outcome: "counted" | "repeated" | "refused", reason: string }} Sent
 * @typedef {{ seconds: number, tries: number, now: () => void }} Waiting
 */

const LONGEST = 60, PATIENCE = 30;

/**
 * POST a report.
 * @param {string} url
 * @param {string} text
 * @param {object} options
 * @param {string} [options.code] Of an invitation.
 * @param {(waiting: Waiting) => void} options.told Called before each wait.
 * @returns {Promise<Sent>}
 */
export async function send(url, text, { code = "", told }) {
  const headers = { "Content-Type": "application/json", ...(code ? { Invitation: code } : {}) };
  return persist(() => ask(url, { method: "POST", body: text, headers }), told);
}

/**
 * Withdraw a report by its key.
 * @param {string} url Of the reports.
 * @param {string} id
 * @param {string} key
 * @param {(waiting: Waiting) => void} told
 * @returns {Promise<Sent>}
 */
export async function withdraw(url, id, key, told) {
  const body = JSON.stringify({ key });
  const options = { method: "DELETE", body, headers: { "Content-Type": "application/json" } };
  return persist(() => ask(`${url}/${id}`, options), told);
}

/**
 * A request without cookies, referrers, caches or redirects.
 * @param {string} url
 * @param {RequestInit} [options]
 */
export function ask(url, options = {}) {
  const signal = AbortSignal.timeout(PATIENCE * 1000);
  return fetch(url, { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal, ...options });
}

/** @type {(attempt: () => Promise<Response>, told: (waiting: Waiting) => void) => Promise<Sent>} */
async function persist(attempt, told) {
  for (let tries = 1; ; tries++) {
    let least = 0;
    try {
      const answer = await attempt();
      if (answer.ok) return { outcome: answer.status === 200 ? "repeated" : "counted", reason: "" };
      if (answer.status < 500 && ![408, 429].includes(answer.status)) return { outcome: "refused", reason: await reasonOf(answer) };
      least = Number(answer.headers.get("Retry-After")) || 0;
    } catch { /* no answer: it may have arrived, so the same bytes go again */ }
    await wait(Math.min(LONGEST, Math.max(2 ** (tries - 1), least)), tries, told);
  }
}

/** @param {Response} answer */
export async function reasonOf(answer) {
  try {
    return String((await answer.json()).type).replace("urn:discreet:problem:", "");
  } catch {
    return `http-${answer.status}`;
  }
}

/** @type {(seconds: number, tries: number, told: (waiting: Waiting) => void) => Promise<void>} */
function wait(seconds, tries, told) {
  return new Promise((resolve) => {
    const stop = new AbortController(), { signal } = stop;
    const now = () => { clearTimeout(timer); stop.abort(); resolve(); };
    const timer = setTimeout(now, seconds * 1000);
    addEventListener("online", now, { signal });
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && now(), { signal });
    told({ seconds, tries, now });
  });
}
