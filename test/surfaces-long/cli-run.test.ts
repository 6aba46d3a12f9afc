/** `coppice run`: a new tree for one task, and its answer. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { Place } from "../support/cli.ts";

const AGENT = fileURLToPath(new URL("../support/acp-agent.mjs", import.meta.url));

const place = new Place();
afterAll(() => place[Symbol.dispose]());

describe("`coppice run`", () => {
  test("grows a tree, prints the answer alone, and tells how to look at it", async () => {
    const ran = await place.run("run", "--pace", "0", "how are\nyou?");
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.stdout).toMatch(/^echo heard "how are you\?"/);
    expect(ran.stderr).toMatch(/Look: npx coppice tree --tree thread_\S+ --store \S+/);
    const [tree] = await place.rows("tree");
    expect(tree.agents).toMatchObject([{ path: "/root", state: "completed" }]);
  });

  test("--json prints one object", async () => {
    const [row, ...more] = await place.rows("run", "--pace", "0", "--provider", "parrot", "hello");
    expect(more).toEqual([]);
    expect(row).toMatchObject({ state: "ended", outcome: { ending: "completed" } });
  });

  test("refuses what it cannot run, and makes no tree", async () => {
    const refused = [
      [["--provider", "nobody", "x"], /no provider `nobody`.*codex/],
      [["  "], /blank/],
      [["--dir", "/nowhere/at/all", "x"], /no folder \/nowhere\/at\/all/],
      [["--profile", "other", "x"], /default, codex/],
      [["--provider", "model", "x"], /--model openai/],
    ] as const;
    const before = await place.rows();
    for (const [args, words] of refused) {
      const ended = await place.run("run", ...args);
      expect(ended).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(words) });
    }
    expect(await place.rows()).toEqual(before);
  });

  test("a program that speaks ACP is a provider by its command, for threads too", async () => {
    const provider = `acp:${process.execPath} ${AGENT}`;
    const env = { ACP_STORE: place.path };
    const on = ["--store", place.store, "--provider", provider];
    const ran = await place.start(["run", ...on, `go <<[{"say":"from the program"}]>>`], env).ended;
    expect(ran).toMatchObject({ code: 0, stdout: "from the program\n" });
    const made = await place.start(["thread", "new", ...on, "--json"], env).ended;
    const { id } = JSON.parse(made.stdout) as { id: string };
    const said = `go <<[{"say":"in a thread"}]>>`;
    const told = await place.start(["thread", "continue", id, "--store", place.store, "--", said], env).ended;
    expect(told).toMatchObject({ code: 0, stdout: "in a thread\n" });
  });

  test("REC-1 a task that was killed too often is asked for once more", async () => {
    const store = join(place.path, "often.db");
    for (const what of [["the task"], ["--resume"], ["--resume"]]) {
      const running = place.start(["run", ...what, "--pace", "3600000", "--store", store]);
      await new Promise<void>((resolve) => {
        let text = "";
        running.child.stderr!.on("data", (more: string) => {
          text += more;
          if (text.includes(" runs\n")) resolve();
        });
      });
      await running.kill();
    }
    const resumed = await place.start(["run", "--resume", "--pace", "0", "--store", store]).ended;
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^echo heard/) });
    expect(resumed.stderr).toContain("asked for once more");
  });
});
