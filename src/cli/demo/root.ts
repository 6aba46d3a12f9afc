/**
 * The script of the demo's root: list and count, start three, tell one, follow up with another, interrupt the third and resume
 * it, join, answer. Each step follows from what is in the conversation: what is done is not done again, what failed is asked
 * for anew, and what was lost in a crash is looked up first.
 */
import type { JsonObject } from "../../protocol/json.ts";
import type { ScriptContext } from "../../providers/scripted/context.ts";
import {
  call,
  followUp,
  interrupt,
  list,
  pause,
  say,
  type ScriptedStep,
  send,
  spawn,
  think,
  together,
  wait,
} from "../../providers/scripted/script.ts";
import { count, figures } from "./children.ts";
import {
  type Conversation,
  numberOf,
  outputOf,
  readConversation,
  refusalOf,
  rowsOf,
  textOf,
} from "./conversation.ts";
import {
  COUNTER,
  counterAgain,
  counterNote,
  counterTask,
  READER,
  readerTask,
  SEARCHER,
  searcherTask,
  WIDE_TASK,
} from "./job.ts";
import { Ledger } from "./ledger.ts";

const WAIT_MS = 600_000;
const SHOWN_FOLDERS = 5;
const SHOWN_NAMES = 12;
const FIRST_TASKS: Readonly<Record<string, string>> = { [COUNTER]: counterTask, [SEARCHER]: WIDE_TASK };

/** What the root has made up its mind about, from the list and its own count. */
interface Plan {
  readonly folder: string;
  readonly first: string;
  readonly second: string;
}

export function rootScript(pace: number): (context: ScriptContext) => ScriptedStep {
  return (context) => {
    const step = decide(context);
    return together(pause(pace), step);
  };
}

function decide(context: ScriptContext): ScriptedStep {
  const talk = readConversation(context.messages);
  const listed = outputOf(talk, "list_files");
  const counted = outputOf(talk, "count");
  if (listed === null || counted === null) return look(talk, listed, counted);
  if (numberOf(counted["files"]) === 0) return say("There are no files in the folder that I may read.");
  const plan = makePlan(listed, counted);
  const rich = context.request.tools.some(
    (tool) => tool.name === "wait_agent" && JSON.stringify(tool.parameters).includes('"targets"'),
  );
  const ledger = new Ledger(talk, rich);
  return (
    start(ledger, plan) ??
    guide(ledger, plan, rich) ??
    join(ledger, rich) ??
    say(answer(ledger, plan, listed, counted))
  );
}

/** Both calls in one response: they run side by side. */
function look(talk: Conversation, listed: JsonObject | null, counted: JsonObject | null): ScriptedStep {
  const refused = refusalOf(talk, "list_files") ?? refusalOf(talk, "count");
  if (refused !== null) return say(`The folder cannot be looked through: ${refused}`);
  return together(
    think("I look myself first, then I ask others."),
    ...(listed === null ? [call("list_files", { path: "." })] : []),
    ...(counted === null ? [call("count", { path: "." })] : []),
  );
}

/** Three agents at once, and a look at the list where a crash left a doubt. */
function start(ledger: Ledger, plan: Plan): ScriptedStep | null {
  const names = [COUNTER, READER, SEARCHER];
  const missing = names.filter((name) => !ledger.exists(name) && !ledger.givenUp(name));
  if (missing.length > 0) {
    return together(
      think(`I start ${missing.join(", ")}.`),
      ...missing.map((name) =>
        spawn(name, FIRST_TASKS[name] ?? readerTask(plan.first), { fork_turns: "none", agent_type: name }),
      ),
    );
  }
  if (names.some((name) => ledger.unsure(name)))
    return together(think("Something was lost; who is there?"), list());
  return null;
}

function guide(ledger: Ledger, plan: Plan, rich: boolean): ScriptedStep | null {
  if (!ledger.told(COUNTER))
    return together(think(`Most is in ${plan.folder}.`), send(COUNTER, counterNote(plan.folder)));
  const first = ledger.answer(READER, `Read ${plan.first}:`);
  if (first === null && !ledger.givenUp(READER)) {
    if (ledger.isOpen(READER)) return waitFor(rich, [READER]);
    return ask(ledger, READER, readerTask(plan.first));
  }
  const second = ledger.answer(READER, `Read ${plan.second}:`);
  if (second === null && !ledger.givenUp(READER)) {
    if (ledger.isOpen(READER)) return waitFor(rich, [READER]);
    return ask(ledger, READER, readerTask(plan.second));
  }
  if (!ledger.interrupted(SEARCHER) && ledger.exists(SEARCHER)) {
    const pending = rich ? { pending: "cancel" } : {};
    return together(think("Every file takes too long; one word will do."), interrupt(SEARCHER, pending));
  }
  const word = wordOf(first, plan);
  if (ledger.answer(SEARCHER, `Searched "${word}":`) === null && needed(ledger, SEARCHER)) {
    return ask(ledger, SEARCHER, searcherTask(word));
  }
  if (ledger.answer(COUNTER, `Counted ${plan.folder}:`) === null && needed(ledger, COUNTER)) {
    return ask(ledger, COUNTER, counterAgain(plan.folder));
  }
  return null;
}

/** Nothing is under way there, and it can still be asked. */
function needed(ledger: Ledger, name: string): boolean {
  return !ledger.isOpen(name) && !ledger.givenUp(name);
}

/** A refusal that passes is waited out before it is asked again. */
function ask(ledger: Ledger, name: string, task: string): ScriptedStep {
  if (ledger.mustRest(name)) return wait({ timeout_ms: 10_000 });
  return together(think(`One more for ${name}.`), followUp(name, task));
}

function join(ledger: Ledger, rich: boolean): ScriptedStep | null {
  const open = [COUNTER, READER, SEARCHER].filter((name) => ledger.isOpen(name));
  return open.length === 0 ? null : waitFor(rich, open);
}

function waitFor(rich: boolean, names: readonly string[]): ScriptedStep {
  return wait(rich ? { targets: [...names], mode: "all", timeout_ms: WAIT_MS } : { timeout_ms: WAIT_MS });
}

function makePlan(listed: JsonObject, counted: JsonObject): Plan {
  const files = rowsOf(listed["entries"])
    .filter((entry) => entry["kind"] === "file")
    .map((entry) => textOf(entry["name"]));
  const longest = rowsOf(counted["longest"]).map((file) => textOf(file["path"]));
  const readme = files.find((name) => /^readme\b/i.test(name));
  const documents = files.filter((name) => /\.(md|txt|rst|adoc)$/i.test(name) && name !== readme);
  const candidates = [...(readme === undefined ? [] : [readme]), ...documents, ...longest];
  const first = candidates[0] ?? ".";
  return {
    folder: textOf(rowsOf(counted["by_folder"])[0]?.["name"]) || ".",
    first,
    second: candidates.find((name) => name !== first) ?? first,
  };
}

/** The first word of the title that says something; else the name of the document. */
function wordOf(first: string | null, plan: Plan): string {
  const title = /"([^"]+)"/.exec(first ?? "")?.[1] ?? "";
  const words = title.match(/\p{L}[\p{L}\p{N}_-]{3,}/gu) ?? [];
  return words[0] ?? plan.first.slice(plan.first.lastIndexOf("/") + 1).replace(/\.[^.]*$/, "");
}

function answer(ledger: Ledger, plan: Plan, listed: JsonObject, counted: JsonObject): string {
  const names = rowsOf(listed["entries"]).map(
    (entry) => `${textOf(entry["name"])}${entry["kind"] === "folder" ? "/" : ""}`,
  );
  const more = names.length - SHOWN_NAMES;
  const folders = rowsOf(counted["by_folder"]).slice(0, SHOWN_FOLDERS);
  const word = wordOf(ledger.answer(READER, `Read ${plan.first}:`), plan);
  const said = (name: string, beginning: string): string =>
    ledger.answer(name, beginning) ?? `${name} gave no answer to "${beginning.replace(/:$/, "")}".`;
  return [
    `The folder holds ${figures(counted)}.`,
    `In it: ${names.slice(0, SHOWN_NAMES).join(", ")}${more > 0 ? ` and ${more} more` : ""}.`,
    ...(folders.length === 0
      ? []
      : [
          `Most lines: ${folders.map((one) => `${textOf(one["name"])}/ ${count(numberOf(one["lines"]), "line")}`).join(", ")}.`,
        ]),
    said(COUNTER, `Counted ${plan.folder}:`),
    said(READER, `Read ${plan.first}:`),
    ...(plan.second === plan.first ? [] : [said(READER, `Read ${plan.second}:`)]),
    said(SEARCHER, `Searched "${word}":`),
    `Digest of all names: ${textOf(counted["names"])}.`,
  ].join("\n");
}
