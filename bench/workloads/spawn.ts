/**
 * Spawning, answering and returning: in memory (S1), durable (S2), and how the price of one grows with how many there are (S4).
 * The runtime is asked through its library; what a model's own calls of its tools cost beside that is given too.
 */
import { coppice, type StoreKind } from "../contenders/coppice.ts";
import { RawTree } from "../contenders/raw.ts";
import { Rows } from "../contenders/rows.ts";
import { say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { median, type Metrics, perUnit, time } from "../lib/measure.ts";

const TOGETHER = 1000;
const FEW = 100;
const MANY = 10_000;
const IN_SEQUENCE = 200;
/** As many as one `wait_agent` can name. */
const A_RESPONSE = 64;
const A_COMMIT = 32;

export async function rawSpawn(): Promise<Metrics> {
  const { ns } = await perUnit(async (repeat) => {
    for (let at = 0; at < repeat; at += 1) await rawCrowd(TOGETHER);
    return repeat * TOGETHER;
  });
  return { us: ns! / 1000 };
}

async function rawCrowd(count: number): Promise<void> {
  const tree = new RawTree(async () => "ok");
  await Promise.all(Array.from({ length: count }, (_, at) => tree.spawn(tree.root, `a${at}`, `task ${at}`)));
  if (tree.root.mailbox?.length !== count) throw new Error("a result was lost");
}

/** Six rows a spawn: thread, task, two items, result, status; so many spawns a transaction. */
export async function rowsSpawn(): Promise<Metrics> {
  using rows = new Rows({ synchronous: "normal" });
  const thread = rows.statement("INSERT INTO threads (id, parent, path, status) VALUES (?, ?, ?, 'running')");
  const mail = rows.statement(
    "INSERT INTO mail (recipient, sender, mode, created, body) VALUES (?, ?, ?, ?, ?)",
  );
  const item = rows.statement("INSERT INTO items (thread, body) VALUES (?, ?)");
  const end = rows.statement("UPDATE threads SET status = 'idle', result = ? WHERE id = ?");
  const body = JSON.stringify({ text: "x".repeat(380) });
  let made = 0;
  const { ns } = await perUnit((repeat) => {
    const count = repeat * TOGETHER;
    for (let at = 0; at < count; at += A_COMMIT) {
      rows.transaction(() => {
        for (let one = 0; one < A_COMMIT; one += 1) {
          made += 1;
          const id = `thread_${made}`;
          thread(id, "root", `/root/a${made}`);
          mail(id, "root", "trigger-turn", made, body);
          item(id, body);
          item(id, body);
          mail("root", id, "queue-only", made, body);
          end(body, id);
        }
      });
    }
    return count;
  });
  return { us: ns! / 1000 };
}

/** So many spawns asked for in one tick, their results awaited, in a tree that is new each time. */
export async function librarySpawn(store: StoreKind): Promise<Metrics> {
  await using c = await coppice({ store });
  await crowdOf(c, 2 * FEW);
  const took: number[] = [];
  for (let at = 0; at < 2; at += 1) took.push(await crowdOf(c, TOGETHER));
  return { us: median(took) };
}

type Coppice = Awaited<ReturnType<typeof coppice>>;

/** Microseconds of the main thread a spawn. */
async function crowdOf(c: Coppice, count: number): Promise<number> {
  const tree = await c.runtime.openTree({});
  const { cpuNs } = await time(async () => {
    const spawned = await Promise.all(
      Array.from({ length: count }, (_, at) => tree.root.spawn(`a${at}`, `task ${at}`)),
    );
    const outcomes = await Promise.all(spawned.map(({ work }) => work.outcome()));
    if (outcomes.some(({ ending }) => ending !== "completed")) throw new Error("a child has failed");
  });
  await tree.close();
  return cpuNs / 1000 / count;
}

/** A model that spawns and then waits for what it has spawned, so many children a response. */
export async function modelSpawn(store: StoreKind, perResponse: number, count: number): Promise<number> {
  const responses = Math.ceil(count / perResponse);
  const script = Array.from({ length: responses }, (_, response) => {
    const names = Array.from({ length: perResponse }, (_name, at) => `a${response * perResponse + at}`);
    return [
      together(...names.map((name) => spawn(name, `task of ${name}`, { fork_turns: "none" }))),
      wait({ targets: names, timeout_ms: 3_600_000 }),
    ];
  });
  const small = script.slice(0, 2);
  await using c = await coppice({
    store,
    scripts: { "/root": (context) => script.flat()[context.ownSteps] ?? say("done") },
  });
  // A first tree warms up; it ends early and does the same.
  const warm = await coppice({
    store,
    scripts: { "/root": (context) => small.flat()[context.ownSteps] ?? say("done") },
  });
  for (let at = 0; at < 2; at += 1) {
    const tree = await warm.runtime.openTree({});
    await (await tree.root.send("go")).outcome();
    await tree.close();
  }
  await warm[Symbol.asyncDispose]();
  const { cpuNs } = await time(async () => {
    const outcome = await (await c.tree.root.send("go")).outcome();
    if (outcome.ending !== "completed") throw new Error(`the root ended ${outcome.ending}`);
  });
  return cpuNs / 1000 / (responses * perResponse);
}

/** What one spawn costs among a hundred, among ten thousand, and one after the other. */
export async function linearity(store: StoreKind): Promise<Metrics> {
  const few: number[] = [];
  await using c = await coppice({ store });
  await crowdOf(c, 5 * FEW);
  for (let at = 0; at < 7; at += 1) few.push(await crowdOf(c, FEW));
  const many = await crowdOf(c, MANY);
  const sequential = await modelSpawn(store, 1, IN_SEQUENCE);
  const parallel = await modelSpawn(store, A_RESPONSE, TOGETHER);
  return {
    fewUs: median(few),
    manyUs: many,
    growth: many / median(few),
    sequentialUs: sequential,
    parallelUs: parallel,
    sequence: sequential / parallel,
  };
}
