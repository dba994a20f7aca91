// What a client in JavaScript makes of a case: used in node and in a browser, for the twin and for its known-bad copies.

/** JSON has no NaN and no infinity: { "$number": "NaN" } stands for them. */
function plain(value) {
  if (value === null || typeof value !== "object") return value;
  if ("$number" in value) return Number(value.$number);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]));
}

let read = new Map(); // documents, of one module
let of = null;

/** The result of a case: what is sent, the key, the question, and how many bytes were used. */
export async function answer(draw, documents, one) {
  if (of !== draw) [of, read] = [draw, new Map()];
  const bytes = new Uint8Array(one.tape.match(/../g)?.map((two) => parseInt(two, 16)) ?? []);
  const tape = new draw.Tape(bytes, one.simulated);
  try {
    let collection = read.get(one.document);
    if (!collection) {
      const content = new TextEncoder().encode(documents[one.document]);
      collection = await draw.collectionOf(content, { digest: one.document, unprotected: true });
      read.set(one.document, collection);
    }
    const options = { source: tape, byHand: one.by_hand };
    if (one.personal) options.personal = plain(one.personal);
    if (one.apart) options.question = collection.drawQuestion(tape, one.group ?? undefined);
    else if (one.group !== null) options.group = one.group;
    const { text, key, id, question } = await collection.report(plain(one.answers), options);
    if (!text.includes(`"id": "${id}"`)) return { error: "another id" };
    return { text, key, question, used: tape.used };
  } catch (error) {
    return { error: error instanceof draw.DrawError ? error.reason : `${error.stack}` };
  }
}
