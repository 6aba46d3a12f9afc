import { renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answerOf, type Ended, Place, type Row, rowsOf } from "../support/cli.ts";
import { WORKS, worksOf } from "../support/demo-works.ts";
import { KEY } from "../support/model-provider.ts";
import { call, text } from "../support/model-wire/reply.ts";
import { startVendorServer } from "../support/vendor-server/vendor-server.ts";

describe("the demo", () => {
  const place = new Place();
  let ended: Ended;
  let rows: Row[];

  beforeAll(async () => {
    ended = await place.demo("--dir", place.dir).ended;
    rows = rowsOf(ended.stdout);
  });
  afterAll(() => place[Symbol.dispose]());

  test("prints clean NDJSON, every event once and in order, and names its store", () => {
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(rows[0]).toMatchObject({ type: "demo.started", store: place.store, dir: place.dir, how: "new" });
    expect(rows.at(-1)).toMatchObject({
      type: "demo.ended",
      store: place.store,
      ending: "completed",
      agents: 4,
    });
    const seqs = rows.slice(1, -1).map((row) => row.seq as number);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  });

  test("spawns three, messages one, follows up, interrupts one and resumes it, joins", async () => {
    const kinds = rows
      .filter((row) => row.type === "mail.accepted")
      .map((row) => `${row.path} ${row.data.kind}`);
    expect(kinds).toContain("/root/counter message");
    expect(kinds.filter((kind) => kind === "/root/reader new_task")).toHaveLength(2);
    expect(kinds.filter((kind) => kind === "/root/searcher new_task")).toHaveLength(2);
    expect(rows.some((row) => row.type === "agent.interrupted" && row.path === "/root/searcher")).toBe(true);
    expect(await worksOf(place)).toEqual(WORKS);
  });

  test("has fewer slots than agents, so that agents are unloaded and loaded again", () => {
    const loads = rows.filter((row) => row.type === "agent.loaded").map((row) => row.path as string);
    expect(rows.some((row) => row.type === "agent.unloaded")).toBe(true);
    expect(loads.length).toBeGreaterThan(new Set(loads).size);
  });

  test("answers from the files, and differently when one is renamed", async () => {
    const before = answerOf(ended);
    expect(before).toContain("src/longest.ts 30 lines");
    expect(before).toContain('Read README.md: "Alpha kit"');
    renameSync(join(place.dir, "src/longest.ts"), join(place.dir, "src/renamed.ts"));
    const after = answerOf(await place.demo("--dir", place.dir).ended);
    expect(after).toContain("src/renamed.ts 30 lines");
    expect(after).not.toContain("longest.ts");
    const digest = /names: (\w+)/;
    expect(digest.exec(after)?.[1]).not.toBe(digest.exec(before)?.[1]);
  });
});

describe("the demo on a real model", () => {
  test("talks to the vendor through its own client, with tools, and keeps the key to itself", async () => {
    using place = new Place();
    await using vendor = await startVendorServer();
    vendor.reply(
      { parts: [call("c1", "count", '{"path":"."}')] },
      { parts: [call("c2", "read_file", '{"path":"../store.db"}')] },
      { parts: [text("There are 5 files.")] },
    );
    const env = { OPENAI_BASE_URL: vendor.baseUrl, OPENAI_API_KEY: KEY, COPPICE_STORE: place.store };
    const running = place.start(["demo", "--json", "--dir", place.dir, "--model", "openai/gpt-5"], env);
    const ended = await running.ended;
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(answerOf(ended)).toBe("There are 5 files.");
    const [first, second, third] = vendor.requests;
    const names = first!.body.tools.map((tool: Row) => tool.name);
    expect(names).toEqual(
      expect.arrayContaining(["spawn_agent", "wait_agent", "list_files", "read_file", "search", "count"]),
    );
    expect(JSON.stringify(first!.body.input)).toContain("Look through the folder");
    expect(JSON.stringify(second!.body.input)).toContain('\\"files\\":5');
    expect(JSON.stringify(third!.body.input)).toContain("leads out of the folder");
    expect(ended.stdout).not.toContain(KEY);
  });

  test.for([
    ["openai/gpt-5", "OPENAI_API_KEY"],
    ["nobody/none", "names no model"],
    ["gpt-5", "names no model"],
  ] as const)("%s without what it needs is refused before anything begins", async ([model, words]) => {
    using place = new Place();
    const env = { OPENAI_API_KEY: "", COPPICE_STORE: place.store };
    const ended = await place.start(["demo", "--model", model], env).ended;
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toContain(words);
  });
});
