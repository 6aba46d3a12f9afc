// Starts a program and writes down what is said to it and by it: `tee.mjs <record> <program> <arguments…>`.
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { createInterface } from "node:readline";

const [record, command, ...args] = process.argv.slice(2);
const out = createWriteStream(record, { flags: "a" });
const program = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const copy = (from, to, mark) =>
  createInterface({ input: from })
    .on("line", (line) => {
      out.write(`${mark}${line}\n`);
      to.write(`${line}\n`);
    })
    .on("close", () => to.end());
copy(process.stdin, program.stdin, ">");
copy(program.stdout, process.stdout, "<");
program.on("exit", (code) => out.end(() => process.exit(code ?? 1)));
