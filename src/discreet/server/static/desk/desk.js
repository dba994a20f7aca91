// @ts-check
/**
 * The desk: signs in with the link that works once, reads a file into a form, and says what a
 * collection would promise while it is written. Everything else works without.
 */

const oneTimeToken = new URLSearchParams(location.hash.slice(1)).get("once");
const signInForm = /** @type {HTMLFormElement | null} */ (document.querySelector("#enter"));
if (location.hash.startsWith("#once")) history.replaceState(null, "", location.pathname);
if (oneTimeToken && signInForm) {
  /** @type {HTMLInputElement} */ (signInForm.elements.namedItem("token")).value = oneTimeToken;
  signInForm.submit();
}

const NO_PROMISE_TEXT = "The server does not say what this promises: it cannot be reached, or you are signed out. Copy what you have written before you open this page again.";
const surveyForm = /** @type {HTMLFormElement | null} */ (document.querySelector("#new"));
if (surveyForm) {
  const promiseElement = /** @type {HTMLElement} */ (document.querySelector("#promise"));
  let latestRequestNumber = 0, timer = 0;
  const showPromise = async () => {
    const requestNumber = ++latestRequestNumber;
    const fields = new URLSearchParams();
    new FormData(surveyForm).forEach((value, name) => typeof value === "string" && fields.append(name, value));
    const response = await fetch("/desk/promise", { method: "POST", body: fields }).catch(() => null);
    const isPlainText = response?.headers.get("Content-Type")?.startsWith("text/plain"); // or a page: of signing in, or a refusal
    const promiseText = isPlainText ? await response?.text() : NO_PROMISE_TEXT;
    if (requestNumber !== latestRequestNumber) return; // something newer was written meanwhile
    promiseElement.textContent = promiseText ?? NO_PROMISE_TEXT;
    promiseElement.classList.toggle("warning", !response?.ok);
    promiseElement.classList.toggle("promise", Boolean(response?.ok));
  };
  surveyForm.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(showPromise, 300); });
  document.querySelector("#file")?.addEventListener("change", async (event) => {
    const [file] = /** @type {HTMLInputElement} */ (event.target).files ?? [];
    const documentField = /** @type {HTMLTextAreaElement} */ (document.querySelector("#document"));
    if (file) documentField.value = await file.text();
    await showPromise();
  });
  await showPromise();
}
export {};
