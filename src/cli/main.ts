/** The program: its commands, and how it ends. Everything printed goes through the terminal; every error ends here. */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { addAgent } from "./commands/agent.ts";
import { addApprovals } from "./commands/approvals.ts";
import { addDemo } from "./commands/demo.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addHome } from "./commands/home.ts";
import { addLog } from "./commands/log.ts";
import { addMcp } from "./commands/mcp.ts";
import { addSetup } from "./commands/setup.ts";
import { addContext } from "./commands/pins.ts";
import { addHandoff } from "./commands/handoff.ts";
import { addRecords } from "./commands/records.ts";
import { addThread } from "./commands/thread.ts";
import { addRun } from "./commands/run.ts";
import { addTree } from "./commands/tree.ts";
import { addWhy } from "./commands/why.ts";
import { badUse, EXIT, EXIT_CODES, type FailedAt, failureOf } from "./failure.ts";
import { isThreadId } from "../protocol/ids.ts";
import { sentence } from "./screen/words.ts";
import { Terminal } from "./terminal.ts";

/** For every command, wherever it stands: as NO_COLOR in the environment. */
const PLAIN = "--no-color";

export async function main(args: readonly string[]): Promise<void> {
  const plain = optionsOf(args).indexOf(PLAIN);
  if (plain !== -1) process.env["NO_COLOR"] = "1";
  process.exitCode = await run(args.toSpliced(plain === -1 ? args.length : plain, 1), new Terminal());
  await flushed();
  // A tool or a provider that ignores its end must not hold the process.
  process.exit();
}

/** One call of the program, but for the end of the process: its exit code. */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const json = optionsOf(args).includes("--json");
  let faults = "";
  let acting: Command | null = null;
  const program = programOf(terminal)
    .configureOutput({ writeOut: (text) => terminal.raw(text), writeErr: (text) => (faults += text) })
    .hook("preAction", (_, command) => {
      acting = command;
      handDown(program, command);
    });
  inherit(program);
  try {
    // Node has put it where an argument's bytes were not UTF-8: what was meant is lost.
    if (args.some((arg) => arg.includes("\uFFFD"))) {
      throw badUse("an argument is not UTF-8, or holds the character U+FFFD; give text in UTF-8.");
    }
    requireHelped(program, args);
    await program.parseAsync([...args], { from: "user" });
    return Number(process.exitCode ?? EXIT.ok);
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
    // `agent` alone: commander has written its help.
    if (error instanceof CommanderError && error.code === "commander.help") {
      terminal.note(faults.trimEnd());
      return EXIT.badUse;
    }
    const reason: unknown = terminal.signal.aborted ? terminal.signal.reason : error;
    const known = reason instanceof CommanderError ? misused(reason, faults, meant(program, args)) : reason;
    const failure = failureOf(known, failedAt(acting));
    return terminal.fail({ ...failure, message: withoutLong(failure.message, args) }, json);
  }
}

/** All commands, with what they take. */
export function programOf(terminal: Terminal): Command {
  const program = new Command("coppice")
    .description("A multi-agent actor runtime: run, watch and steer trees of agents.")
    .version(version())
    .configureHelp({ showGlobalOptions: false, subcommandTerm: (command) => command.name() })
    .helpCommand("help [command]", "the help of a command")
    .addHelpText("after", `\nWithout colours: NO_COLOR=1, or ${PLAIN}.\n\n${EXIT_CODES}`)
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
  addMcp(program, terminal, version());
  addSetup(program, terminal, version());
  addDoctor(program, terminal, version());
  return program;
}

function misused(error: CommanderError, faults: string, { path, unknown, similar }: Meant): Error {
  const help = `See: npx ${path} --help`;
  const misnamed = ["commander.excessArguments", "commander.unknownCommand"].includes(error.code);
  if (misnamed && unknown !== null)
    return badUse(`there is no command ${unknown}.${meantWord(similar)} ${help}`);
  const message = faults.trim().replace(/^error: /, "");
  return badUse(`${sentence(message === "" ? error.message : message)} ${help}`);
}

/** `help` of a command that there is not: commander would show another one's. */
function requireHelped(program: Command, args: readonly string[]): void {
  const { path, unknown, helps, similar } = meant(program, args);
  if (helps && unknown !== null)
    throw badUse(`there is no command ${unknown}.${meantWord(similar)} See: npx ${path} --help`);
}

function failedAt(command: Command | null): FailedAt {
  if (command === null) return {};
  const { store, tree, thread } = command.opts<Readonly<Record<string, string | undefined>>>();
  return { store, tree, thread: [...command.args, thread ?? ""].find(isThreadId) };
}

const LONG_CHARACTERS = 300;
const SHOWN_CHARACTERS = 80;

/** What was given is repeated in part where it is long: nobody reads 100 kB of an error. */
function withoutLong(message: string, args: readonly string[]): string {
  return args
    .flatMap((arg) => [arg, arg.slice(arg.indexOf("=") + 1)])
    .filter(({ length }) => length > LONG_CHARACTERS)
    .reduce((text, arg) => text.replaceAll(arg, () => `${arg.slice(0, SHOWN_CHARACTERS)}…`), message);
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
  /** A command there whose name is near to that. */
  readonly similar: string | null;
  /** Its help is asked for with the word, not the option. */
  readonly helps: boolean;
}

function meant(program: Command, args: readonly string[]): Meant {
  const names = ["coppice"];
  let command = program;
  let helps = false;
  for (const word of wordsOf(program, optionsOf(args))) {
    if (command.commands.length === 0) break;
    const next = command.commands.find((child) => child.name() === word);
    if (next !== undefined) names.push(word);
    else if (word === "help" && !helps) helps = true;
    else return { path: names.join(" "), unknown: word, similar: similarTo(word, command), helps };
    command = next ?? command;
  }
  return { path: names.join(" "), unknown: null, similar: null, helps };
}

function meantWord(similar: string | null): string {
  return similar === null ? "" : ` Did you mean ${similar}?`;
}

/** One letter more, less, other or swapped. */
function similarTo(word: string, { commands }: Command): string | null {
  const names = commands.map((command) => command.name());
  // A task that stands where a command would may be long.
  if (word.length > Math.max(...names.map(({ length }) => length)) + 1) return null;
  const near = variants(word);
  return names.find((name) => near.has(name) || variants(name).has(word)) ?? null;
}

/** A word with one letter left out, replaced by any, or swapped with the next. */
function variants(word: string): ReadonlySet<string> {
  const at = Array.from(word, (_, index) => [word.slice(0, index), word.slice(index)] as const);
  const letters = "abcdefghijklmnopqrstuvwxyz";
  return new Set(
    at.flatMap(([before, after]) => [
      before + after.slice(1),
      `${before}${after[1] ?? ""}${after[0]!}${after.slice(2)}`,
      ...Array.from(letters, (letter) => before + letter + after.slice(1)),
    ]),
  );
}

/** What is neither an option nor the value of one of the program's own, which stand before the command. */
function wordsOf({ options }: Command, args: readonly string[]): readonly string[] {
  const valued = options.filter((option) => option.required).map(({ long }) => long);
  return args.filter((arg, at) => !arg.startsWith("-") && !valued.includes(args[at - 1]));
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
