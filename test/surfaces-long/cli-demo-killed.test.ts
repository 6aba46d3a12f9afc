/** The demo, killed and interrupted: what it goes on with is in the store. */
import { describe, expect, test } from "vitest";
import { answerOf, Place } from "../support/cli.ts";
import { WORKS, worksOf } from "../support/demo-works.ts";

let unhurt: Promise<string> | null = null;

/** What an unhurt run answers: nothing in it says where the folder is. */
function answerUnhurt(): Promise<string> {
  unhurt ??= (async () => {
    using place = new Place();
    return answerOf(await place.demo("--dir", place.dir).ended);
  })();
  return unhurt;
}

/** Kills the demo when an event of an agent is seen; one that is through by then is as good. */
async function killAt(place: Place, args: readonly string[], type: string, path: string): Promise<void> {
  const running = place.demo(...args, "--pace", "20");
  await running.event(type, path).catch(() => undefined);
  await running.kill();
}

describe("the demo, killed", () => {
  test("REC-1 kill -9, twice: the answer is the same and each work is there once", async () => {
    using place = new Place();
    await killAt(place, ["--dir", place.dir], "agent.spawned", "/root/searcher");
    await killAt(place, ["--resume"], "agent.interrupted", "/root/searcher");
    const last = await place.demo("--resume").ended;
    expect(last.code).toBe(0);
    expect(answerOf(last)).toBe(await answerUnhurt());
    expect(await worksOf(place)).toEqual(WORKS);
    const again = await place.demo("--resume").ended;
    expect(again.code).toBe(0);
    expect(answerOf(again)).toBe(answerOf(last));
  });

  test("killed more often than a work may lose its run, it still ends with the same answer", async () => {
    using place = new Place();
    for (const args of [["--dir", place.dir], ["--resume"], ["--resume"]]) {
      const running = place.demo(...args, "--pace", "60000");
      await running.event("run.accepted", "/root");
      await running.kill();
    }
    const last = await place.demo("--resume").ended;
    expect(last.code).toBe(0);
    expect(last.stderr).toContain("asked once more");
    expect(answerOf(last)).toBe(await answerUnhurt());
    expect(await worksOf(place)).toEqual([...WORKS, "/root runtime_lost"].toSorted());
  });

  test("an interrupt gives the tree back at once, and what was begun is gone on with", async () => {
    using place = new Place();
    const first = place.demo("--dir", place.dir, "--pace", "60000");
    await first.event("run.accepted", "/root");
    const ended = await first.kill("SIGINT");
    expect(ended.code).toBe(130);
    expect(ended.stderr).toContain("--resume");
    const [row] = await place.rows("tree");
    expect(row.owner).toBeNull();
    expect((await place.demo("--resume").ended).code).toBe(0);
    expect(await worksOf(place)).toEqual(WORKS);
  });

  test("the codex profile does the same job, and survives a kill", async () => {
    using place = new Place();
    await killAt(place, ["--dir", place.dir, "--profile", "codex"], "agent.interrupted", "/root/searcher");
    const last = await place.demo("--resume").ended;
    expect(last.code).toBe(0);
    expect(answerOf(last)).toBe(await answerUnhurt());
  });

  test("with nothing to go on with, a new one begins and says so", async () => {
    using place = new Place();
    const ended = await place.start(["demo", "--resume", "--json", "--pace", "0"], {
      COPPICE_STORE: place.store,
    }).ended;
    expect(ended.code).toBe(0);
    expect(ended.stderr).toContain("nothing to go on with");
  });
});
