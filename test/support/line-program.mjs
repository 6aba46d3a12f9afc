/** A program that speaks in lines, well or badly: `node line-program.mjs HOW`. */
import { spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { createInterface } from "node:readline";

const say = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);
const stay = () => void setInterval(() => undefined, 1_000_000);
const answer = (/** @type {(line: string) => void} */ hear) =>
  createInterface({ input: process.stdin }).on("line", hear);

/** @type {Record<string, () => void>} */
const ways = {
  echo: () => void answer((line) => say(`heard ${line}`)),
  "leaves-with-words"() {
    process.stderr.write(`${"x".repeat(100_000)} no account: key=sk-dummy-0123456789abcdef\n`);
    process.exitCode = 3;
  },
  "leaves-after-a-line"() {
    say("hello");
    process.exitCode = 4;
  },
  "leaves-within-a-line"() {
    say("hello");
    process.stdout.write('{"half":');
  },
  "no-utf8"() {
    process.stdout.write(Buffer.from([0x22, 0xff, 0xfe, 0x0a]));
    stay();
  },
  "long-line"() {
    const piece = Buffer.alloc(1_000_000, "a");
    let pieces = 0;
    const more = () => {
      if (pieces === 100) say("");
      else process.stdout.write(piece, more);
      pieces += 1;
    };
    more();
    stay();
  },
  "byte-by-byte"() {
    const bytes = Buffer.from("grün und blau\n\nende\n");
    const next = (/** @type {number} */ at) => {
      if (at < bytes.length) process.stdout.write(bytes.subarray(at, at + 1), () => next(at + 1));
    };
    next(0);
    stay();
  },
  deaf() {
    say("ready");
    stay();
  },
  "closes-its-output"() {
    process.stdout.write("ready\n", () => closeSync(1));
    stay();
  },
  "has-a-child"() {
    const child = spawn("sleep", ["1000"], { stdio: "inherit" });
    child.on("spawn", () => say(String(child.pid)));
    process.stdin.resume();
  },
  "has-a-child-that-left"() {
    const child = spawn("sleep", ["1000"], { stdio: "inherit", detached: true });
    child.on("spawn", () => say(String(child.pid)));
    process.stdin.resume().on("end", () => process.exit(0));
  },
};

const way = ways[process.argv[2] ?? ""];
if (way === undefined) throw new Error("say how");
way();
