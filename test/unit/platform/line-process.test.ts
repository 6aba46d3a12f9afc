/** Programs that speak in lines, well and badly, with real processes and a clock that only a test moves. */
import { fileURLToPath } from "node:url";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type LineProcess, startLineProcess } from "../../../src/platform/line-process.ts";
import { groupLives } from "../../../src/platform/process-group.ts";
import { provenDead, ownIdentity, processStart } from "../../../src/platform/process-identity.ts";
import { virtualClock } from "../../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../../src/testing/wait-until.ts";
import { temporaryFolder } from "../../support/repository.ts";

/** Real processes, on a machine that may be busy. */
const processes = { timeout: 120_000 };
const PROGRAM = fileURLToPath(new URL("../../support/line-program.mjs", import.meta.url));
const OWNER = fileURLToPath(new URL("../../support/line-owner.ts", import.meta.url));
const MAXIMUM = 1_000_000;

async function started(how: string, clock = virtualClock()): Promise<LineProcess> {
  const program = await startLineProcess(
    { command: process.execPath, args: [PROGRAM, how] },
    { clock, maximumLineBytes: MAXIMUM },
  );
  onTestFinished(async () => void (await program.end({ graceMs: 0 })));
  return program;
}

/** Its lines, and what they ended with. */
async function heard({ lines }: LineProcess): Promise<{ lines: string[]; error: unknown }> {
  const all: string[] = [];
  try {
    for await (const line of lines) all.push(line);
  } catch (error) {
    return { lines: all, error };
  }
  return { lines: all, error: null };
}

async function firstLine({ lines }: LineProcess): Promise<string> {
  const next = await lines[Symbol.asyncIterator]().next();
  return String(next.value);
}

const gone = (pgid: number): Promise<void> =>
  waitUntil("the whole group is gone", () => !groupLives(pgid), { steps: 200_000 });

describe("a program that speaks in lines", processes, () => {
  test("hears and answers, and ends when its input does", async () => {
    const program = await started("echo");
    await program.write("one");
    await program.write("zwölf");
    const all = heard(program);
    expect(await program.end({ graceMs: 1000 })).toEqual({ code: 0, signal: null });
    expect(await all).toEqual({ lines: ["heard one", "heard zwölf"], error: null });
    await expect(program.write("more")).rejects.toMatchObject({ code: "PROVIDER_UNREACHABLE" });
    expect(await program.end({ graceMs: 1000 })).toEqual({ code: 0, signal: null });
  });

  test("is told more than its pipe holds without losing a line", async () => {
    const program = await started("echo");
    const text = "x".repeat(100_000);
    const said = Array.from({ length: 30 }, (_, at) => program.write(`${at} ${text}`));
    const all = heard(program);
    await Promise.all(said);
    await program.end({ graceMs: 1000 });
    expect((await all).lines).toEqual(Array.from({ length: 30 }, (_, at) => `heard ${at} ${text}`));
  });

  test("may say a line byte by byte, and an empty one", async () => {
    const program = await started("byte-by-byte");
    const lines: string[] = [];
    for await (const line of program.lines) if (lines.push(line) === 3) break;
    expect(lines).toEqual(["grün und blau", "", "ende"]);
    // Who stops reading ends it.
    expect(await program.ended).toEqual({ code: null, signal: "SIGKILL" });
  });

  test("that leaves at once is not available, and says why in what it wrote last", async () => {
    const program = await started("leaves-with-words");
    const { lines, error } = await heard(program);
    expect(lines).toEqual([]);
    expect(error).toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      details: { command: process.execPath, code: 3, signal: null },
    });
    expect(String(error)).toMatch(/exit code 3 before it said anything: x+ no account/);
    expect(String(error)).not.toContain("0123456789abcdef");
    expect(program.stderrTail().length).toBeLessThanOrEqual(4096);
    await expect(program.write("hello")).rejects.toMatchObject({ code: "PROVIDER_UNAVAILABLE" });
  });

  test("that leaves later was cut off", async () => {
    const { lines, error } = await heard(await started("leaves-after-a-line"));
    expect(lines).toEqual(["hello"]);
    expect(error).toMatchObject({ code: "PROVIDER_UNREACHABLE", details: { code: 4, signal: null } });
  });

  test("that leaves in the middle of a line has not said that line", async () => {
    const { lines, error } = await heard(await started("leaves-within-a-line"));
    expect(lines).toEqual(["hello"]);
    expect(error).toMatchObject({
      code: "PROVIDER_UNREACHABLE",
      cause: { message: "the output ended in the middle of a line." },
    });
  });

  test("that is killed was cut off, before its first word too", async () => {
    const program = await started("echo");
    process.kill(program.pid, "SIGKILL");
    expect((await heard(program)).error).toMatchObject({
      code: "PROVIDER_UNREACHABLE",
      details: { code: null, signal: "SIGKILL" },
    });
    expect(await program.ended).toEqual({ code: null, signal: "SIGKILL" });
  });

  test("that does not speak UTF-8 is ended", async () => {
    const program = await started("no-utf8");
    expect((await heard(program)).error).toMatchObject({ code: "PROVIDER_PROTOCOL" });
    expect(await program.ended).toEqual({ code: null, signal: "SIGKILL" });
  });

  test("that says a line without an end is ended before it has said it", async () => {
    const program = await started("long-line");
    const { lines, error } = await heard(program);
    expect(lines).toEqual([]);
    expect(error).toMatchObject({ code: "PROVIDER_PROTOCOL", details: { limit: MAXIMUM } });
    expect(await program.ended).toEqual({ code: null, signal: "SIGKILL" });
    await expect(program.write("stop")).rejects.toMatchObject({ code: "PROVIDER_UNREACHABLE" });
  });

  test("that closes its output and stays is ended", async () => {
    const clock = virtualClock();
    const program = await started("closes-its-output", clock);
    const all = heard(program);
    await waitUntil("it is given time", () => clock.pending().length > 0, { steps: 200_000 });
    await clock.advance(1000);
    expect(await all).toMatchObject({
      lines: ["ready"],
      error: { code: "PROVIDER_UNREACHABLE", details: { signal: "SIGKILL" } },
    });
  });

  test("that does not end by itself is killed after the time it is given", async () => {
    const clock = virtualClock();
    const program = await started("deaf", clock);
    expect(await firstLine(program)).toBe("ready");
    const ending = program.end({ graceMs: 5000 });
    await clock.advance(4999);
    expect(groupLives(program.pid)).toBe(true);
    await clock.advance(1);
    expect(await ending).toEqual({ code: null, signal: "SIGKILL" });
  });

  test("takes what it has started with it", async () => {
    const program = await started("has-a-child");
    const child = Number(await firstLine(program));
    expect(groupLives(program.pid)).toBe(true);
    process.kill(program.pid, "SIGKILL");
    await program.ended;
    expect(groupLives(program.pid)).toBe(false);
    const identity = { ...ownIdentity(), pid: child, startedAt: processStart(child) };
    expect(identity.startedAt === "" || provenDead(identity)).toBe(true);
  });

  test("does not outlive whoever started it", async () => {
    const owner = await startLineProcess(
      { command: process.execPath, args: [OWNER, PROGRAM, "deaf"] },
      { clock: virtualClock() },
    );
    onTestFinished(async () => void (await owner.end({ graceMs: 0 })));
    const pgid = Number(await firstLine(owner));
    expect(groupLives(pgid)).toBe(true);
    process.kill(owner.pid, "SIGKILL");
    await gone(pgid);
  });

  test("is waited for even when somebody else holds its pipes, and no longer than that", async () => {
    const clock = virtualClock();
    const program = await started("has-a-child-that-left", clock);
    const child = Number(await firstLine(program));
    onTestFinished(() => void process.kill(child, "SIGKILL"));
    const ending = program.end({ graceMs: 5000 });
    await waitUntil("it has left", () => processStart(program.pid) === "", { steps: 200_000 });
    await clock.advance(1000);
    expect(await ending).toEqual({ code: 0, signal: null });
  });

  test("can be held with `await using`", async () => {
    let pid: number;
    {
      await using program = await startLineProcess(
        { command: process.execPath, args: [PROGRAM, "deaf"] },
        { clock: virtualClock() },
      );
      pid = program.pid;
    }
    await gone(pid);
  });
});

describe("a program that is not there", processes, () => {
  const refused = (command: string, more: object = {}): Promise<unknown> =>
    startLineProcess({ command, ...more }, { clock: virtualClock() }).then(
      () => expect.unreachable(),
      (error: unknown) => error,
    );

  test.for([
    ["no-such-program-anywhere", {}],
    ["/no/such/program", {}],
    ["./no-such-program", { cwd: "/" }],
    ["/", {}],
    ["node", { env: {} }],
  ] as const)("%s", async ([command, more]) => {
    expect(await refused(command, more)).toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      message: `there is no program ${command}; install it, or say where it is.`,
    });
  });

  test("or may not be executed", async () => {
    const path = join(temporaryFolder(), "program");
    writeFileSync(path, "text");
    chmodSync(path, 0o600);
    expect(await refused(path)).toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      message: `${path} may not be executed; make it executable, or name another program.`,
    });
  });

  test("or has no folder to run in", async () => {
    expect(await refused(process.execPath, { cwd: "/no/such/folder" })).toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      message: expect.stringContaining("could not be started in /no/such/folder"),
    });
  });
});
