import { beforeEach, describe, expect, test } from "vitest";
import type { AgentRecord, TreeRecord } from "../../../src/protocol/agent.ts";
import type { ThreadId } from "../../../src/protocol/ids.ts";
import { DEFAULT_LIMITS } from "../../../src/protocol/limits.ts";
import type { MailDraft } from "../../../src/protocol/mail.ts";
import { NO_USAGE } from "../../../src/protocol/usage.ts";
import { createMemoryStore } from "../../../src/store/memory.ts";
import type { Lease, Store } from "../../../src/store/port.ts";
import { assertAllConsumed } from "../../../src/testing/consumed.ts";
import { crashPoints } from "../../../src/testing/scheduler-crash.ts";
import { seededScheduler } from "../../../src/testing/scheduler.ts";

const treeId: ThreadId = "thread_t";

const tree: TreeRecord = {
  treeId,
  title: null,
  profile: "default",
  limits: DEFAULT_LIMITS,
  createdAt: 0,
  revision: 1,
  agents: 1,
  recentSpawns: [],
  recentRuns: [],
  exhausted: [],
  inbox: 0,
};

const agent: AgentRecord = {
  threadId: treeId,
  treeId,
  path: "/root",
  parent: null,
  depth: 0,
  state: "open",
  revision: 1,
  config: {
    provider: "scripted",
    model: null,
    effort: null,
    role: null,
    instructions: null,
    tools: [],
    leaf: false,
    effects: [],
    workspace: null,
    worktree: null,
    budgets: {},
    maxOutputTokens: null,
    contextWindow: null,
    modeHint: null,
    onLostRun: "notify",
    pinPendingMail: false,
    policyHash: "",
    adjustments: [],
  },
  thread: null,
  hostDriven: false,
  tokenDigest: "digest",
  createdAt: 0,
  createdBy: "user",
  bornInRun: null,
  currentRun: null,
  runs: 0,
  items: 0,
  children: 0,
  lastOutcome: null,
  lastActiveAt: 0,
  openRequests: 0,
  refusals: 0,
  loadFailures: 0,
  usage: NO_USAGE,
  sentModeHint: null,
};

const draft = (id: MailDraft["id"], text: string): MailDraft => ({
  id,
  treeId,
  recipient: treeId,
  recipientPath: "/root",
  author: { kind: "user", name: "user" },
  kind: "message",
  authority: "user",
  trigger: false,
  steer: false,
  nextRun: false,
  workId: null,
  resultOf: null,
  content: { text, bytes: text.length, artifact: null },
  start: null,
  redirectedFrom: null,
  key: null,
  createdAt: 0,
});

const claim = (store: Store): Promise<Lease> =>
  store.claim({
    treeId,
    token: "owner",
    owner: { host: "host", bootId: "boot", pid: 1, startedAt: "0" },
    leaseMs: 1_000_000,
    provenDead: () => false,
  });

const plant = (store: Store, lease: Lease): Promise<void> =>
  store.commit(lease, (tx) => {
    tx.putTree(tree);
    tx.putAgent(agent);
  });

describe("mail that is left over", () => {
  const store = { current: createMemoryStore() };
  let lease: Lease;
  beforeEach(async () => {
    store.current = createMemoryStore();
    lease = await claim(store.current);
    await plant(store.current, lease);
  });

  test("is named until it is settled", async () => {
    await assertAllConsumed({ store: store.current });
    await store.current.send([draft("msg_a", "one"), draft("msg_b", "two")]);
    const left = assertAllConsumed({ store: store.current });
    await expect(left).rejects.toThrow(/mail 1 to \/root \(message, accepted\): "one"\n[^]*mail 2.*"two"/);
    await store.current.commit(lease, (tx) => {
      tx.putMail({ ...tx.mail("msg_a")!, state: "settled" });
      tx.putMail({ ...tx.mail("msg_b")!, state: "delivered" });
    });
    await expect(assertAllConsumed({ store: store.current })).rejects.toThrow(
      /^Left over:\nmail 2 to \/root \(message, delivered\)/,
    );
    await store.current.commit(lease, (tx) => tx.putMail({ ...tx.mail("msg_b")!, state: "dead_lettered" }));
    await assertAllConsumed({ store: store.current, trees: [treeId] });
  });

  test("is named when it cannot be read", async () => {
    await store.current.send([draft("msg_a", "one")]);
    store.current.damageMail("msg_a");
    await expect(assertAllConsumed({ store: store.current })).rejects.toThrow("msg_a to /root (unreadable)");
  });
});

describe("a store under the scheduler", () => {
  /** Two senders and one store; answers the order of the mail and what the crash left. */
  const program = async (seed: number, crashAt: string | null) => {
    const scheduler = seededScheduler(seed);
    const store = createMemoryStore({ clock: scheduler.process("store").clock });
    await scheduler.complete(claim(store).then((lease) => plant(store, lease)));
    const owner = scheduler.process("owner");
    const points = crashPoints(() => owner.kill());
    if (crashAt !== null) points.arm({ name: crashAt, visit: 2 });
    const sent: string[] = [];
    const sender = async (name: string): Promise<void> => {
      for (const part of ["1", "2"]) {
        await owner.hold(name);
        await points.reach("send:before");
        await store.send([draft(`msg_${name}${part}`, name + part)]);
        await points.reach("send:after");
        sent.push(name + part);
      }
    };
    void sender("a");
    void sender("b");
    await scheduler.run();
    const page = await scheduler.complete(store.read((view) => view.mailOf(treeId, { limit: 10 })));
    return { stored: page.rows.map(({ content }) => content.text), sent, history: scheduler.history() };
  };

  test("settles in the order that the seed says, the same each time", async () => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 12; seed += 1) {
      const { stored, history } = await program(seed, null);
      expect((await program(seed, null)).history).toEqual(history);
      expect(stored.filter((text) => text.startsWith("a"))).toEqual(["a1", "a2"]);
      orders.add(stored.join(" "));
    }
    expect(orders.size).toBeGreaterThan(2);
  });

  test("keeps all of what was acknowledged when its caller is killed", async () => {
    for (let seed = 0; seed < 12; seed += 1) {
      const before = await program(seed, "send:before");
      expect(before.sent.length).toBeLessThanOrEqual(1);
      const after = await program(seed, "send:after");
      expect(after.sent.length).toBe(1);
      expect(after.stored.length).toBeGreaterThanOrEqual(2);
      for (const { stored, sent } of [before, after]) expect(stored).toEqual(expect.arrayContaining(sent));
    }
  });
});
