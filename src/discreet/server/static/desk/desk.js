// @ts-check
/**
 * The desk: signs in with the link that works once, reads a file into a form, and says what a
 * collection would promise while it is written. Everything else works without.
 */

const once = new URLSearchParams(location.hash.slice(1)).get("once");
const enter = /** @type {HTMLFormElement | null} */ (document.querySelector("#enter"));
if (location.hash.startsWith("#once")) history.replaceState(null, "", location.pathname);
if (once && enter) {
  /** @type {HTMLInputElement} */ (enter.elements.namedItem("token")).value = once;
  enter.submit();
}

const SILENT = "The server does not say what this promises: it cannot be reached, or you are signed out. Copy what you have written before you open this page again.";
const draft = /** @type {HTMLFormElement | null} */ (document.querySelector("#new"));
if (draft) {
  const place = /** @type {HTMLElement} */ (document.querySelector("#promise"));
  let last = 0, timer = 0;
  const ask = async () => {
    const mine = ++last;
    const fields = new URLSearchParams();
    new FormData(draft).forEach((value, name) => typeof value === "string" && fields.append(name, value));
    const answer = await fetch("/desk/promise", { method: "POST", body: fields }).catch(() => null);
    const told = answer?.headers.get("Content-Type")?.startsWith("text/plain"); // or a page: of signing in, or a refusal
    const text = told ? await answer?.text() : SILENT;
    if (mine !== last) return; // something newer was written meanwhile
    place.textContent = text ?? SILENT;
    place.classList.toggle("warning", !answer?.ok);
    place.classList.toggle("promise", Boolean(answer?.ok));
  };
  draft.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 300); });
  document.querySelector("#file")?.addEventListener("change", async (event) => {
    const [file] = /** @type {HTMLInputElement} */ (event.target).files ?? [];
    const field = /** @type {HTMLTextAreaElement} */ (document.querySelector("#document"));
    if (file) field.value = await file.text();
    await ask();
  });
  await ask();
}
export {};
