/** Types of draw.js and promise.js. Nothing here is loaded by a browser. */

import type { Source } from "./random.js";

/**
 * An answer: a value of the document, a number or its text, null where it is missing, or
 * `{ cell }`: one of `choices(name)`, by its number.
 */
export type Answer = string | number | bigint | boolean | null | undefined | { cell: number };
export type Answers = { [name: string]: Answer };

/** What was drawn. Keep all of it before the text leaves the device. */
export interface Drawn {
  /** What is sent, byte for byte: UTF-8, one line and its end. */
  text: string;
  /** Public id of the report: 32 hexadecimal digits, the hash of the key. */
  id: string;
  /** Stays with the person, who may withdraw the report by showing it. 32 hexadecimal digits. */
  key: string;
  question: number;
  value: number[];
}

/** SHA-256 of some bytes, as 32 bytes. */
export type Hash = (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>;

/** One cell of a question. */
export interface Choice {
  /** What to put into the answers. */
  answer: { cell: number };
  /** As Python writes it: the value, "1 to 3", "(other)" or "(missing)". */
  label: string;
  kind: "value" | "bin" | "other" | "missing";
  /** Of the document, for kind "value". */
  value: Value | null;
  /** First and last number of a bin; without whole numbers the last belongs to the next bin. */
  between: [number, number] | null;
}

export interface ReportOptions {
  /** The question that `drawQuestion` returned; without it `report` draws one. */
  question?: number;
  /** The question that was assigned, in a plan that assigns them. */
  group?: number;
  /** By default the browser's cryptographic source. */
  source?: Source;
  /** The person's own answers to the personal questions, where the questionnaire asks them. */
  personal?: Answers;
  /** The answers are the outcome of the person's own draw: only the key is drawn here. */
  byHand?: boolean;
}

/**
 * Why something is refused.
 *
 * Of the document: `document` (damaged, contradicts itself, not the canonical bytes), `digest`,
 * `version`, `unprotected`. Of the place: `insecure` (a page that is neither https nor localhost has
 * no hashes, unless a function is passed), `hash` (the function that was passed is not SHA-256).
 * Of the call: `group`, `device` (drawn by hand, or not), `personal`.
 * Of an answer, whose name is in `field`: `unasked`, `missing`, `unknown` (not a public
 * value), `ambiguous` (a label of several bins), `number`, `date`, `whole`, `outside` (the bounds), `cell`.
 */
export type Reason =
  | "document" | "digest" | "version" | "unprotected" | "insecure" | "hash" | "group" | "device" | "personal"
  | "unasked" | "missing" | "unknown" | "ambiguous" | "number" | "date" | "whole" | "outside" | "cell";

export type JsonObject = { [name: string]: any };
export type Value = string | number | boolean;
export interface Rules { missing_tokens: string[]; unseen: string; outliers: string }
export interface Feature {
  name: string;
  optional: boolean;
  values?: Value[];
  /** Of a date its first and last day, as text. */
  lower?: number | string | null;
  upper?: number | string | null;
  integer?: boolean;
  /** Of a date: day, month or year, or its part. */
  by?: string | null;
}
export type PartName = "weekday" | "month of year" | "hour";
export interface Schema extends Rules { features: Feature[]; target: string; classes: Value[] }
export interface Projection {
  schema: Schema;
  centre: number[];
  scale: number[];
  matrix: number[][];
  components: { name: string }[];
}
/** A model as whole numbers, which a question may ask people to judge. */
export interface Candidate {
  /** What every record adds to the score of each class. */
  offsets: number[];
  /** What each cell of each feature adds: classes by cells. */
  tables: { [name: string]: number[][] };
}
export interface Question {
  candidate?: Candidate;
  features: string[];
  power: number;
  weight: number;
  mechanism: string;
  epsilon: number;
  parameters: JsonObject;
}
export interface PlanBody {
  schema: Schema;
  projection: Projection | null;
  epsilon: number | "inf";
  edges: { [name: string]: number[] };
  questions: Question[];
}
export interface QuestionnaireBody {
  questions: (Feature & { answers?: Value[]; cuts?: number[] })[];
  target: string;
  groups: { questions: string[] }[];
  channels: JsonObject[];
  device: string;
}
export interface AnswerLaw { places: number[]; weights: number[] }

/** The steps of a report in which plans and questionnaires differ. */
export interface Device {
  names: string[];
  features: JsonObject[];
  personal: string[];
  questions: number;
  isSheet: boolean;
  epsilon: number;
  assigned: boolean;
  asked(question: number): string[];
  choices(name: string): Choice[] | null;
  check(name: string, answer: Answer): void;
  drawQuestion(source: Source): number;
  prepare(answers: Answers, question: number | null, options: ReportOptions): any;
  randomize(question: number, prepared: any, source: Source): number[];
}

/** How one part of a message hides an answer; see `describeProtection`. */
export interface PartProtection {
  /** Names of what is answered in this part, the target included. */
  names: string[];
  mechanism: string;
  /** Loss of this part. */
  epsilon: number;
  /**
   * What is sent: the answers or others ("answers"), a set that may hold the true answer ("set"),
   * numbers with noise ("noise"), or whether a model is right about the person ("verdict").
   */
  sent: "answers" | "set" | "noise" | "verdict";
  /** P(the true answers are sent, or are in the set, or the true verdict is sent); null for noise. */
  truth: number | null;
  /** P(a certain other answer is sent, or is in the set); null where no single number applies. */
  other: number | null;
}
