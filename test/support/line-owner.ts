/** Starts a program that speaks in lines, says its group's id when it is up, and waits: `node line-owner.ts PROGRAM HOW`. */
import { systemClock } from "../../src/platform/clock.ts";
import { startLineProcess } from "../../src/platform/line-process.ts";

const program = await startLineProcess(
  { command: process.execPath, args: process.argv.slice(2) },
  { clock: systemClock },
);
for await (const _ of program.lines) process.stdout.write(`${program.pid}\n`);
