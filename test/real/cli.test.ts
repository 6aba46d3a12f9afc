/** The command line with real agents at the root: `run`. */
import { dirname, delimiter } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Place } from "../support/cli.ts";
import { type ModelServer, startModelServer } from "../support/model-server/model-server.ts";
import { codexHome } from "./support/codex.ts";
import type { Home } from "./support/home.ts";
import { openCodeHome } from "./support/opencode.ts";
import { findReal, type Installed } from "./support/programs.ts";

/** With what stands before a tool of ours, where the program has others of the same name. */
const PROGRAMS = [
  { name: "codex", home: codexHome, before: "coppice." },
  { name: "opencode", home: openCodeHome, before: "" },
] as const;
let server: ModelServer;
beforeAll(async () => {
  // The child's result may come before it is waited for, and is a message then.
  server = await startModelServer({ unscripted: "@@TEXT one has answered@@" });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

function environment(program: Installed, { env }: Home): NodeJS.ProcessEnv {
  return { ...env, PATH: [dirname(program.command), process.env["PATH"]].join(delimiter) };
}

describe.for(PROGRAMS)("`coppice run` with $name", ({ name, home, before }) => {
  const found = findReal(name);

  test.skipIf("missing" in found)(
    "RUN-5 it spawns a child on another provider, waits, and its answer is printed",
    async () => {
      const spawn = { task_name: "one", message: "hello", fork_turns: "none", provider: "echo" };
      const task = [
        `@@CALL ${before}spawn_agent ${JSON.stringify(spawn)}@@`,
        `@@CALL ${before}wait_agent {"targets":["one"]}@@`,
        "@@TEXT one has answered@@",
      ].join(" ");
      using place = new Place();
      const args = ["run", "--provider", name, "--pace", "0", "--store", place.store, task];
      const ran = await place.start(args, environment(found as Installed, home(server))).ended;
      expect(ran).toMatchObject({ code: 0, stdout: "one has answered\n" });
      const [shown] = await place.rows("tree");
      expect(shown.agents.map((agent: { path: string }) => agent.path)).toEqual(["/root", "/root/one"]);
      expect(JSON.stringify(server.requests.at(-1)!.body)).toContain("echo heard");
    },
  );
});
