// A client that stays: reads cases, one JSON text per line, and writes what it makes of them.
// node twin.mjs draw.js; a line { "document": digest, "content": text } makes a document known.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { answer } from "./answer.mjs";

const draw = await import(pathToFileURL(process.argv[2]));
const documents = {};
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if ("content" in message) documents[message.document] = message.content;
  else process.stdout.write(`${JSON.stringify(await answer(draw, documents, message))}\n`);
}
