// What a client in JavaScript makes of a case: used in node and in a browser, for the twin and for its known-bad copies.

/** JSON has no NaN and no infinity: { "$number": "NaN" } stands for them. */
function decodeNumbers(value) {
  if (value === null || typeof value !== "object") return value;
  if ("$number" in value) return Number(value.$number);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, decodeNumbers(member)]));
}

let collections = new Map(); // of the module that answered last, by digest
let lastModule = null;

/** The result of a case: what is sent, the key, the question, and how many bytes were used. */
export async function answer(draw, documents, vector) {
  if (lastModule !== draw) [lastModule, collections] = [draw, new Map()];
  const bytes = new Uint8Array(vector.tape.match(/../g)?.map((digits) => parseInt(digits, 16)) ?? []);
  const tape = new draw.Tape(bytes, vector.simulated);
  try {
    let collection = collections.get(vector.document);
    if (!collection) {
      const content = new TextEncoder().encode(documents[vector.document]);
      collection = await draw.collectionOf(content, { digest: vector.document, unprotected: true });
      collections.set(vector.document, collection);
    }
    const options = { source: tape, byHand: vector.by_hand };
    if (vector.personal) options.personal = decodeNumbers(vector.personal);
    if (vector.apart) options.question = collection.drawQuestion(tape, vector.group ?? undefined);
    else if (vector.group !== null) options.group = vector.group;
    const { text, key, id, question } = await collection.report(decodeNumbers(vector.answers), options);
    if (!text.includes(`"id": "${id}"`)) return { error: "another id" };
    return { text, key, question, used: tape.used };
  } catch (error) {
    return { error: error instanceof draw.DrawError ? error.reason : `${error.stack}` };
  }
}
