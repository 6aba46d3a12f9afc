/** Which server of OpenCode a conversation is on: one of ours, shared by a tree, or one that somebody else runs. */
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { unregisteredProcesses } from "../../src/platform/process-group.ts";
import { EFFECTS } from "../../src/protocol/agent.ts";
import { createOpenCodeProvider } from "../../src/providers/opencode/opencode-provider.ts";
import type { NativeAdapter, NativeSession, NativeSessionInput } from "../../src/providers/port.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { fakeOpenCode } from "../support/opencode.ts";

const NEW = { model: null, effort: null };
const INPUT: NativeSessionInput = {
  treeId: "tree",
  threadId: "thread",
  path: "/root",
  model: null,
  workspace: null,
  instructions: null,
  effects: EFFECTS,
  tools: [],
  transportWaitMs: 45_000,
  startProcess: unregisteredProcesses(systemClock, 2_000),
};

async function open(adapter: NativeAdapter, more: Partial<NativeSessionInput> = {}): Promise<NativeSession> {
  const session = await adapter.openSession({ ...INPUT, ...more });
  onTestFinished(() => session.close());
  return session;
}

const until = (what: string, there: () => boolean) => waitUntil(what, there, { steps: 200_000 });
const failure = (pending: Promise<unknown>): Promise<unknown> =>
  pending.then(
    () => expect.unreachable("it did not fail"),
    (error: unknown) => error,
  );

describe("servers of OpenCode", { timeout: 60_000 }, () => {
  test("S2-44 S2-47 without a URL a server is started, and nothing of it is kept; with one, that server is used, and its URL kept", async () => {
    const openCode = fakeOpenCode();
    const managed = await open(openCode.adapter());
    expect(openCode.processes()).toHaveLength(1);
    expect((await managed.ensureThread(NEW)).ref).toEqual({
      driver: "opencode",
      nativeId: expect.stringMatching(/^ses/),
      strength: "strong",
    });
    await managed.close();
    expect(openCode.processes()).toEqual([]);

    const url = await openCode.serve({ password: "of the server" });
    const adapter = openCode.adapter({}, { url, password: "of the server" });
    const external = await open(adapter);
    expect(openCode.processes()).toHaveLength(1);
    const { ref } = await external.ensureThread(NEW);
    expect(ref).toMatchObject({ driver: "opencode", fingerprint: url });
    await external.close();
    // It is somebody else's.
    expect(openCode.processes()).toHaveLength(1);
    expect((await (await open(adapter)).resumeThread(ref)).ref).toEqual(ref);
    expect(await failure((await open(openCode.adapter())).resumeThread(ref))).toMatchObject({
      code: "PROVIDER_RESUME_FAILED",
      message: expect.stringContaining(url),
    });
    expect(await failure(openCode.adapter({}, { url }).openSession(INPUT))).toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      message: expect.stringContaining("password"),
    });
  });

  test.for([
    ["http://127.0.0.1:4096", "http://127.0.0.1:4096"],
    ["https://localhost:4096/", "https://localhost:4096"],
    ["http://[::1]:4096", "http://[::1]:4096"],
  ])("S2-46 %s is taken", ([url]) => {
    expect(createOpenCodeProvider({ url: url! }).driver).toBe("opencode");
  });

  test.for([
    "http://example.com",
    "http://192.168.1.2:4096",
    "http://127.0.0.1.example.com:4096",
    "http://user@127.0.0.1:4096",
    "http://:secret@127.0.0.1:4096",
    "http://127.0.0.1:4096/path",
    "http://127.0.0.1:4096/?a=b",
    "http://127.0.0.1:4096/#a",
    "ftp://127.0.0.1:4096",
    "127.0.0.1:4096",
    "",
  ])("S2-46 %s is refused, and not said again", (url) => {
    const made = () => createOpenCodeProvider({ url });
    expect(made).toThrow(expect.objectContaining({ code: "EXTERNAL_SERVER_URL_INVALID" }));
    expect(made).not.toThrow(/secret/);
  });

  test("S2-48 sessions of a tree share its server; when it was killed the next one starts another, which has their conversations", async () => {
    const openCode = fakeOpenCode();
    const adapter = openCode.adapter();
    const [one, two] = await Promise.all([open(adapter), open(adapter, { threadId: "other" })]);
    const { ref } = await one.ensureThread(NEW);
    await two.ensureThread(NEW);
    expect(openCode.processes()).toHaveLength(1);
    const lost = [one, two].map((session) => failure(session.events()[Symbol.asyncIterator]().next()));
    openCode.kill();
    for (const error of lost) expect(await error).toMatchObject({ code: "PROVIDER_UNREACHABLE" });
    // Those that had it are not closed yet.
    const next = await open(adapter, { threadId: "third" });
    await next.ensureThread(NEW);
    expect((await (await open(adapter)).resumeThread(ref)).ref).toEqual(ref);
    expect(openCode.processes()).toHaveLength(1);
    await Promise.all([one.close(), two.close()]);
    expect(openCode.processes()).toHaveLength(1);
  });

  test("S2-48 a server that cannot begin is told, and the next session is not held up by it", async () => {
    const openCode = fakeOpenCode();
    expect(await failure(openCode.adapter({ exit: 3 }).openSession(INPUT))).toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      message: expect.stringContaining("it cannot begin"),
    });
    await open(openCode.adapter());
    await until("one lives", () => openCode.processes().length === 1);
  });
});
