/** Rows that cannot be read and only tell of what is over, or of others (REC-1): each costs itself, and nobody his run. */
import { expect, test } from "vitest";
import { gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { sampleMail } from "../../src/testing/store-records.ts";
import { harness } from "../support/harness.ts";
import { look } from "../support/look.ts";

const number = (path: string): string => `(SELECT number FROM agents WHERE path = '${path}')`;
const scripts = {
  "/root/p": [spawn("q", "sub q"), wait({ targets: ["q"] }), together(gate("g"), say("P"))],
  "*": [repeat(say("ok"))],
};

test.each([
  [
    "process groups",
    `INSERT INTO process_groups (id, tree, body) VALUES ('x 1', ${number("/root")}, '{bad')`,
    5,
  ],
  [
    "the conversation of a running agent",
    `UPDATE provider_threads SET body = '{bad' WHERE thread = ${number("/root/p")}`,
    5,
  ],
  ["a work that has ended", `UPDATE works SET body = '{bad' WHERE executor = ${number("/root/p/q")}`, 5],
  ["an agent that is idle", "UPDATE agents SET body = '{bad' WHERE path = '/root/c'", 4],
  ["an event", "UPDATE events SET body = '{bad' WHERE seq = 3", 5],
] as const)("REC-1 EXE-4 a broken row of %s is in nobody's way", async (_name, sql, agents) => {
  await using h = await harness({ store: "sqlite", scripts, tree: { limits: { running: 1 } } });
  await (await h.tree.root.spawn("c", "go")).work.outcome();
  const p = await h.tree.root.spawn("p", "go");
  await h.provider.gates.arrived("g");
  h.edit(sql);
  h.provider.gates.open("g");
  expect(await p.work.outcome()).toMatchObject({ ending: "completed", text: "P" });
  const innocent = await h.tree.root.spawn("innocent", "go");
  expect(await innocent.work.outcome()).toMatchObject({ ending: "completed" });
  expect(await h.ask("are you there?")).toMatchObject({ ending: "completed" });
  expect((await h.tree.list()).agents).toHaveLength(agents);
  const log = await look(h).events();
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, at) => at + 1));
  expect(log.filter(({ data }) => data["table"] === "events")).toHaveLength(sql.includes("events") ? 1 : 0);
  expect((await h.tree.root.why()).status).toBe("idle");
  expect(await h.tree.root.interrupt({ cascade: "subtree" })).toEqual([]);
  await h.crash();
  expect(await h.tree.root.close()).toHaveLength(agents);
});

test("REC-1 MBX-10 what came for an agent that cannot be read keeps the inbox from nobody else", async () => {
  await using h = await harness({ store: "sqlite", scripts: { "*": [repeat(say("ok"))] } });
  const [c, d] = [await h.tree.root.spawn("c", "go"), await h.tree.root.spawn("d", "go")];
  await Promise.all([c.work.outcome(), d.work.outcome()]);
  const letter = (to: typeof c.agent, at: number) => ({
    ...sampleMail(h.tree.id, to.threadId, at),
    recipientPath: to.path,
    author: { kind: "user", name: "cli" } as const,
    kind: "user" as const,
    authority: "user" as const,
    trigger: true,
  });
  await h.store.send([letter(c.agent, 1), letter(d.agent, 2)]);
  h.edit("UPDATE agents SET body = '{bad' WHERE path = '/root/c'");
  await h.clock.advance(1_000);
  await look(h).until("the other one is woken", async () => (await look(h).runs("/root/d")).length === 2);
  expect(await h.store.read((view) => view.arrivals(h.tree.id))).toEqual([]);
});
