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
 * @param {() => Promise<{ text: string | null, id: string, code: string } | null>} message Asked
 *   before every attempt; null where nothing is left to send.
 * @param {(waiting: Waiting) => void} told Called before each wait.
 * @returns {Promise<Sent>}
 */
export async function send(url, message, told) {
  return persist(async () => {
    const sent = await message();
    if (!sent) return "repeated";
    const headers = { "Content-Type": "application/json", ...(sent.code ? { Invitation: sent.code } : {}) };
    const answer = await ask(url, { method: "POST", body: sent.text, headers });
    if (!answer.ok) return answer;
    const { outcome, id } = await answer.json();
    return id === sent.id && ["counted", "repeated"].includes(outcome) ? outcome : answer;
  }, told);
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
  return persist(async () => {
    const answer = await ask(`${url}/${id}`, options);
    return answer.status === 204 ? "counted" : answer;
  }, told);
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

/**
 * Only what the server itself says counts: somebody on the way (a proxy, the page of a hotel) may
 * answer anything, also that all is well.
 * @type {(attempt: () => Promise<Response | "counted" | "repeated">, told: (waiting: Waiting) => void) => Promise<Sent>}
 */
async function persist(attempt, told) {
  for (let tries = 1; ; tries++) {
    let least = 0;
    try {
      const answer = await attempt();
      if (typeof answer === "string") return { outcome: answer, reason: "" };
      if (answer.status < 500 && ![408, 429].includes(answer.status)) {
        const reason = await reasonOf(answer);
        if (reason) return { outcome: "refused", reason };
      }
      least = Number(answer.headers.get("Retry-After")) || 0;
    } catch { /* no answer: it may have arrived, so the same bytes go again */ }
    await wait(Math.min(LONGEST, Math.max(2 ** (tries - 1), least)), tries, told);
  }
}

/** The name of a problem; empty where the server has not said one. @param {Response} answer */
export async function reasonOf(answer) {
  try {
    return /^urn:discreet:problem:([a-z-]+)$/.exec((await answer.json()).type)?.[1] ?? "";
  } catch {
    return "";
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
