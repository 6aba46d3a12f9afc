/** The command line in this process, where a test runs many commands and needs none of what is a process's own. */
import { run } from "../../src/cli/main.ts";
import { Terminal } from "../../src/cli/terminal.ts";

/** What a command says, in place of a terminal. */
class Heard extends Terminal {
  out = "";
  aside = "";

  override raw(text: string): void {
    this.out += text;
  }

  override line(text = ""): void {
    this.raw(`${text}\n`);
  }

  override json(value: unknown): void {
    this.line(JSON.stringify(value));
  }

  override note(text: string): void {
    this.aside += `${text}\n`;
  }
}

/** One, since each listens for signals. */
export const heard = new Heard();

/** A command in this process, to its end. */
export async function ended(args: readonly string[]) {
  heard.out = "";
  heard.aside = "";
  const exit = await run(args, heard);
  process.exitCode = undefined;
  return { exit, out: heard.out, aside: heard.aside };
}
