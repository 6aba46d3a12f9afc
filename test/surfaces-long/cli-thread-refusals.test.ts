/** Every error of threads that the command line can reach: its code, its exit code, what to do next, and that nothing was made. */
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, fail, repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { Place, rowsOf } from "../support/cli.ts";
import { TestRepository } from "../support/repository.ts";
import { damageRow } from "../support/stores.ts";
import { estimateTokens } from "../../src/policy/estimate-tokens.ts";
import { rowsIn } from "../support/rows.ts";

const place = new Place();
/** Threads and handoffs by what is the matter with them. */
const known: Record<string, string> = {};
const foreign = `thread_${"0".repeat(21)}`;

/** All that a refused command must leave as it is. */
const rows = (): unknown => rowsIn(place.store);

/** The same names as on the command line, with scripts of the test's own. */
async function prepare(runtime: Runtime): Promise<void> {
  const { threads } = runtime;
  const thread = async (title: string, ...messages: string[]): Promise<string> => {
    const { id } = await threads.create({ title, provider: "echo", workspace: place.path });
    for (const message of messages) await run(id, message);
    return id;
  };
  const run = async (id: string, message: string, provider?: string): Promise<void> => {
    const work = await threads.continue(id, message, provider === undefined ? {} : { provider });
    const tree = await runtime.openTree({ id: (await threads.get(id)).treeId });
    await tree.idle();
    expect(work.id).toMatch(/^wrk_/);
  };
  known["plain"] = await thread("plain", "one", "two", "three");
  known["empty"] = await thread("empty");
  known["closed"] = await thread("closed", "one");
  await threads.close(known["closed"]);
  known["archived"] = await thread("archived", "one");
  await threads.close(known["archived"]);
  await threads.archive(known["archived"]);
  known["rolled"] = await thread("rolled back", "one", "two");
  await threads.rollBack(known["rolled"], { to: { kind: "ordinal", ordinal: 1 } });
  known["fork"] = (await threads.fork(known["plain"])).thread.id;
  await threads.fork(known["plain"], { policy: { requestId: "used" } });
  known["asking"] = await thread("asking", "ask me");
  known["switched"] = await thread("switched", "one");
  await run(known["switched"], "two", "parrot");
  const handoffs = await threads.handoffs(known["switched"], { limit: 10 });
  known["delivered"] = handoffs.rows[0]!.id;
  known["refused"] = await thread("refused", "one");
  await run(known["refused"], "refuse", "parrot");
  known["ready"] = (await threads.handoffs(known["refused"], { limit: 10 })).rows.at(-1)!.id;
  known["deep"] = await thread("deep", "one");
  for (let depth = 1; depth <= 25; depth += 1) {
    known["deep"] = (await threads.fork(known["deep"])).thread.id;
    await run(known["deep"], "more");
  }
  known["tampered"] = await thread("tampered", "one");
  known["cyclic"] = (await threads.fork(known["plain"])).thread.id;
  await threads.rename(known["plain"], "plain", { commandId: "used" });
}

beforeAll(async () => {
  const answer = repeat(({ inputs }: { readonly inputs: readonly string[] }) =>
    inputs.at(-1) === "ask me" ? ask("which one?") : say("an answer"),
  );
  const refuse = repeat(({ inputs }: { readonly inputs: readonly string[] }) =>
    inputs.at(-1) === "refuse" ? fail({ code: "PROVIDER_REFUSED", accepted: false }) : say("an answer"),
  );
  const store = await openSqliteStore({ path: place.store, synchronous: "normal" });
  {
    await using runtime = await createRuntime({
      store,
      providers: { echo: scripted({ "/root": [answer] }), parrot: scripted({ "/root": [refuse] }) },
    });
    await prepare(runtime);
  }
  await store.close();
  using database = new DatabaseSync(place.store);
  database
    .prepare(
      "UPDATE snapshots SET body = replace(body, 'tampered', 'Tampered') WHERE thread = (SELECT number FROM threads WHERE id = ?)",
    )
    .run(known["tampered"]!);
  database
    .prepare("UPDATE agents SET body = json_set(body, '$.thread.forkedFrom.point.threadId', id) WHERE id = ?")
    .run(known["cyclic"]!);
}, 120_000);
afterAll(() => place[Symbol.dispose]());

/** `:name` is what stands under that name in `known`. */
const CASES: readonly (readonly [code: string, exit: number, next: RegExp, command: string])[] = [
  ["THREAD_NOT_FOUND", 3, /thread list --all/, `thread show ${foreign}`],
  ["THREAD_NOT_FOUND", 3, /thread list --all/, "thread context latest"],
  ["THREAD_NOT_FOUND", 3, /thread list --all/, `thread continue ${foreign} hello`],
  ["THREAD_NOT_FOUND", 3, /thread list --all/, `transfers ${foreign}`],
  ["THREAD_NOT_FOUND", 3, /thread list --all/, `thread merge :fork --into ${foreign}`],
  ["THREAD_NOT_FOUND", 3, /thread list --all/, `context pin next --thread ${foreign} line`],
  ["THREAD_CLOSED", 3, /fork it to go on/, "thread continue :closed hello"],
  ["THREAD_CLOSED", 3, /fork it to go on/, "thread switch :closed --provider parrot"],
  ["THREAD_CLOSED", 3, /fork it to go on/, "thread rollback :closed --to 0"],
  ["THREAD_CLOSED", 3, /fork it to go on/, "context pin open --thread :closed line"],
  ["THREAD_ARCHIVED", 3, /fork it to go on/, "thread continue :archived hello"],
  ["THREAD_REVISION_CONFLICT", 1, /look at it again/, "thread continue :plain --expect 1 hello"],
  ["THREAD_INVARIANT_VIOLATION", 2, /close it first/, "thread archive :plain"],
  ["THREAD_BUSY", 1, /wait until it is idle/, "thread close :asking"],
  [
    "THREAD_BUSY",
    1,
    /npx coppice agent wait \/root --tree thread_\S+ --store \S+ --run\./,
    "thread continue :asking hello",
  ],
  ["THREAD_CONTEXT_TAMPERED", 5, /./, "thread context :tampered"],
  ["THREAD_CONTEXT_TAMPERED", 5, /./, "thread continue :tampered --provider echo hello"],
  ["LINEAGE_CYCLE", 5, /./, "thread transcript :cyclic"],
  ["LINEAGE_DEPTH_EXCEEDED", 4, /fork an earlier thread/, "thread fork :deep"],
  ["COMMAND_ID_CONFLICT", 2, /use a new one/, "thread fork :plain --request-id used --title other"],
  ["COMMAND_ID_CONFLICT", 2, /use a new one/, "thread rename :plain other --command-id used"],
  ["COMMAND_ID_CONFLICT", 2, /use a new one/, "thread continue :plain hello --command-id used"],
  ["INVALID_ARGUMENT", 2, /1 to 128/, "thread close :plain --command-id %20"],
  ["INVALID_ARGUMENT", 2, /choices/, "thread continue :plain hello --on-busy later"],
  ["SOURCE_POINT_NOT_FOUND", 3, /has runs 1 to 3.*thread show/, "thread fork :plain --at run:99"],
  ["SOURCE_POINT_NOT_FOUND", 3, /has no runs yet/, "thread fork :empty --at run:1"],
  ["SOURCE_POINT_NOT_FOUND", 3, /name one of them/, "thread fork :plain --at message:999"],
  ["SOURCE_POINT_NOT_FOUND", 3, /name a run/, "thread fork :plain --at checkpoint:nothing"],
  ["SOURCE_POINT_NOT_FOUND", 3, /wait for one/, "thread fork :empty"],
  ["SOURCE_POINT_UNSTABLE", 1, /wait for its end/, "thread fork :asking --at run:1"],
  ["SOURCE_POINT_ROLLED_BACK", 3, /take a run that the thread still has/, "thread fork :rolled --at run:2"],
  [
    "FORK_UNCOMMITTED_MESSAGE",
    3,
    /none with number 0; name one of them/,
    "thread fork :plain --at message:0",
  ],
  ["FORK_NATIVE_UNSUPPORTED", 2, /replay/, "thread fork :plain --strategy native"],
  ["FORK_SEED_EMPTY", 2, /start a new thread/, "thread fork :plain --at message:2 --strategy replay"],
  ["TRANSFER_STATE_INVALID", 2, /cannot be changed any more/, "handoff edit :delivered text"],
  ["TRANSFER_STATE_INVALID", 2, /cannot be changed any more/, "handoff regenerate :delivered"],
  ["TRANSFER_SOURCE_UNRESOLVABLE", 3, /list those of the thread/, "handoff show hnd_nothing"],
  ["MERGE_BACK_NOT_A_FORK", 2, /forked from/, "thread merge :plain"],
  ["MERGE_BACK_NOT_A_FORK", 2, /forked from/, "thread merge :fork --into :empty"],
  ["MERGE_BACK_SOURCE_UNSTABLE", 1, /wait/, "thread merge :fork"],
  ["PROVIDER_UNAVAILABLE", 2, /echo or parrot/, "thread continue :plain --provider nobody hello"],
  ["PROVIDER_UNAVAILABLE", 2, /echo or parrot/, "thread switch :plain --provider scripted"],
  ["PROVIDER_UNAVAILABLE", 2, /echo or parrot/, "thread new --provider constructor"],
  ["PROVIDER_NOT_CONFIGURED", 2, /write one of/, "thread switch :plain --model nonsense"],
  ["ROLLBACK_TARGET_INVALID", 3, /name one of them, or 0/, "thread rollback :plain --to 99"],
  ["ROLLBACK_TARGET_INVALID", 3, /name one that is/, "thread rollback :plain --before-message 3"],
  ["ROLLBACK_TARGET_INVALID", 3, /fork it at the run/, "thread rollback :plain --undo"],
  ["ROLLBACK_ACTIVE_RUN", 1, /interrupt it or wait/, "thread rollback :asking --to 0"],
  ["SOURCE_POINT_NOT_FOUND", 3, /no checkpoint of its workspace/, "thread checkpoint diff :plain 1"],
  ["SOURCE_POINT_NOT_FOUND", 3, /no checkpoint of its workspace/, "thread checkpoint restore :plain run:1"],
  ["SOURCE_POINT_NOT_FOUND", 3, /no checkpoint of its workspace/, "thread checkpoint remove :plain 1"],
  ["INVALID_ARGUMENT", 2, /`before`/, "thread transcript :plain --before nothing"],
  ["INVALID_ARGUMENT", 2, /leave out --after/, "thread list --after nothing"],
  ["INVALID_ARGUMENT", 2, /leave out --after/, "transfers :plain --after xfr_nothing"],
  ["INVALID_ARGUMENT", 2, /--help/, "thread"],
  ["INVALID_ARGUMENT", 2, /--help/, "thread context"],
  ["INVALID_ARGUMENT", 2, /thread list/, "thread show"],
  ["INVALID_ARGUMENT", 2, /--title is blank/, "thread new --title %20"],
  ["INVALID_ARGUMENT", 2, /at most 200/, `thread new --title ${"x".repeat(201)}`],
  ["INVALID_ARGUMENT", 2, /there is no folder/, "thread new --workspace /nowhere/at/all"],
  ["INVALID_ARGUMENT", 2, /is not a folder/, `thread new --workspace ${process.execPath}`],
  ["INVALID_ARGUMENT", 2, /--model openai/, "thread new --provider model"],
  ["INVALID_ARGUMENT", 2, /leave out --model/, "thread new --provider echo --model openai/gpt-5"],
  ["INVALID_ARGUMENT", 2, /choices/, "thread new --continuity never"],
  ["SOURCE_POINT_NOT_FOUND", 3, /has runs 1 to 3.*thread show/, "thread sync :plain --run 9"],
  ["INVALID_ARGUMENT", 2, /N, run:N.*thread show/, "thread sync :plain --run yesterday"],
  ["INVALID_ARGUMENT", 2, /blank/, "thread continue :plain %20"],
  ["INVALID_ARGUMENT", 2, /which thread\? Give its id first/, "thread continue hello"],
  ["INVALID_ARGUMENT", 2, /1 or more/, "thread continue :plain --expect 0 hello"],
  ["INVALID_ARGUMENT", 2, /to which provider/, "thread switch :plain"],
  ["INVALID_ARGUMENT", 2, /latest, run:N/, "thread fork :plain --at yesterday"],
  ["INVALID_ARGUMENT", 2, /latest, run:N/, "thread fork :plain --at run:-"],
  ["INVALID_ARGUMENT", 2, /1 to 128/, "thread fork :plain --request-id %20"],
  ["INVALID_ARGUMENT", 2, /choices/, "thread fork :plain --strategy guess"],
  ["INVALID_ARGUMENT", 2, /give one of --to/, "thread rollback :plain"],
  ["INVALID_ARGUMENT", 2, /several places/, "thread rollback :plain --to 1 --undo"],
  ["INVALID_ARGUMENT", 2, /either the title or/, "thread rename :plain"],
  ["INVALID_ARGUMENT", 2, /decision, constraint/, "context pin secrets --thread :plain line"],
  ["INVALID_ARGUMENT", 2, /--thread/, "context pin decision line"],
  ["INVALID_ARGUMENT", 2, /blank/, "context pin decision --thread :plain %20"],
  ["INVALID_ARGUMENT", 2, /blank/, "handoff edit :ready %20"],
];

const argumentsOf = (command: string): string[] =>
  command
    .split(" ")
    .map((word) => (word.startsWith(":") ? known[word.slice(1)]! : word.replaceAll("%20", " ")));

describe("a refused command says what to do next, and has made nothing", () => {
  test.for(CASES)("%s exits %i and says %s: %s", async ([code, exit, next, command]) => {
    const before = rows();
    const ended = await place.run(...argumentsOf(command), "--json");
    expect(ended).toMatchObject({ code: exit, stdout: "" });
    if (command !== "thread") {
      const { error } = JSON.parse(ended.stderr);
      expect(error).toMatchObject({ code, exit });
      expect(error.message).toMatch(next);
    }
    expect(rows()).toEqual(before);
  });

  test("a run to be read again is named by its number, as the point of a fork is", async () => {
    const [shown] = await place.rows("thread", "show", known["plain"]!);
    const [first] = shown.runs;
    expect(first.ordinal).toBe(1);
    for (const run of ["1", "run:1"]) {
      const synced = await place.run("thread", "sync", known["plain"]!, "--run", run);
      expect(synced).toMatchObject({ code: 0, stderr: "" });
    }
  });

  test("an empty list of transfers names its thread", async () => {
    const listed = await place.run("transfers", known["empty"]!);
    expect(listed).toMatchObject({ code: 0, stdout: `There are no transfers of ${known["empty"]}.\n` });
  });

  test("S1-56 no command takes a thread that nobody named for the newest one", async () => {
    const commands = [
      "show",
      "continue",
      "switch",
      "fork",
      "merge",
      "rollback",
      "rename",
      "close",
      "archive",
    ];
    for (const command of [...commands, "context", "history", "transcript", "reconcile", "sync"]) {
      expect((await place.run("thread", command)).code).toBe(2);
    }
  }, 120_000);

  test("what is written of an id reaches the terminal without control characters, and in part", async () => {
    const { stderr } = await place.run("thread", "show", `\u001b[31m${"x".repeat(100_000)}`);
    expect(stderr.length).toBeLessThan(400);
    expect(stderr).not.toContain("\u001b");
  });

  test("a message that no message may be is refused before a run", async () => {
    const before = rows();
    const text = "x".repeat(17 * 1024 * 1024);
    const args = ["thread", "continue", known["plain"]!, "--json", "--store", place.store, "--", "-"];
    const ended = await place.start(args, {}, text).ended;
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr.length).toBeLessThan(1_000);
    expect(rows()).toEqual(before);
  });
});

describe("what can be done instead", () => {
  test("WAI-2 a thread that waits for an answer is shown with its question, and the command that answers it", async () => {
    const { stdout } = await place.run("thread", "show", known["asking"]!);
    expect(stdout).toMatch(
      /Waits for an answer\n\/root asks: which one\?\n {2}npx coppice agent answer \/root req_/,
    );
    const [shown] = await place.rows("thread", "show", known["asking"]!);
    expect(shown.requests).toMatchObject([{ kind: "question", text: "which one?" }]);
  });

  test("C6.7 how large a handoff is, is said in the one figure that a preview tells, too", async () => {
    const [{ summaryText }] = await place.rows("handoff", "show", known["ready"]!);
    const { stdout } = await place.run("handoff", "show", known["ready"]!);
    const tokens = estimateTokens([{ role: "system", text: summaryText }], []);
    expect(stdout).toContain(`${tokens} tokens at most (${Buffer.byteLength(summaryText)} bytes)`);
  });

  test("C5.6 the same request id and fork is the same thread", async () => {
    const one = await place.rows("thread", "fork", known["plain"]!, "--request-id", "mine");
    const two = await place.rows("thread", "fork", known["plain"]!, "--request-id", "mine");
    expect(two[0].thread.id).toBe(one[0].thread.id);
  });

  test("S3-21 a handoff that was not delivered is edited and written anew; the old one keeps its text", async () => {
    const [anew] = await place.rows("handoff", "regenerate", known["ready"]!);
    expect(anew.summaryText).toContain("one");
    const [edited] = await place.rows("handoff", "edit", anew.id, "we use port 8080");
    expect(edited).toMatchObject({
      strategy: "manual_context",
      summaryText: "we use port 8080",
      status: "ready",
    });
    const old = await place.run("handoff", "show", anew.id);
    expect(old.stdout).toContain(`superseded by ${edited.id}, not delivered`);
    expect(old.stdout).toContain("one");
  });

  test("C5.16 `new-session` makes no thread and names the source", async () => {
    const before = rows();
    const [row] = await place.rows("thread", "fork", known["plain"]!, "--strategy", "new-session");
    expect(row).toMatchObject({ thread: null, source: { threadId: known["plain"], ordinal: 3 } });
    expect(rows()).toEqual(before);
  });
});

describe("checkpoints of a workspace", () => {
  test("C1.18 they are listed, compared, written back and removed", async () => {
    const r = new TestRepository();
    r.commit({ "a.txt": "as it was\n" });
    const store = await openSqliteStore({ path: place.store, synchronous: "normal" });
    const providers = { echo: scripted({ "/root": [say("one")] }) };
    const runtime = await createRuntime({ store, providers, workspaceCapture: "git" });
    const { id } = await runtime.threads.create({ provider: "echo", workspace: r.folder });
    await (await runtime.threads.continue(id, "go")).outcome();
    await runtime.close();
    await store.close();
    const of = (verb: string, ...more: string[]) => place.rows("thread", "checkpoint", verb, id, ...more);
    expect(await of("list")).toMatchObject([{ ordinal: 1, status: "ready" }]);
    r.write("a.txt", "as it is\n");
    const diff = await place.run("thread", "checkpoint", "diff", id, "1");
    expect(diff.stdout).toMatch(/^1 file changed, \+1 -1\n(.*\n)*-as it was\n\+as it is\n$/);
    expect(await of("restore", "run:1")).toMatchObject([{ applied_by: "here", written: ["a.txt"] }]);
    expect(r.read("a.txt")).toBe("as it was\n");
    expect(await of("remove", "1")).toMatchObject([{ status: "removed" }]);
    expect(await of("list")).toMatchObject([{ status: "none", reason: "it was removed" }]);
    expect(r.git("for-each-ref", "refs/coppice/")).toBe("");
  }, 120_000);
});

describe("a thread that cannot be read", () => {
  test("C19 the others are listed, it is named, and the command says that the store is damaged", async () => {
    const before = await place.rows("thread", "list", "--all", "--limit", "1000");
    damageRow(place.store, "agents", known["empty"]!);
    const listed = await place.run("thread", "list", "--all", "--limit", "1000", "--json");
    expect(listed.code).toBe(5);
    const ids = rowsOf(listed.stdout).map(({ id }) => id);
    expect(ids).toEqual(before.map(({ id }) => id).filter((id: string) => id !== known["empty"]));
    const { error } = JSON.parse(listed.stderr);
    expect(error).toMatchObject({ code: "STORE_CORRUPT", exit: 5 });
    expect(error.message).toContain(known["empty"]);
    const shown = await place.run("thread", "show", known["empty"]!, "--json");
    expect(shown).toMatchObject({ code: 5, stdout: "" });
    expect(JSON.parse(shown.stderr).error).toMatchObject({ code: "STORE_CORRUPT", exit: 5 });
  });
});
