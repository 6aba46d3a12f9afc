/**
 * The scripts of the demo's three children. Each decides from its task and from what its tools returned; followed up from a
 * second shell they do the same for another folder, document or word.
 */
import type { JsonObject } from "../../protocol/json.ts";
import type { ScriptContext } from "../../providers/scripted/context.ts";
import {
  call,
  pause,
  say,
  type ScriptedStep,
  stall,
  think,
  together,
  wait,
} from "../../providers/scripted/script.ts";
import {
  type Conversation,
  numberOf,
  outputOf,
  quotedIn,
  readConversation,
  refusalOf,
  rowsOf,
  textOf,
} from "./conversation.ts";
import { WIDE_TASK } from "./job.ts";

type Script = (context: ScriptContext) => ScriptedStep;

const SHOWN = 3;
const SHOWN_HEADINGS = 6;
const WAIT_MS = 600_000;

/** Counts the whole folder, waits to be told where to look more closely, and counts there. */
export function counterScript(pace: number): Script {
  return (context) => {
    const talk = readConversation(context.messages);
    const task = talk.tasks.at(-1) ?? { text: "", at: 0 };
    const whole = outputOf(talk, "count", at("."), task.at);
    if (whole === null) {
      const refused = refusalOf(talk, "count", at("."), task.at);
      if (refused !== null) return say(`The folder cannot be counted: ${refused}`);
      return together(pause(pace), think("First the whole folder."), call("count", { path: "." }));
    }
    const folder = quotedIn(task.text) ?? namedFolder(talk);
    if (folder === null)
      return together(think("I have not been told where to look more closely."), rest(context));
    const close = outputOf(talk, "count", at(folder), task.at);
    const refused = refusalOf(talk, "count", at(folder), task.at);
    if (close === null && refused === null) {
      return together(pause(pace), think(`Now ${folder}.`), call("count", { path: folder }));
    }
    const kinds = rowsOf(whole["by_kind"]).slice(0, SHOWN);
    const longest = rowsOf(close?.["longest"]).slice(0, SHOWN);
    return together(
      pause(pace),
      say(
        [
          `Counted ${folder}: ${close === null ? refused : `${figures(close)}.`}`,
          `Kinds: ${kinds.map((kind) => `${textOf(kind["name"])} ${lines(kind)}`).join(", ")}.`,
          ...(longest.length === 0
            ? []
            : [
                `Longest there: ${longest.map((file) => `${textOf(file["path"])} ${lines(file)}`).join(", ")}.`,
              ]),
        ].join("\n"),
      ),
    );
  };
}

/** Reads the document that the task names in backquotes. */
export function readerScript(pace: number): Script {
  return (context) => {
    const talk = readConversation(context.messages);
    const task = talk.tasks.at(-1) ?? { text: "", at: 0 };
    const file = quotedIn(task.text);
    if (file === null) return say("Name the document to read in backquotes, such as `README.md`.");
    const read = outputOf(talk, "read_file", at(file), task.at);
    if (read === null) {
      const refused = refusalOf(talk, "read_file", at(file), task.at);
      if (refused !== null) return say(`Read ${file}: ${refused}`);
      return together(pause(pace), think(`I read ${file}.`), call("read_file", { path: file }));
    }
    return together(pause(pace), say(describeDocument(file, read)));
  };
}

/** Searches for one word. The wide task it can never finish, so it goes on until it is interrupted. */
export function searcherScript(pace: number): Script {
  return (context) => {
    const talk = readConversation(context.messages);
    const task = talk.tasks.at(-1) ?? { text: "", at: 0 };
    if (task.text.includes(WIDE_TASK)) return lookIntoEveryFile(talk, task.at, pace);
    const word = quotedIn(task.text);
    if (word === null) return say("Name the word to search in backquotes, such as `coppice`.");
    const found = outputOf(talk, "search", (input) => input["text"] === word, task.at);
    if (found === null) {
      const refused = refusalOf(talk, "search", (input) => input["text"] === word, task.at);
      if (refused !== null) return say(`Searched "${word}": ${refused}`);
      return together(pause(pace), think(`One word: ${word}.`), call("search", { text: word }));
    }
    const most = rowsOf(found["most"]).slice(0, SHOWN);
    const where = most.map((file) => `${textOf(file["file"])} (${numberOf(file["matches"])})`).join(", ");
    const total = `${count(numberOf(found["total"]), "line")} of ${count(numberOf(found["files"]), "file")}`;
    return together(
      pause(pace),
      say(`Searched "${word}": it stands in ${total}${where === "" ? "." : `, most in ${where}.`}`),
    );
  };
}

/** One of many; without an interrupt it would not come to an end. */
function lookIntoEveryFile(talk: Conversation, since: number, pace: number): ScriptedStep {
  const listed = outputOf(talk, "list_files", () => true, since);
  if (listed === null && refusalOf(talk, "list_files", () => true, since) === null) {
    return together(
      pause(pace),
      think("Every file. That will take a while."),
      call("list_files", { path: "." }),
    );
  }
  const first = rowsOf(listed?.["entries"]).find((entry) => entry["kind"] === "file");
  return together(
    pause(pace),
    say(`I begin with ${textOf(first?.["name"]) || "the first file"}, line by line.`),
    stall(),
  );
}

const at =
  (path: string) =>
  (input: JsonObject): boolean =>
    input["path"] === path;

/** The folder that a message has named, whenever it came. */
function namedFolder(talk: Conversation): string | null {
  return quotedIn(
    talk.letters.findLast((letter) => letter.type === "MESSAGE" && quotedIn(letter.text) !== null)?.text ??
      "",
  );
}

/** Rests until a message comes. */
function rest(context: ScriptContext): ScriptedStep {
  const canWait = context.request.tools.some((tool) => tool.name === "wait_agent");
  return canWait ? wait({ timeout_ms: WAIT_MS }) : say("Nobody told me where to look more closely.");
}

function describeDocument(file: string, read: JsonObject): string {
  if (read["binary"] === true) return `Read ${file}: it is no text.`;
  const rows = textOf(read["text"]).split("\n");
  const title = titleOf(rows);
  const headings = rows
    .filter((row) => /^#{2,3} /.test(row))
    .map((row) => row.replace(/^#+ /, "").trim())
    .slice(0, SHOWN_HEADINGS);
  const about = title === "" ? "it is empty" : `"${title}"`;
  const parts = headings.length === 0 ? "" : ` Parts: ${headings.join(", ")}.`;
  return `Read ${file}: ${about}, ${count(numberOf(read["lines"]), "line")}.${parts}`;
}

function titleOf(rows: readonly string[]): string {
  const heading = rows.find((row) => row.startsWith("# ")) ?? rows.find((row) => row.trim() !== "") ?? "";
  return heading.replace(/^#+ /, "").replaceAll('"', "'").trim().slice(0, 100);
}

export function figures(counted: JsonObject): string {
  return `${count(numberOf(counted["files"]), "file")}, ${count(numberOf(counted["lines"]), "line")}`;
}

function lines(row: JsonObject): string {
  return count(numberOf(row["lines"]), "line");
}

export function count(number: number, what: string): string {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}
