/**
 * Mail in memory (M1, M2). One message at a time is sent in a loop and its handling awaited at the end.
 *
 * - M1 is delivery without a turn: for the runtime, queue-only messages that one run takes in at the end. It has no handler
 *   that could send without a turn, so that fan-in and ring are M2's.
 * - M2 is delivery that starts turns, addressed by path.
 */
import { type Coppice, coppice, type StoreKind } from "../contenders/coppice.ts";
import { RingBuffer } from "../contenders/ring-buffer.ts";
import { Rows } from "../contenders/rows.ts";
import { followUp, say, send, together } from "../../src/providers/scripted/script.ts";
import type { ScriptContext } from "../../src/providers/scripted/context.ts";
import { median, type Metrics, perUnit, time, type Workload } from "../lib/measure.ts";

const BURST = 1000;
const SENDERS = 100;
const RING = 500;
const FAN_OUT = 2000;
const BURSTS = 4;

/** A history grows with each burst, so that every burst has agents of its own and is timed alone. */
async function bursts(count: number, burst: (at: number) => Promise<number>): Promise<Metrics> {
  await burst(0);
  const cpu: number[] = [];
  const wall: number[] = [];
  for (let at = 1; at <= count; at += 1) {
    const timed = await time(() => burst(at));
    cpu.push(timed.cpuNs / timed.value);
    wall.push(timed.wallNs / timed.value);
  }
  return { ns: median(cpu), wallNs: median(wall) };
}

export const rawMail = {
  oneToOne: () => perUnit(rawOneToOne()),
  fanIn: () => perUnit(rawFanIn()),
  ring: () => perUnit(rawRing()),
  fanOut: () => perUnit(rawFanOut()),
};

function rawOneToOne(): Workload {
  const system = new RingBuffer();
  const counter = new Counter();
  const actor = system.spawn(() => counter.count());
  return async (repeat) => {
    for (let at = 0; at < repeat; at += 1) {
      const all = counter.until(BURST);
      for (let value = 0; value < BURST; value += 1) system.send(actor, { type: "msg", value });
      await all;
    }
    return repeat * BURST;
  };
}

function rawFanIn(): Workload {
  const system = new RingBuffer();
  const counter = new Counter();
  const sink = system.spawn(() => counter.count());
  const senders = Array.from({ length: SENDERS }, () =>
    system.spawn(() => {
      for (let value = 0; value < SENDERS; value += 1) system.send(sink, { type: "msg", value });
    }),
  );
  return async (repeat) => {
    for (let at = 0; at < repeat; at += 1) {
      const all = counter.until(SENDERS * SENDERS);
      for (const sender of senders) system.send(sender, { type: "msg", value: 0 });
      await all;
    }
    return repeat * (SENDERS * SENDERS + SENDERS);
  };
}

function rawRing(): Workload {
  const system = new RingBuffer();
  const counter = new Counter();
  const actors = Array.from({ length: RING }, (_, at) =>
    system.spawn(({ value }) => {
      if (value === 0) counter.count();
      else system.send(actors[(at + 1) % RING]!, { type: "msg", value: value - 1 });
    }),
  );
  return async (repeat) => {
    const all = counter.until(1);
    system.send(actors[0]!, { type: "msg", value: repeat * RING - 1 });
    await all;
    return repeat * RING;
  };
}

function rawFanOut(): Workload {
  const system = new RingBuffer();
  const counter = new Counter();
  const actors = Array.from({ length: FAN_OUT }, () => system.spawn(() => counter.count()));
  return async (repeat) => {
    for (let at = 0; at < repeat; at += 1) {
      const all = counter.until(FAN_OUT);
      for (const actor of actors) system.send(actor, { type: "msg", value: at });
      await all;
    }
    return repeat * FAN_OUT;
  };
}

/** Bare rows of mail, appended and marked as read, in the transactions of their ticks. */
export async function rowsOneToOne(): Promise<Metrics> {
  using rows = new Rows({ synchronous: "normal" });
  const insert = rows.statement(
    "INSERT INTO mail (recipient, sender, mode, created, body) VALUES (?, ?, ?, ?, ?)",
  );
  const read = rows.database.prepare(
    "SELECT number, body FROM mail WHERE recipient = ? AND delivered = 0 ORDER BY number",
  );
  const mark = rows.statement("UPDATE mail SET delivered = 1 WHERE number = ?");
  return await perUnit(async (repeat) => {
    for (let at = 0; at < repeat; at += 1) {
      await Promise.all(
        Array.from({ length: BURST }, (_, value) =>
          rows.nextTick(() => insert("a", "b", "queue-only", value, `message ${value}`)),
        ),
      );
      rows.transaction(() => {
        for (const row of read.all("a")) mark(row["number"] as number);
      });
    }
    return repeat * BURST;
  });
}

/** Queue-only messages to one agent, all taken in by one run. */
export async function tellOneToOne(store: StoreKind): Promise<Metrics> {
  await using c = await coppice({ store });
  const agents = await c.crowd(BURSTS + 1);
  return await bursts(BURSTS, async (at) => {
    const agent = agents[at]!;
    await Promise.all(Array.from({ length: BURST - 1 }, (_, value) => agent.tell(`message ${value}`)));
    const work = await agent.send("read them");
    await work.outcome();
    return BURST;
  });
}

/** Queue-only messages, one to each of many agents: the append alone, which wakes nobody. */
export async function tellFanOut(store: StoreKind): Promise<Metrics> {
  await using c = await coppice({ store });
  const agents = await c.register(FAN_OUT);
  return await bursts(BURSTS, async (at) => {
    await Promise.all(agents.map((agent) => agent.tell(`message ${at}`)));
    return FAN_OUT;
  });
}

/** Messages that ask for work, to one agent: the first wakes it, the others join its run. */
export async function sendOneToOne(store: StoreKind): Promise<Metrics> {
  await using c = await coppice({ store });
  const agents = await c.crowd(BURSTS + 1);
  return await bursts(BURSTS, async (at) => {
    const works = await Promise.all(
      Array.from({ length: BURST }, (_, value) => agents[at]!.send(`message ${value}`)),
    );
    await Promise.all(works.map((work) => work.outcome()));
    return BURST;
  });
}

/** A hundred agents that each send a hundred messages to one sink from one turn; then the sink takes them in. */
export async function sendFanIn(store: StoreKind): Promise<Metrics> {
  let sink = "";
  const answer = (context: ScriptContext) =>
    context.path.startsWith("/root/a") &&
    context.inputs.some((text) => text.includes("go")) &&
    context.toolResults.length === 0
      ? together(...Array.from({ length: SENDERS }, (_, at) => send(sink, `message ${at}`)))
      : say("ok");
  await using c = await coppice({ store, scripts: { "*": answer } });
  const senders = await c.crowd(SENDERS);
  const sinks = await c.crowd(2, { from: SENDERS });
  return await bursts(1, async (at) => {
    sink = sinks[at]!.path;
    const works = await Promise.all(senders.map((sender) => sender.send("go")));
    await Promise.all(works.map((work) => work.outcome()));
    const read = await sinks[at]!.send("read them");
    await read.outcome();
    return SENDERS * SENDERS + SENDERS;
  });
}

/** One token around agents, each turn of which forwards it to the next by path. */
export async function sendRing(store: StoreKind): Promise<Metrics> {
  const ring = new Forwarding();
  await using c = await coppice({ store, scripts: { "*": ring.answer } });
  await c.register(RING);
  ring.size = RING;
  return await bursts(1, async () => {
    await ring.pass(c, RING - 1);
    return RING;
  });
}

/** A task for each of many agents. */
export async function sendFanOut(store: StoreKind): Promise<Metrics> {
  await using c = await coppice({ store });
  const agents = await c.register(FAN_OUT);
  return await bursts(1, async (at) => {
    const works = await Promise.all(agents.map((agent) => agent.send(`message ${at}`)));
    await Promise.all(works.map((work) => work.outcome()));
    return FAN_OUT;
  });
}

/** Agents that forward a token along their names until it is used up. */
export class Forwarding {
  size = 1;
  #arrived: () => void = () => undefined;

  readonly answer = (context: ScriptContext) => {
    const text = context.inputs.findLast((input) => input.includes("token ")) ?? "";
    const value = Number(/token (\d+)/.exec(text)?.[1] ?? Number.NaN);
    if (Number.isNaN(value) || context.toolResults.length > 0) return say("ok");
    if (value === 0) {
      this.#arrived();
      return say("ok");
    }
    const own = Number(context.path.slice("/root/a".length));
    return followUp(`/root/a${(own + 1) % this.size}`, `token ${value - 1}`, {
      detached: true,
      wake: "never",
    });
  };

  /** Sends a token that is forwarded so often; resolves when it is used up. */
  async pass(c: Coppice, hops: number): Promise<void> {
    const arrived = new Promise<void>((resolve) => (this.#arrived = resolve));
    const first = await c.tree.agent("/root/a0");
    await first.send(`token ${hops}`);
    await arrived;
    await c.tree.idle();
  }
}

class Counter {
  #left = 0;
  #done: () => void = () => undefined;

  until(count: number): Promise<void> {
    this.#left = count;
    return new Promise((resolve) => (this.#done = resolve));
  }

  count(): void {
    this.#left -= 1;
    if (this.#left === 0) this.#done();
  }
}
