/**
 * `coppice mcp`: the tools for an agent that somebody uses already, over the Model Context Protocol. It ends with the client;
 * what the client has asked for stands in the store and goes on with whoever opens the tree next.
 *
 * - M1 Standard output belongs to the protocol: whatever else is written to it goes to standard error.
 */
import { Writable } from "node:stream";
import { type Command, Option } from "commander";
import { systemClock } from "../../platform/clock.ts";
import { PROFILES } from "../../protocol/profile.ts";
import { serveMcpStdio } from "../../mcp/stdio.ts";
import type { TreeHandle } from "../../runtime/tree-handle.ts";
import { type ClientOptions, serveClient, TOKEN_VARIABLE } from "../mcp-client.ts";
import { commandLine } from "../screen/command-line.ts";
import { counted } from "../screen/words.ts";
import { clean, type Terminal } from "../terminal.ts";
import { notBlank, STORE_OPTION, withConfig } from "./options.ts";
import { PROVIDER_HELP } from "./thread-life.ts";

export function addMcp(program: Command, terminal: Terminal, version: string): void {
  withConfig(program.command("mcp").option(...STORE_OPTION))
    .description("serve the tools to an agent that you use already, which starts this as an MCP server")
    .option("--json", "for programs: an error that keeps it from serving, as JSON on standard error")
    .option("--tree <id>", "go on with the tree of an earlier client; default: a new one", notBlank)
    .option(
      "--provider <name>",
      `what its agents are: ${PROVIDER_HELP}; default: the first coding agent that is installed`,
      notBlank,
    )
    .option(
      "--model <name>",
      "their model: <vendor>/<name> of the AI SDK, or one that the agent knows",
      notBlank,
    )
    .option("--effort <level>", "how much they think, where their provider has levels", notBlank)
    .option("--dir <folder>", "the folder that they work in; default: this one", notBlank)
    .addOption(new Option("--profile <name>", "the rules of the tree").choices(Object.keys(PROFILES)))
    .addHelpText(
      "after",
      `\nWith an agent's token in ${TOKEN_VARIABLE} the client acts as that agent.\n\nExample: npx coppice mcp --provider codex`,
    )
    .action(async (options: ClientOptions) => {
      using protocol = protocolOutput();
      const note = (line: string): void => terminal.note(`coppice: ${line}`);
      let left: string | null = null;
      {
        await using served = await serveClient(options, note);
        terminal.endInOrder();
        await serveMcpStdio(
          { ...served, version, clock: systemClock },
          { input: process.stdin, output: protocol.output, onFault: ({ message }) => note(clean(message)) },
          terminal.signal,
        );
        const tree = served.tree();
        if (tree !== null && served.isRoot) left = await whatIsLeft(tree, options);
      }
      // Said last: whoever would read it may have gone, too.
      if (left !== null) note(left);
    });
}

/** What alone is written to standard output, until it is disposed of. */
function protocolOutput(): Disposable & { readonly output: Writable } {
  const { stdout, stderr } = process;
  const say = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  return {
    output: new Writable({
      write: (chunk: Uint8Array, _encoding, done) => void say(chunk, done),
    }),
    [Symbol.dispose]() {
      stdout.write = say;
    },
  };
}

async function whatIsLeft(tree: TreeHandle, { store, config }: ClientOptions): Promise<string> {
  const { openWorks } = await tree.snapshot();
  const left = openWorks.length === 0 ? "" : `, ${counted(openWorks.length, "work")} not done`;
  const at = { tree: tree.id, store };
  const again = commandLine("mcp", { ...at, config });
  return `the client has gone${left}. Look: ${commandLine("tree", at)}. Go on: ${again}`;
}
