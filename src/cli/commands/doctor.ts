/** `coppice doctor`: what is on this machine, and what is missing for what. Keys are named, never shown. */
import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import { provenDead } from "../../platform/process-identity.ts";
import type { ThreadCapabilities } from "../../protocol/provider-capabilities.ts";
import { vendorStates } from "../../providers/model/load-model.ts";
import { TreeReader } from "../../runtime/tree-reader.ts";
import { listTrees } from "../../runtime/trees.ts";
import { agentProgramStates } from "../agent-programs.ts";
import { allPages } from "../all-pages.ts";
import { EXIT, failureOf } from "../failure.ts";
import { counted } from "../screen/words.ts";
import { type ClientState, clientStates } from "../setup/client-states.ts";
import { openForReading, type StorePlace, storePlace } from "../store-place.ts";
import { fit, type Terminal, wrap } from "../terminal.ts";
import { rowName } from "../unreadable.ts";
import { type StoreOptions, withStore } from "./options.ts";

/** Broken trees, and rows of each, that are named. */
const NAMED = 3;
const NAME_COLUMNS = 20;
/** Narrower than this, what goes on stands below the name. */
const WITH_TABLE = 60;

export function addDoctor(program: Command, terminal: Terminal, version: string): void {
  withStore(program.command("doctor"), { json: "one object", example: "doctor" })
    .description(
      "check Node, the store, which models and coding agents can be used, and the clients of `setup`",
    )
    .action(async (options: StoreOptions) => {
      const place = storePlace(options.store);
      const store = await checkStore(place);
      const vendors = vendorStates(process.env);
      const agents = await agentProgramStates();
      const clients = await clientStates(version);
      if (store.exit !== EXIT.ok) process.exitCode = store.exit;
      if (options.json === true) {
        terminal.json({
          version,
          node: process.versions.node,
          store: { ...place, ...store },
          vendors,
          agents,
          clients,
        });
        return;
      }
      const indent = " ".repeat(terminal.room < WITH_TABLE ? 2 : NAME_COLUMNS + 1);
      const row = (name: string, text: string): void => {
        for (const line of wrap(`${fit(name, NAME_COLUMNS)} ${text}`, terminal.room, indent))
          terminal.line(line);
      };
      row("coppice", version);
      row("node", process.versions.node);
      row("store", `${store.state} (${place.path}, from ${place.from})`);
      row("scripted", "ready, needs nothing: npx coppice demo");
      for (const vendor of vendors) {
        const key = vendor.keySet ? `${vendor.keyVariable} is set` : `${vendor.keyVariable} is not set`;
        row(vendor.vendor, `${vendor.installed ? "installed" : `npm install ${vendor.package}`}; ${key}`);
      }
      for (const agent of agents) {
        const { found } = agent;
        row(agent.name, "missing" in found ? found.missing : found.there);
        if (!("missing" in found)) row("", abilitiesOf(agent.capabilities));
      }
      for (const { client, scope, file, tried } of clients)
        row(client, `${stateOf(tried)} (MCP server of the ${scope}, ${file})`);
    });
}

function stateOf(tried: ClientState["tried"]): string {
  return "tools" in tried ? `works, ${counted(tried.tools, "tool")}` : `does not work: ${tried.fault}`;
}

/** What it can do with its own conversations; everything else is done by text. */
function abilitiesOf({ threads, turns, requests, context }: ThreadCapabilities): string {
  return [
    `forks: ${threads.fork}`,
    `rollback: ${threads.rollback}`,
    `history: ${threads.read}`,
    turns.steer ? "can be steered" : "takes messages between turns",
    requests.approvals ? "asks for approvals" : "asks for no approval",
    ...(context.delta ? [] : ["no deltas"]),
  ].join(", ");
}

async function checkStore(place: StorePlace): Promise<{ readonly state: string; readonly exit: number }> {
  if (!existsSync(place.path)) return { state: "none yet", exit: EXIT.ok };
  try {
    const store = await openForReading(place);
    await using _closed = { [Symbol.asyncDispose]: () => store.close() };
    let trees = 0;
    const broken: string[] = [];
    for await (const { rows } of allPages((after) => listTrees(store, { limit: 100, after }, provenDead))) {
      trees += rows.length;
      for (const { id, counts } of rows) {
        const unreadable = await new TreeReader(store, id).unreadable();
        if (unreadable.length > 0) broken.push(`${id}: ${named(unreadable.map(rowName))}`);
        else if (counts === null) broken.push(id);
      }
    }
    if (broken.length === 0) {
      const order = isWritable(place.path) ? "in order" : "can be read and not written";
      return { state: `${order}, ${counted(trees, "tree")}`, exit: EXIT.ok };
    }
    return {
      state: `${broken.length} of ${counted(trees, "tree")} with rows that cannot be read: ${named(broken)}`,
      exit: EXIT.store,
    };
  } catch (error) {
    const failure = failureOf(error);
    return { state: failure.message, exit: failure.exit };
  }
}

/** What is written to the store goes into files beside it first. */
function isWritable(path: string): boolean {
  try {
    for (const written of [path, dirname(path)]) accessSync(written, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function named(names: readonly string[]): string {
  return `${names.slice(0, NAMED).join(", ")}${names.length > NAMED ? ", …" : ""}`;
}
