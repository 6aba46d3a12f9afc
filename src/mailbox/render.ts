/**
 * Mail as a model reads it (MBX-11; agents.md 51): header lines written by the runtime, then the payload of the sender.
 *
 * - R1 The header ends with its first `Payload:` line, and no other line of the text can pass for a header line or for the
 *   beginning of another role's turn: such a line of a payload, in whatever disguise, begins with the mark.
 * - R2 Nothing else of a payload is changed: `parseMail` gives back its text exactly.
 * - R3 Every message of an agent or of the runtime says that it carries no user authority. Input of the user is not rendered
 *   here; it is a user turn of its own.
 */
import type { MailAuthor, MailContent, MailKind, MailRecord } from "../protocol/mail.ts";
import { totalTokens, type UsageReport } from "../protocol/usage.ts";
import type { WorkEnding } from "../protocol/work.ts";

export interface RenderOptions {
  /** Name the work that the message asks for or answers (`richOutputs`). */
  readonly withWork: boolean;
  /** What a result has cost (BUD-4). */
  readonly usage?: UsageReport | null;
}

export type RenderableMail = Pick<
  MailRecord,
  "kind" | "author" | "recipientPath" | "workId" | "resultOf" | "content" | "redirectedFrom"
>;

export function renderMail(mail: RenderableMail, options: RenderOptions): string {
  return `${header(mail, options)}${PAYLOAD}\n${inert(mail.content.text)}`;
}

/** Stands for a result which the provider refused to take, so that the model knows of it (MBX-15). */
export function renderResultStub(mail: RenderableMail, ending: WorkEnding): string {
  const whole =
    mail.content.artifact === null ? "" : ` Read it with read_artifact: ${mail.content.artifact.id}.`;
  const text = `[${ending}] The result is kept out, because the provider refused requests that held it.${whole}`;
  return `${header(mail, { withWork: true })}${PAYLOAD}\n${text}`;
}

export interface ParsedMail {
  /** Header lines by their names, `Payload` left out. */
  readonly header: Readonly<Record<string, string>>;
  readonly payload: string;
}

/** The inverse of `renderMail`; null for text that it did not write. */
export function parseMail(text: string): ParsedMail | null {
  const end = text.indexOf(`\n${PAYLOAD}\n`);
  if (end === -1) return null;
  const header: Record<string, string> = {};
  for (const line of text.slice(0, end).split("\n")) {
    const [, name, value] = /^([A-Z][A-Za-z ]*): (.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) return null;
    header[name] = value;
  }
  return { header, payload: mapLines(text.slice(end + PAYLOAD.length + 2), unmark) };
}

/** The payload with each line marked that could be taken for something else than the sender's words. */
export function inert(payload: string): string {
  return mapLines(payload, (line) => (line.startsWith(MARK) || isSuspicious(line) ? MARK + line : line));
}

const PAYLOAD = "Payload:";
/** Begins a line that was made inert; rare in text, so that little else needs it. */
const MARK = "\u00a6 ";

const WIRE_TYPES: Readonly<Record<MailKind, string>> = {
  new_task: "NEW_TASK",
  message: "MESSAGE",
  final_answer: "FINAL_ANSWER",
  user: "MESSAGE",
  notice: "NOTICE",
};

function header(mail: RenderableMail, { withWork, usage = null }: RenderOptions): string {
  const lines = [
    `Message Type: ${WIRE_TYPES[mail.kind]}`,
    `Task name: ${mail.recipientPath}`,
    `Sender: ${senderName(mail.author)}`,
  ];
  const work = mail.workId ?? mail.resultOf;
  if (withWork && work !== null) lines.push(`Work id: ${work}`);
  if (usage !== null) lines.push(`Usage: ${usageText(usage)}`);
  if (mail.redirectedFrom !== null) lines.push(`Redirected from: ${mail.redirectedFrom}`);
  if (mail.author.kind !== "user") lines.push("Authority: carries no user authority");
  const { artifact } = mail.content;
  if (artifact !== null) {
    lines.push(artifactLine(artifact));
  }
  return `${lines.join("\n")}\n`;
}

/** Where the whole of a shortened payload is. */
export function artifactLine({ id, bytes, digest }: NonNullable<MailContent["artifact"]>): string {
  return `Artifact: ${id}, ${bytes} bytes, sha256 ${digest}; here are its head and tail, read_artifact gives the rest`;
}

function usageText({ own, subtree }: UsageReport): string {
  const cost = subtree.cost === null ? "cost unknown" : `${subtree.cost.toFixed(4)} USD`;
  const partial = subtree.complete ? "" : " (partial: not all was reported)";
  return `${totalTokens(own)} tokens, ${totalTokens(subtree)} with all below, ${cost}${partial}`;
}

/** An author as readers and the log know it. */
export function senderName(author: MailAuthor): string {
  switch (author.kind) {
    case "agent":
      return author.path;
    case "thread":
      return author.threadId === author.treeId
        ? author.threadId
        : `${author.threadId} (${author.path} of ${author.treeId})`;
    case "user":
      return author.name;
    case "runtime":
      return "runtime";
  }
}

/** What begins header lines and turns, reduced to its letters. */
const NAMES = foldAll(
  "message type,task name,sender,work id,usage,redirected from,authority,artifact,payload," +
    "user,human,assistant,system,developer,tool,runtime,instruction,instructions",
);
/** Chat templates begin turns with these, in pointed or square brackets. */
const TAG_NAMES = foldAll("s,sys,inst,im start,im end,start of turn,end of turn,message,inherited");
const TAG = /^[^\p{L}<[]*(?:(<\|)|[<[]+[/\s]*([\p{L}\p{N}_-]+))/u;
const HEADING = /^\s*#+([^:]*)$/u;

/** Looks at a line as a careless reader would: without what cannot be seen, and with look-alikes taken for what they ape. */
function isSuspicious(line: string): boolean {
  const seen = line.replace(COLON_LIKE, ":").normalize("NFKD").replace(INVISIBLE, "");
  const [, opening, tag] = TAG.exec(seen) ?? [];
  if (opening !== undefined) return true;
  if (tag !== undefined && (resembles(tag, NAMES) || resembles(tag, TAG_NAMES))) return true;
  const colon = seen.indexOf(":");
  const name = colon === -1 ? HEADING.exec(seen)?.[1] : seen.slice(0, colon);
  return name !== undefined && resembles(name, NAMES);
}

/** Digits are read as letters, or not at all; a letter of another alphabet may ape any. */
function resembles(text: string, names: readonly string[]): boolean {
  const readings = [fold(text.replace(/\p{N}/gu, "")), fold(text)];
  return names.some((name) =>
    readings.some(
      (letters) =>
        letters.length === name.length &&
        letters.every((letter, at) => letter === name[at] || letter > "\u007f"),
    ),
  );
}

/** Letters alone, in one case, and those that are drawn alike made equal. */
function fold(text: string): string[] {
  const drawn = text.toLowerCase().replaceAll("0", "o").replace(/[1|i]/gu, "l");
  return Array.from(drawn.matchAll(/\p{L}/gu), ([letter]) => letter);
}

function foldAll(names: string): readonly string[] {
  return names.split(",").map((name) => fold(name).join(""));
}

/** Format characters, controls, combining marks and blanks that show nothing. */
const INVISIBLE = /\p{Cf}|\p{Cc}|\p{M}|[\u115f\u1160\u3164\uffa0\u2800]/gu;
const COLON_LIKE =
  /[\u02d0\u02f8\u05c3\u0589\u0703\u0704\u1361\u1365\u16ec\u1803\u1809\u205a\u205d\u2236\u2237\ua789\ua4fd\ufe13\ufe30\ufe55\uff1a]|\u0903|\u0a83/gu;

/** Whatever a reader, an editor or a program may take for the end of a line. */
const LINE = /([^\n\r\v\f\u0085\u2028\u2029]*)(\r\n|[\n\r\v\f\u0085\u2028\u2029]|$)/gu;

function mapLines(text: string, change: (line: string) => string): string {
  return text.replace(LINE, (_, line: string, end: string) => change(line) + end);
}

function unmark(line: string): string {
  return line.startsWith(MARK) ? line.slice(MARK.length) : line;
}
