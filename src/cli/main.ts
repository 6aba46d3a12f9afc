/** The program: its commands, and how it ends. Everything printed goes through the terminal; every error ends here. */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { addAgent } from "./commands/agent.ts";
import { addApprovals } from "./commands/approvals.ts";
import { addDemo } from "./commands/demo.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addHome } from "./commands/home.ts";
import { addLog } from "./commands/log.ts";
import { addContext } from "./commands/pins.ts";
import { addHandoff } from "./commands/handoff.ts";
import { addRecords } from "./commands/records.ts";
import { addThread } from "./commands/thread.ts";
import { addRun } from "./commands/run.ts";
import { addTree } from "./commands/tree.ts";
import { addWhy } from "./commands/why.ts";
import { badUse, EXIT, EXIT_CODES } from "./failure.ts";
import { sentence } from "./screen/words.ts";
import { Terminal } from "./terminal.ts";

export async function main(args: readonly string[]): Promise<void> {
  const terminal = new Terminal();
  const json = optionsOf(args).includes("--json");
  let faults = "";
  const program = new Command("coppice")
    .description("A multi-agent actor runtime: run, watch and steer trees of agents.")
    .version(version())
    .configureOutput({ writeOut: (text) => terminal.raw(text), writeErr: (text) => (faults += text) })
    .configureHelp({ showGlobalOptions: false, subcommandTerm: (command) => command.name() })
    .helpCommand("help [command]", "the help of a command")
    .addHelpText("after", `\n${EXIT_CODES}`)
    .exitOverride()
    .enablePositionalOptions();
  addHome(program, terminal, version());
  addDemo(program, terminal);
  addRun(program, terminal);
  addTree(program, terminal);
  addLog(program, terminal);
  addRecords(program, terminal);
  addWhy(program, terminal);
  addAgent(program, terminal);
  addApprovals(program, terminal);
  addThread(program, terminal);
  addContext(program, terminal);
  addHandoff(program, terminal);
  addDoctor(program, terminal, version());
  inherit(program);
  program.hook("preAction", (_, command) => handDown(program, command));
  try {
    // Node has put it where an argument's bytes were not UTF-8: what was meant is lost.
    if (args.some((arg) => arg.includes("\uFFFD"))) {
      throw badUse("an argument is not UTF-8, or holds the character U+FFFD; give text in UTF-8.");
    }
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    process.exitCode = end(terminal, error, faults, json, meant(program, args));
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
  { path, unknown }: Meant,
): number {
  if (terminal.signal.aborted) return terminal.fail(terminal.signal.reason, json);
  if (!(error instanceof CommanderError)) return terminal.fail(error, json);
  if (error.exitCode === 0) return EXIT.ok;
  // `agent` alone: commander has written its help.
  if (error.code === "commander.help") terminal.note(faults.trimEnd());
  if (error.code === "commander.help") return EXIT.badUse;
  const help = `See: npx ${path} --help`;
  const misnamed = ["commander.excessArguments", "commander.unknownCommand"].includes(error.code);
  if (misnamed && unknown !== null)
    return terminal.fail(badUse(`there is no command ${unknown}. ${help}`), json);
  const message = faults.trim().replace(/^error: /, "");
  const text = sentence(message === "" ? error.message : message);
  return terminal.fail(badUse(`${text} ${help}`), json);
}

/** What stands before a `--`: behind it there are no options. */
function optionsOf(args: readonly string[]): readonly string[] {
  const end = args.indexOf("--");
  return end === -1 ? args : args.slice(0, end);
}

interface Meant {
  /** The command, from the program's name on. */
  readonly path: string;
  /** What stands where the name of a command would. */
  readonly unknown: string | null;
}

function meant(program: Command, args: readonly string[]): Meant {
  const names = ["coppice"];
  let command = program;
  for (const word of optionsOf(args).filter((arg) => !arg.startsWith("-"))) {
    if (command.commands.length === 0) break;
    const next = command.commands.find((child) => child.name() === word);
    if (next === undefined) return { path: names.join(" "), unknown: word };
    names.push(word);
    command = next;
  }
  return { path: names.join(" "), unknown: null };
}

/** Options before the command are meant for it: the program itself would read them and the command act without. */
function handDown(program: Command, command: Command): void {
  if (command === program) return;
  for (const { long, attributeName } of namesOf(program)) {
    if (program.getOptionValueSource(attributeName) !== "cli") continue;
    if (!namesOf(command).some((own) => own.attributeName === attributeName)) {
      throw badUse(`${command.name()} has no ${long}; leave it out.`);
    }
    if (command.getOptionValueSource(attributeName) === "cli") continue;
    command.setOptionValueWithSource(attributeName, program.getOptionValue(attributeName), "cli");
  }
}

function namesOf({ options }: Command) {
  return options.map((option) => ({ long: option.long, attributeName: option.attributeName() }));
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
