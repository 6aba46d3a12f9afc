/**
 * What a client of `coppice mcp` gets: a tree of its own, the tree that an earlier client has left, or with a token the place of
 * one agent. Its agents run in this process.
 *
 * - C1 For a new tree nothing is stored, and no store is made, before the client calls a tool.
 */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { ROOT_PATH } from "../protocol/agent-path.ts";
import { sha256 } from "../platform/digest.ts";
import type { ProfileName } from "../protocol/profile.ts";
import type { ThreadToolsPolicy } from "../protocol/thread-tools.ts";
import { HostTree, hostToolFaces, type OpenedTree } from "../mcp/host-tree.ts";
import { progressOf } from "../mcp/progress.ts";
import type { McpSurface } from "../mcp/server.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { TreeHandle } from "../runtime/tree-handle.ts";
import type { Store } from "../store/port.ts";
import { openSqliteStore } from "../store/sqlite.ts";
import { installedAgentProgram } from "./agent-programs.ts";
import { folderOf } from "./commands/folder-of.ts";
import { badUse, CommandError, EXIT } from "./failure.ts";
import { findTree } from "./find-tree.ts";
import { PRACTICE } from "./practice.ts";
import { type Host, hostOf, type ProviderChoice } from "./run-tree.ts";
import { newStorePlace, openForWriting } from "./store-place.ts";
import { storeTroubleLogger } from "./store-trouble.ts";
import { clean, clip } from "./terminal.ts";

export const TOKEN_VARIABLE = "COPPICE_TOKEN";
const TITLE_COLUMNS = 80;
/** Clients ask their users before they call a tool. */
const THREAD_TOOLS: ThreadToolsPolicy = { allow: "all", approval: "agents" };

export interface ClientOptions {
  readonly store?: string;
  readonly config?: string;
  readonly tree?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
  readonly dir?: string;
  readonly profile?: ProfileName;
}

export interface ServedClient
  extends Pick<McpSurface, "tools" | "tree" | "progress" | "isRoot">, AsyncDisposable {}

/** @throws CommandError, RejectedError for what cannot be served. */
export async function serveClient(
  options: ClientOptions,
  note: (line: string) => void,
): Promise<ServedClient> {
  const token = process.env[TOKEN_VARIABLE] ?? "";
  if (token === "" && options.tree === undefined) return serveNew(options, note);
  const made = (["provider", "model", "effort", "dir", "profile"] as const).filter(
    (name) => options[name] !== undefined,
  );
  if (made.length > 0)
    throw badUse(`a tree that is there keeps what it was made with; leave out --${made.join(", --")}.`);
  return serveOld(options, token, note);
}

async function serveNew(options: ClientOptions, note: (line: string) => void): Promise<ServedClient> {
  const { effort, profile } = options;
  const host = await hostOf(options);
  const workspace = folderOf("--dir", options.dir ?? ".");
  const { path } = newStorePlace(options.store);
  const choice = await host.choice(options);
  const closing = new AsyncDisposableStack();
  let runtime: Runtime | null = null;
  const held = async (): Promise<Runtime> =>
    (runtime ??= closing.use(await runtimeOf(closing.adopt(await openSqliteStore({ path }), closed), host)));
  // One that is there and cannot be used is told to who starts the server, not to a model later.
  if (existsSync(path)) await held();
  const { provider, model } = choice ?? (await installed(note));
  const asked = profile === undefined ? {} : { profile };
  const made = {
    ...asked,
    title: clip(clean(basename(workspace)), TITLE_COLUMNS) || "/",
    hostDriven: true,
    provider,
    workspace,
    ...(model === null ? {} : { model }),
    ...(effort === undefined ? {} : { effort }),
  };
  const client = new HostTree({
    faces: hostToolFaces({ threadTools: THREAD_TOOLS, ...host.settings }, asked),
    logger: storeTroubleLogger(note),
    open: async (id) => {
      const owner = await held();
      return asRoot(await owner.openTree(id === null ? made : { id }));
    },
  });
  return served(client, true, closing);
}

function asRoot(tree: TreeHandle): OpenedTree {
  return { tree, tools: tree.root.tools({ shortTransport: true }) };
}

function served(client: HostTree, isRoot: boolean, closing: AsyncDisposableStack): ServedClient {
  const tree = (): TreeHandle | null => client.tree;
  return {
    tools: client.tools,
    tree,
    isRoot,
    progress: () => progressOf(tree()),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** What its agents are when nobody says it. */
async function installed(note: (line: string) => void): Promise<ProviderChoice> {
  const program = await installedAgentProgram();
  if (program !== null) return { provider: program, model: null };
  note(
    `no coding agent is installed here, so its agents only practise (${PRACTICE[0]}); see: npx coppice doctor. Or give --model openai/gpt-5, say.`,
  );
  return { provider: PRACTICE[0], model: null };
}

async function serveOld(
  options: ClientOptions,
  token: string,
  note: (line: string) => void,
): Promise<ServedClient> {
  const host = await hostOf(options);
  await using stack = new AsyncDisposableStack();
  const store = stack.adopt(await openForWriting(newStorePlace(options.store)), closed);
  const reader = await findTree(store, await treeOf(store, options.tree, token));
  // Before it is opened, which would begin what waits to run.
  if (token === "" && !(await reader.agent(ROOT_PATH)).hostDriven)
    throw badUse(
      `the root of ${reader.id} is an agent of its own and no client's; write to it with: npx coppice agent followup /root --tree ${reader.id}, or leave out --tree for a new tree.`,
    );
  await host.requireRunnable(store, reader);
  const runtime = stack.use(await runtimeOf(store, host));
  const open = async (): Promise<OpenedTree> => {
    const tree = await runtime.openTree({ id: reader.id });
    if (token === "") return asRoot(tree);
    return { tree, tools: (await runtime.actAs(token)).tools({ shortTransport: true }) };
  };
  const opened = await open();
  const client = new HostTree({ faces: opened.tools, open, opened, logger: storeTroubleLogger(note) });
  return served(client, token === "", stack.move());
}

async function treeOf(store: Store, tree: string | undefined, token: string): Promise<string | undefined> {
  if (token === "") return tree;
  const agent = await store.read((view) => view.agentByToken(sha256(token)));
  if (agent !== undefined && (tree === undefined || agent.treeId === tree)) return agent.treeId;
  throw new CommandError(
    EXIT.notFound,
    "TOKEN_INVALID",
    `no living agent of ${store.name}${tree === undefined ? "" : `, tree ${tree},`} has the token in ${TOKEN_VARIABLE}; mint one for the agent, or unset it.`,
  );
}

function runtimeOf(store: Store, host: Host): Promise<Runtime> {
  return host.runtime(store, { pace: 0, demo: false, threadTools: THREAD_TOOLS });
}

function closed(store: Store): Promise<void> {
  return store.close();
}
