// @ts-check
/**
 * Sends stored bytes until they have arrived or are refused. Sending them again is safe: the server
 * stores the same report once.
 *
 * @module send
 */

/**
 * @typedef {{ outcome: "counted" | "repeated" | "refused", reason: string }} SendResult
 * @typedef {{ seconds: number, attemptCount: number, retry: () => void }} Waiting
 */

const MAX_WAIT_SECONDS = 60; // between two attempts
const REQUEST_TIMEOUT_SECONDS = 30;

/**
 * POST a report.
 * @param {string} url
 * @param {() => Promise<{ text: string | null, id: string, code: string } | null>} loadReport Asked
 *   before every attempt; null where nothing is left to send.
 * @param {(waiting: Waiting) => void} onWaiting Called before each wait.
 * @returns {Promise<SendResult>}
 */
export async function postReport(url, loadReport, onWaiting) {
  return retryUntilAnswered(async () => {
    const report = await loadReport();
    if (!report) return "repeated";
    const headers = { "Content-Type": "application/json", ...(report.code ? { Invitation: report.code } : {}) };
    const response = await sendRequest(url, { method: "POST", body: report.text, headers });
    if (!response.ok) return response;
    const { outcome, id } = await response.json();
    return id === report.id && ["counted", "repeated"].includes(outcome) ? outcome : response;
  }, onWaiting);
}

/**
 * Withdraw a report by its key.
 * @param {string} url Of the reports.
 * @param {string} id
 * @param {string} key
 * @param {(waiting: Waiting) => void} onWaiting
 * @returns {Promise<SendResult>}
 */
export async function deleteReport(url, id, key, onWaiting) {
  const body = JSON.stringify({ key });
  const options = { method: "DELETE", body, headers: { "Content-Type": "application/json" } };
  return retryUntilAnswered(async () => {
    const response = await sendRequest(`${url}/${id}`, options);
    return response.status === 204 ? "counted" : response;
  }, onWaiting);
}

/**
 * Send a request without cookies, referrers, caches or redirects.
 * @param {string} url
 * @param {RequestInit} [options]
 */
export function sendRequest(url, options = {}) {
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_SECONDS * 1000);
  return fetch(url, { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal, ...options });
}

/**
 * Try again until the server itself has answered: a proxy or a hotel's sign-in page on the way may
 * send any response, success included.
 * @type {(attempt: () => Promise<Response | "counted" | "repeated">, onWaiting: (waiting: Waiting) => void) => Promise<SendResult>}
 */
async function retryUntilAnswered(attempt, onWaiting) {
  for (let attemptCount = 1; ; attemptCount++) {
    let minWaitSeconds = 0;
    try {
      const response = await attempt();
      if (typeof response === "string") return { outcome: response, reason: "" };
      if (response.status < 500 && ![408, 429].includes(response.status)) {
        const reason = await parseProblem(response);
        if (reason) return { outcome: "refused", reason };
      }
      minWaitSeconds = Number(response.headers.get("Retry-After")) || 0;
    } catch { /* no answer: it may have arrived, so the same bytes go again */ }
    await waitToRetry(Math.min(MAX_WAIT_SECONDS, Math.max(2 ** (attemptCount - 1), minWaitSeconds)), attemptCount, onWaiting);
  }
}

/** Read the problem type of a response; empty where it has none. @param {Response} response */
export async function parseProblem(response) {
  try {
    return /^urn:discreet:problem:([a-z-]+)$/.exec((await response.json()).type)?.[1] ?? "";
  } catch {
    return "";
  }
}

/** @type {(seconds: number, attemptCount: number, onWaiting: (waiting: Waiting) => void) => Promise<void>} */
function waitToRetry(seconds, attemptCount, onWaiting) {
  return new Promise((resolve) => {
    const listeners = new AbortController(), { signal } = listeners;
    const retry = () => { clearTimeout(timer); listeners.abort(); resolve(); };
    const timer = setTimeout(retry, seconds * 1000);
    addEventListener("online", retry, { signal });
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && retry(), { signal });
    onWaiting({ seconds, attemptCount, retry });
  });
}
