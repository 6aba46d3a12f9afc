/**
 * `coppice context pin`: a line that is kept word for word in a thread's context. The thread is named with `--thread`: a label in
 * the environment is for display and pins nothing.
 */
import { type Command, InvalidArgumentError } from "commander";
import type { PinSection } from "../../protocol/snapshot.ts";
import type { Terminal } from "../terminal.ts";
import { clip, clean } from "../terminal.ts";
import { badUse } from "../failure.ts";
import { actOn, changeCommand, type ChangeOptions, changeThreads, tellChange } from "./threading.ts";

const SECTIONS: Readonly<Record<string, PinSection>> = {
  decision: "decisions",
  constraint: "constraints",
  open: "openItems",
  next: "nextActions",
};
const SHOWN_COLUMNS = 60;

export function addContext(program: Command, terminal: Terminal): void {
  const context = program
    .command("context")
    .description("keep a line in what the runs of a thread open on")
    .addHelpText("after", '\nExample: npx coppice context pin decision --thread thread_… -- "port 8080"');

  changeCommand(context, "pin", {
    json: "one object",
    example: 'context pin decision --thread thread_… -- "port 8080"',
  })
    .description(
      "pin a line with the run under way, else with the next one; whoever is told of the thread after it reads it",
    )
    .argument("<section>", `what it is: ${Object.keys(SECTIONS).join(", ")}`, sectionOf)
    .argument("<text>", "the line, after `--`; it is kept word for word")
    .requiredOption("--thread <thread>", "id of the thread; COPPICE_THREAD_ID is not looked at")
    .action((section: PinSection, text: string, options: ChangeOptions & { readonly thread: string }) => {
      if (text.trim() === "") throw badUse("the line is blank; say what is to be kept.");
      return changeThreads(options, null, async (at) => {
        const found = await at.threads.get(options.thread);
        const running = found.activity.kind === "idle" ? "its next run" : "the run under way";
        const args = { thread: found.id, section, text };
        const { appliedBy, answer } = await actOn(terminal, at, found, "pin", args, options);
        tellChange(terminal, options, appliedBy, { ...answer, section, text }, [
          `Pinned with ${running}: ${clip(clean(text), SHOWN_COLUMNS)}`,
          "Whoever is told of the thread after that run reads it; a conversation that goes on as it is does not.",
        ]);
      });
    });
}

function sectionOf(name: string): PinSection {
  const section = Object.hasOwn(SECTIONS, name) ? SECTIONS[name] : undefined;
  if (section !== undefined) return section;
  throw new InvalidArgumentError(`Give one of ${Object.keys(SECTIONS).join(", ")}.`);
}
