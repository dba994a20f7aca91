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

const draft = /** @type {HTMLFormElement | null} */ (document.querySelector("#new"));
if (draft) {
  const place = /** @type {HTMLElement} */ (document.querySelector("#promise"));
  let last = 0, timer = 0;
  const ask = async () => {
    const mine = ++last;
    const fields = new URLSearchParams();
    new FormData(draft).forEach((value, name) => typeof value === "string" && fields.append(name, value));
    const answer = await fetch("/desk/promise", { method: "POST", body: fields });
    const text = await answer.text();
    if (mine !== last) return; // something newer was written meanwhile
    place.textContent = text;
    place.classList.toggle("warning", !answer.ok);
    place.classList.toggle("promise", answer.ok);
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
