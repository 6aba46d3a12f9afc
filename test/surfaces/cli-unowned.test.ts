/** A tree whose owner was killed in a run: no command says that it runs, and each names what runs it on. */
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { pause, say, together } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { Place } from "../support/cli.ts";
import { ended } from "../support/cli-here.ts";

const place = new Place();
const killed = join(place.path, "killed.db");
let tree = "";

/** The store as it is in the midst of a run, its lease taken out as it runs out. */
beforeAll(async () => {
  const store = await openSqliteStore({ path: place.store });
  {
    await using runtime = await createRuntime({
      store,
      providers: { echo: scripted({ "*": [together(pause(3_600_000), say("never"))] }) },
    });
    const opened = await runtime.openTree({ provider: "echo" });
    tree = opened.id;
    await opened.root.send("do something");
    for await (const event of opened.events({ after: 0 })) if (event.type === "run.accepted") break;
    using database = new DatabaseSync(place.store);
    database.exec(`VACUUM INTO '${killed}'`);
  }
  await store.close();
  using database = new DatabaseSync(killed);
  database.exec("DELETE FROM leases");
});
afterAll(() => place[Symbol.dispose]());

const said = async (...args: readonly string[]): Promise<string> => {
  const { exit, out, aside } = await ended([...args, "--store", killed]);
  expect({ exit, aside }).toEqual({ exit: 0, aside: "" });
  return out;
};

describe("a tree whose owner was killed", () => {
  test.for(["tree", "why /root", "works", "owed /root", "tree --profile codex"])(
    "REC-2 OBS-3 `%s` does not say that anything runs",
    async (command) => {
      const out = await said(...command.split(" "));
      expect(out).toMatch(/stopped|interrupted/);
      expect(out.replaceAll(/was\s+running/g, "")).not.toContain("running");
    },
  );

  test.for(["tree", "why /root"])("REC-2 `%s` names what runs it on: its run is lost", async (command) => {
    const out = await said(...command.split(" "));
    expect(out).toContain(
      `To run it on: npx coppice agent followup /root --run --tree ${tree} --store ${killed} "go on"`,
    );
  });

  test("REC-2 waiting for it is refused, and says the same", async () => {
    const { exit, aside } = await ended(["agent", "wait", "/root", "--store", killed]);
    expect(exit).toBe(3);
    expect(aside).toContain(
      `run it here: npx coppice agent followup /root --run --tree ${tree} --store ${killed} "go on"`,
    );
  });
});
