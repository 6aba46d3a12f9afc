/** The program: its commands, and how it ends. Everything printed goes through the terminal; every error ends here. */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { addAgent } from "./commands/agent.ts";
import { addDemo } from "./commands/demo.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addHome } from "./commands/home.ts";
import { addLog } from "./commands/log.ts";
import { addRecords } from "./commands/records.ts";
import { addTree } from "./commands/tree.ts";
import { addWhy } from "./commands/why.ts";
import { badUse, EXIT } from "./failure.ts";
import { sentence } from "./screen/words.ts";
import { Terminal } from "./terminal.ts";

export async function main(args: readonly string[]): Promise<void> {
  const terminal = new Terminal();
  const json = args.includes("--json");
  let faults = "";
  const program = new Command("coppice")
    .description("A multi-agent actor runtime: run, watch and steer trees of agents.")
    .version(version())
    .configureOutput({ writeOut: (text) => terminal.raw(text), writeErr: (text) => (faults += text) })
    .configureHelp({ showGlobalOptions: false })
    .exitOverride()
    .enablePositionalOptions();
  addHome(program, terminal, version());
  addDemo(program, terminal);
  addTree(program, terminal);
  addLog(program, terminal);
  addRecords(program, terminal);
  addWhy(program, terminal);
  addAgent(program, terminal);
  addDoctor(program, terminal, version());
  inherit(program);
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    const first = args.find((arg) => !arg.startsWith("-"));
    const known = program.commands.some((command) => command.name() === first);
    process.exitCode = end(terminal, error, faults, json, known ? undefined : first);
  }
  await flushed();
  // A tool or a provider that ignores its end must not hold the process.
  process.exit();
}

function end(
  terminal: Terminal,
  error: unknown,
  faults: string,
  json: boolean,
  unknown: string | undefined,
): number {
  if (terminal.signal.aborted) return terminal.fail(terminal.signal.reason, json);
  if (!(error instanceof CommanderError)) return terminal.fail(error, json);
  if (error.exitCode === 0) return EXIT.ok;
  // `agent` alone: commander has written its help.
  if (error.code === "commander.help") terminal.note(faults.trimEnd());
  if (error.code === "commander.help") return EXIT.badUse;
  if (error.code === "commander.excessArguments" && unknown !== undefined) {
    return terminal.fail(badUse(`there is no command ${unknown}. See: npx coppice --help`), json);
  }
  const message = faults.trim().replace(/^error: /, "");
  const text = sentence(message === "" ? error.message : message);
  return terminal.fail(badUse(`${text} See: npx coppice --help`), json);
}

/** Subcommands get the settings of the program, which commander hands on to those made before only. */
function inherit(command: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(command);
    inherit(child);
  }
}

/** What was written is with the reader, or the reader is gone. */
async function flushed(): Promise<void> {
  await Promise.all(
    [process.stdout, process.stderr].map(
      (stream) => new Promise<void>((resolve) => stream.write("", () => resolve())),
    ),
  );
}

function version(): string {
  const file = new URL("../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly version: string }).version;
}
