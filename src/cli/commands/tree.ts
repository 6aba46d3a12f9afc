/** `coppice tree`: the agents of a tree, once or, with `--watch`, as they change. */
import { type Command, Option } from "commander";
import { delay, systemClock } from "../../platform/clock.ts";
import type {
  AgentSummary,
  AskedRequest,
  NativeAgent,
  Owner,
  TreeReader,
  UnreadableRow,
} from "../../runtime/tree-reader.ts";
import type { Store } from "../../store/port.ts";
import { allPages } from "../all-pages.ts";
import { badUse } from "../failure.ts";
import { goOnCommand } from "../go-on.ts";
import { commandLine } from "../screen/command-line.ts";
import { LiveBlock } from "../screen/live.ts";
import { requestLines } from "../screen/request-lines.ts";
import { treeLines } from "../screen/tree-lines.ts";
import { counted, statusWord } from "../screen/words.ts";
import { clean, clip, type Terminal } from "../terminal.ts";
import { requireReadable, rowName } from "../unreadable.ts";
import { given, reading, type TreeOptions, withTree } from "./options.ts";

interface Options extends TreeOptions {
  readonly watch?: boolean;
  readonly closed?: boolean;
  readonly profile?: string;
  readonly ids?: boolean;
}

const LOOK_MS = 200;
const PAGE = 500;
const UNDER_WAY = ["running", "starting", "queued", "waiting", "awaiting_children", "awaiting_approval"];

export function addTree(program: Command, terminal: Terminal): void {
  withTree(program.command("tree"), {
    json: "one object, with --watch NDJSON: one each time that it changes",
    example: "tree --watch",
  })
    .description("show the agents of a tree: state, unread mail, tokens, last activity")
    .option("--watch", "follow the changes until interrupted")
    .option("--closed", "closed agents as well")
    .option("--ids", "the id of each agent's thread, which the commands of threads want")
    .addOption(
      new Option("--profile <name>", "in which words statuses are told").choices(["default", "codex"]),
    )
    .action(async (options: Options) => {
      await reading(options, undefined, async (tree, store) => {
        const shown = () => look(tree, store, options);
        if (options.watch === true) await watch(terminal, tree, shown, options);
        else show(terminal, tree, await shown(), options);
      });
    });
}

interface Shown {
  readonly title: string | null;
  readonly owner: Owner | null;
  readonly agents: readonly AgentSummary[];
  readonly words: ReadonlyMap<string, string> | null;
  readonly requests: readonly AskedRequest[];
  readonly natives: readonly NativeAgent[];
  readonly unreadable: readonly UnreadableRow[];
  /** What runs on what was left under way; null where a process runs the tree, and where nothing was. */
  readonly goOn: string | null;
}

async function look(tree: TreeReader, store: Store, options: Options): Promise<Shown> {
  const agents: AgentSummary[] = [];
  const unreadable: UnreadableRow[] = [];
  const { closed = false } = options;
  for await (const page of allPages((after) => tree.agents({ closed, limit: PAGE, after }))) {
    agents.push(...page.agents);
    unreadable.push(...page.unreadable);
  }
  const [record, owner, asked, natives] = await Promise.all([
    tree.record(),
    tree.owner(),
    tree.asked(),
    tree.nativeAgents(agents),
  ]);
  const known = new Set(unreadable.map(({ id }) => id));
  unreadable.push(...asked.unreadable.filter(({ id }) => !known.has(id)));
  const left = owner === null ? agents.find(({ status }) => UNDER_WAY.includes(status.kind)) : undefined;
  const goOn =
    left === undefined ? null : await goOnCommand(store, left, { tree: tree.id, store: options.store });
  const shown = { title: record.title, owner, agents, requests: asked.requests, natives, unreadable, goOn };
  if (options.profile !== "codex") return { ...shown, words: owner === null ? withoutOwner(agents) : null };
  const statuses = await tree.codexStatuses(agents.map((agent) => agent.path));
  const words = statuses
    .map((status) => (typeof status === "string" ? status : Object.keys(status)[0]!))
    .map((word) => (owner === null && word === "running" ? "interrupted" : word));
  return {
    ...shown,
    words: new Map(agents.map(({ path }, at) => [path, words[at]!])),
  };
}

function withoutOwner(agents: readonly AgentSummary[]): ReadonlyMap<string, string> {
  return new Map(agents.map(({ path, status }) => [path, statusWord(status, false)]));
}

function show(terminal: Terminal, tree: TreeReader, shown: Shown, options: Options): void {
  if (options.json === true) terminal.json(asJson(tree, shown));
  else {
    for (const line of lines(terminal, tree, shown, options)) terminal.line(line);
    const said = commandLine("agent transcript /root", { tree: tree.id, store: options.store });
    terminal.line(terminal.paint("dim", `What was said: ${said}`));
  }
  requireReadable(shown.unreadable);
}

async function watch(
  terminal: Terminal,
  tree: TreeReader,
  shown: () => Promise<Shown>,
  options: Options,
): Promise<void> {
  if (!terminal.interactive && options.json !== true) {
    throw badUse(
      `--watch draws on a terminal, and this is none; use --watch --json, or: ${commandLine("log", { ...given(options), follow: true })}`,
    );
  }
  const block =
    options.json === true
      ? null
      : new LiveBlock(terminal, async () => lines(terminal, tree, await shown(), options));
  let seen = "";
  try {
    while (!terminal.signal.aborted) {
      if (block === null) {
        const row = asJson(tree, await shown());
        const now = JSON.stringify(row);
        if (now !== seen) terminal.json(row);
        seen = now;
      } else {
        const now = String(await tree.lastEvent());
        if (now !== seen) block.changed();
        seen = now;
      }
      await delay(systemClock, LOOK_MS, terminal.signal);
    }
  } finally {
    await block?.end();
  }
}

function lines(
  terminal: Terminal,
  tree: TreeReader,
  { title, owner, agents, words, requests, natives, unreadable, goOn }: Shown,
  options: Options,
): string[] {
  const who = owner === null ? "no process runs it" : `run by process ${owner.pid}`;
  const head = `${clean(title ?? "tree")} · ${counted(agents.length, "agent")} · ${who}`;
  return [
    terminal.paint("bold", clip(head, terminal.room)),
    terminal.paint("dim", tree.id),
    ...(agents.length === 0
      ? [
          `No agent is open. The closed ones: ${commandLine("tree", { closed: true, tree: tree.id, store: options.store })}`,
        ]
      : treeLines(terminal, {
          agents,
          now: systemClock.now(),
          live: false,
          ids: options.ids === true,
          natives,
          ...(words === null ? {} : { words }),
        })),
    ...unreadable.map((row) => terminal.paint("red", clip(`cannot be read: ${rowName(row)}`, terminal.room))),
    ...requestLines(terminal, requests, options),
    ...(goOn === null ? [] : [terminal.paint("dim", `To run it on: ${goOn}`)]),
  ];
}

function asJson(tree: TreeReader, shown: Shown) {
  const { title, owner, agents, words, requests, natives, unreadable } = shown;
  return {
    tree: tree.id,
    title,
    owner,
    agents: agents.map(({ resident: _unknown, oldestUnreadMs: _age, ...agent }) => ({
      ...agent,
      state: words?.get(agent.path) ?? statusWord(agent.status),
    })),
    requests,
    ...(natives.length === 0 ? {} : { nativeAgents: natives }),
    ...(unreadable.length === 0 ? {} : { unreadable }),
  };
}
