// An app of your own answers a collection: it asks, hides the answer on the device, keeps it, sends it.
//
//     discreet serve plan.json                       # prints the address of the survey
//     node examples/app/answer.mjs http://127.0.0.1:8000/api/v1/surveys/plan answers.json kept.json
//
// Copy draw.js and the modules beside it (src/discreet/server/static) into your app; nothing else is
// needed. In a browser everything is the same but where things are kept: there, use IndexedDB.

import { readFile, writeFile } from "node:fs/promises";
import { collectionOf, DrawError } from "../../src/discreet/server/static/draw.js";
import { countPeople, describeProtection, posteriorOf } from "../../src/discreet/server/static/promise.js";

const [address, answersFile, reportFile] = process.argv.slice(2);

// Whoever answers twice gives more away than was promised: what is kept is never drawn again.
const storedReport = await readFile(reportFile, "utf8").then(JSON.parse, () => null);
const report = storedReport ?? (await drawReport());
if (!storedReport) await writeFile(reportFile, JSON.stringify(report), { flag: "wx", flush: true });

const response = await fetch(`${address}/reports`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: report.text, // these bytes and no others; send the same ones again if the answer is lost
});
console.log(response.status === 201 ? "counted" : response.status === 200 ? "counted before" : `refused: ${await response.text()}`);

async function drawReport() {
  // the bytes as they come: their SHA-256 is the digest that every report names
  const bytes = await (await fetch(`${address}/document`)).arrayBuffer();
  const collection = await collectionOf(bytes);

  // the question is drawn before anybody is asked, so only what it needs is asked for
  const question = collection.drawQuestion();
  const answers = JSON.parse(await readFile(answersFile, "utf8"));
  const askedAnswers = Object.fromEntries(collection.asked(question).map((name) => [name, answers[name]]));

  for (const part of describeProtection(collection, question)) {
    const protection = part.truth === null ? "numbers with noise" : `the truth for ${countPeople(part.truth)} of 100 people`;
    console.log(`${part.names.join(", ")}: ${protection}`);
  }
  const belief = countPeople(posteriorOf(0.1, collection.epsilon));
  console.log(`who thought something 10 in 100 likely may think it ${belief} in 100 likely, at most`);

  try {
    const report = await collection.report(askedAnswers, { question });
    return { text: report.text, id: report.id, key: report.key }; // the key withdraws the report
  } catch (error) {
    if (!(error instanceof DrawError)) throw error;
    console.error(`${error.field ?? "this survey"} cannot be answered so: ${error.reason}`);
    process.exit(1);
  }
}
