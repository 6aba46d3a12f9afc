/** `coppice thread …`: conversations that go on across runs, providers, forks and processes. */
import type { Command } from "commander";
import type { Terminal } from "../terminal.ts";
import { addThreadCheckpoint } from "./thread-checkpoint.ts";
import { addThreadFork } from "./thread-fork.ts";
import { addThreadLife } from "./thread-life.ts";
import { addThreadLook } from "./thread-look.ts";
import { addThreadMend } from "./thread-mend.ts";
import { addThreadPast } from "./thread-past.ts";
import { addThreadRun } from "./thread-run.ts";
import { addThreadSwitch } from "./thread-switch.ts";

export function addThread(program: Command, terminal: Terminal): void {
  const thread = program
    .command("thread")
    .description("begin, continue, fork, switch, merge or roll back a conversation")
    .addHelpText("after", '\nExample: npx coppice thread new --title "port the parser"');
  addThreadLook(thread, terminal);
  addThreadRun(thread, terminal);
  addThreadSwitch(thread, terminal);
  addThreadFork(thread, terminal);
  addThreadMend(thread, terminal);
  addThreadPast(thread, terminal);
  addThreadLife(thread, terminal);
  addThreadCheckpoint(thread, terminal);
}
