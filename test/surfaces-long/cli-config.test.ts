/** `--config`: providers of the user's own on the command line, and the errors that only such providers have (C19). */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { demoTools } from "../../src/cli/demo/tools.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { crashAfter } from "../../src/providers/scripted/native/faults.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { type Ended, Place } from "../support/cli.ts";
import { ownProviders } from "../support/own-providers.ts";

const CONFIG = fileURLToPath(new URL("../support/own-providers.ts", import.meta.url));
const SCRIPTED = fileURLToPath(new URL("../../src/providers/scripted", import.meta.url));
const place = new Place();
const known: Record<string, string> = {};

beforeAll(async () => {
  const store = await openSqliteStore({ path: place.store, synchronous: "normal" });
  {
    const echo = scripted({ "*": [repeat(say("an answer"))] });
    const own = ownProviders();
    await using runtime = await createRuntime({ store, providers: { echo, ...own } });
    const { threads } = runtime;
    const continued = async (id: string, message: string): Promise<void> => {
      await threads.continue(id, message);
      await (await runtime.openTree({ id: (await threads.get(id)).treeId })).idle();
    };
    const thread = async (provider: string): Promise<string> => {
      const { id } = await threads.create({ provider, workspace: place.path });
      for (const message of ["one", "two"]) await continued(id, message);
      return id;
    };
    for (const name of ["echo", "able", "poor"]) known[name] = await thread(name);
    known["other"] = await thread("able");
    const forked = async (): Promise<string> =>
      (await threads.fork(known["able"]!, { policy: { strategy: "native" } })).thread.id;
    known["fork"] = await forked();
    own.able.fault("forkThread", crashAfter());
    known["lost"] = await forked();
    await continued(known["lost"], "three");
    known["run"] = (await store.read((view) => view.runAt(known["echo"] as never, 1)))!.id;
  }
  await store.close();
}, 120_000);
afterAll(() => place[Symbol.dispose]());

interface Case {
  readonly faults?: string;
  readonly empty?: boolean;
  readonly lineage?: object;
}

const CASES: readonly (readonly [code: string, exit: number, next: RegExp, command: string, more?: Case])[] =
  [
    [
      "FORK_REPLAY_DISABLED",
      2,
      /fork with `native`/,
      "thread fork :echo --strategy replay",
      { lineage: { replay: false } },
    ],
    [
      "FORK_NATIVE_FAILED",
      1,
      /kept as a draft/,
      "thread continue :fork hello",
      { faults: "forkThread:refuse" },
    ],
    [
      "FORK_NATIVE_INDETERMINATE",
      1,
      /reconcile the thread/,
      "thread continue :lost hello",
      { faults: "findForks:refuse" },
    ],
    ["CONTEXT_UNSUPPORTED", 2, /kept as a draft/, "thread continue :echo --provider deaf hello"],
    [
      "HANDOFF_BUDGET_TOO_SMALL",
      4,
      /kept as a draft/,
      "thread continue :echo --provider able hello",
      { lineage: { handoffBytes: 1 } },
    ],
    [
      "PROVIDER_CAPABILITY_MISSING",
      2,
      /one model/,
      "thread continue :able --provider able --model large hello",
    ],
    [
      "PROVIDER_RESUME_FAILED",
      1,
      /kept as a draft/,
      "thread continue :able hello",
      { faults: "resumeThread:refuse,ensureThread:refuse" },
    ],
    ["ROLLBACK_NATIVE_UNSUPPORTED", 2, /without demanding/, "thread rollback :poor --to 1 --native"],
    [
      "ROLLBACK_TURN_UNAVAILABLE",
      3,
      /without/,
      "thread rollback :other --to 1 --native",
      { empty: true, faults: "rollbackThread:noTurn" },
    ],
    ["THREAD_EXECUTION_BINDING_MISMATCH", 2, /a run that the thread has/, "thread sync :able --run :run"],
    [
      "PROVIDER_UNAVAILABLE",
      2,
      /able, poor, deaf of your --config/,
      "thread continue :able --provider nobody hello",
    ],
  ];

const argumentsOf = (command: string): string[] =>
  command.split(" ").map((word) => (word.startsWith(":") ? known[word.slice(1)]! : word));

function run(
  args: readonly string[],
  { faults = "", empty = false, lineage = {} }: Case = {},
): Promise<Ended> {
  const env = {
    COPPICE_TEST_FAULTS: faults,
    COPPICE_TEST_EMPTY: empty ? "1" : "",
    COPPICE_TEST_LINEAGE: JSON.stringify(lineage),
  };
  return place.start([...args, "--config", CONFIG, "--store", place.store], env).ended;
}

describe("providers of the user's own", () => {
  test.for(CASES)("C19 %s exits %i and says %s: %s", async ([code, exit, next, command, more]) => {
    const ended = await run([...argumentsOf(command), "--json"], more);
    expect({
      code: ended.code,
      error: JSON.parse(ended.stderr.trim().split("\n").at(-1)!).error,
    }).toMatchObject({
      code: exit,
      error: { code, exit, message: expect.stringMatching(next) },
    });
  });

  test("run what the command line has not", async () => {
    const without = await place.run("thread", "continue", known["poor"]!, "hello");
    expect(without.code).toBe(2);
    expect(without.stderr).toContain("--config");
    const ended = await run(["thread", "continue", known["poor"]!, "hello"]);
    expect(ended).toMatchObject({ code: 0, stdout: "an answer of my own\n" });
    const made = await run(["thread", "new", "--provider", "poor", "--json"]);
    const { id } = JSON.parse(made.stdout) as { readonly id: string };
    const named = await place.start(["thread", "continue", id, "again", "--store", place.store], {
      COPPICE_CONFIG: CONFIG,
    }).ended;
    expect(named).toMatchObject({ code: 0, stdout: "an answer of my own\n" });
  });

  test("a tool takes the place of the one of its name that the demo has", async () => {
    const tools = join(place.path, "tools.mjs");
    writeFileSync(
      tools,
      "export default { tools: [{ name: 'search', description: 'mine', parameters: {}, effects: ['read'], call: async () => 'x' }] };",
    );
    const ended = await place.start(["thread", "new", "--config", tools, "--store", place.store]).ended;
    expect(ended).toMatchObject({ code: 0 });
  });

  test("a thread has the tools of the user's module and Coppice's own, and nothing of the demo", async () => {
    const nosy = join(place.path, "nosy.mjs");
    writeFileSync(
      nosy,
      `import { scripted } from "${SCRIPTED}/provider.ts";
      import { repeat, say } from "${SCRIPTED}/script.ts";
      const tool = { name: "look", description: "mine", parameters: {}, effects: ["read"], call: async () => "x" };
      const told = ({ request }) => JSON.stringify(request.tools);
      export default { providers: { nosy: scripted({ "*": [repeat(say(told))] }) }, tools: [tool] };`,
    );
    const ours = (...args: string[]) =>
      place.start([...args, "--config", nosy, "--store", place.store, "--json"]).ended;
    const made = await ours("thread", "new", "--provider", "nosy");
    const { id } = JSON.parse(made.stdout) as { readonly id: string };
    const { stdout } = await ours("thread", "continue", id, "which tools?");
    const { text } = (JSON.parse(stdout) as { readonly outcome: { readonly text: string } }).outcome;
    const names = (JSON.parse(text) as readonly { readonly name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["spawn_agent", "pin_context", "look"]));
    expect(names.filter((name) => demoTools.some((tool) => tool.name === name))).toEqual([]);
    expect(text).not.toMatch(/\b(?:counter|reader|searcher|demo)\b/);
  });

  test("are not asked by what only looks", async () => {
    const broken = { COPPICE_CONFIG: join(place.path, "nowhere.ts") };
    const looking = (...args: string[]) => place.start([...args, "--store", place.store], broken).ended;
    for (const args of [
      ["thread", "list", "--all"],
      ["thread", "context", known["echo"]!],
      ["thread", "transcript", known["echo"]!],
      ["transfers", known["fork"]!],
    ])
      expect(await looking(...args)).toMatchObject({ code: 0, stderr: "" });
    expect((await looking("thread", "history", known["echo"]!)).stderr).toMatch(/there is no file/);
  });

  test("are looked at once by a command that runs a tree", async () => {
    const once = join(place.path, "once.mjs");
    writeFileSync(
      once,
      "let asked = 0; export default { get providers() { if (asked++ > 0) throw new Error('again'); return {}; } };",
    );
    const { treeId } = JSON.parse((await place.run("thread", "show", known["echo"]!, "--json")).stdout);
    const args = ["agent", "followup", "/root", "hello", "--tree", treeId, "--run"];
    const ended = await place.start([...args, "--config", once, "--store", place.store]).ended;
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("hello") });
  });

  test.for([
    ["nowhere.ts", null, /there is no file/],
    ["broken.mjs", "export default {", /cannot be loaded/],
    ["empty.mjs", "export const providers = {};", /no default export/],
    ["list.mjs", "export default [];", /no default export/],
    ["store.mjs", "export default { store: {} };", /holds a store/],
    ["echo.mjs", "export default { providers: { echo: {} } };", /another name/],
    ["adapter.mjs", "export default { providers: { mine: {} } };", /providers.mine: is no adapter/],
    ["field.mjs", "export default { provider: {} };", /provider/],
    ["throws.mjs", "throw new Error('no licence');", /no licence/],
  ] as const)(
    "a module that is no use is refused before anything is stored: %s",
    async ([name, text, why]) => {
      if (text !== null) writeFileSync(join(place.path, name), text);
      const store = join(place.path, "new.db");
      const args = ["thread", "new", "--json", "--store", store, "--config", name];
      const ended = await place.start(args).ended;
      expect(ended).toMatchObject({ code: 2, stdout: "" });
      const { error } = JSON.parse(ended.stderr);
      expect(error.code).toBe("INVALID_ARGUMENT");
      expect(error.message).toMatch(why);
      expect(existsSync(store)).toBe(false);
    },
  );
});
