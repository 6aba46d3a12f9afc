/** The command line with real agents at the root: `run`. */
import { dirname, delimiter } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Place } from "../support/cli.ts";
import { type ModelServer, startModelServer } from "../support/model-server/model-server.ts";
import { codexHome } from "./support/codex.ts";
import type { Home } from "./support/home.ts";
import { findReal } from "./support/programs.ts";

const codex = findReal("codex");
const place = new Place();
let server: ModelServer;
beforeAll(async () => {
  // The child's result may come before it is waited for, and is a message then.
  server = await startModelServer({ unscripted: "@@TEXT one has answered@@" });
});
afterAll(async () => {
  place[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

function environment({ env }: Home): NodeJS.ProcessEnv {
  if ("missing" in codex) throw new Error(codex.missing);
  return { ...env, PATH: [dirname(codex.command), process.env["PATH"]].join(delimiter) };
}

describe.skipIf("missing" in codex)("`coppice run` with Codex", () => {
  test("RUN-5 it spawns a child on another provider, waits, and its answer is printed", async () => {
    const spawn = { task_name: "one", message: "hello", fork_turns: "none", provider: "echo" };
    const task = [
      `@@CALL coppice.spawn_agent ${JSON.stringify(spawn)}@@`,
      '@@CALL coppice.wait_agent {"targets":["one"]}@@',
      "@@TEXT one has answered@@",
    ].join(" ");
    const args = ["run", "--provider", "codex", "--pace", "0", "--store", place.store, task];
    const ran = await place.start(args, environment(codexHome(server))).ended;
    expect(ran).toMatchObject({ code: 0, stdout: "one has answered\n" });
    const [shown] = await place.rows("tree");
    expect(shown.agents.map((agent: { path: string }) => agent.path)).toEqual(["/root", "/root/one"]);
    expect(JSON.stringify(server.requests.at(-1)!.body.input)).toContain("echo heard");
  });
});
