/**
 * One job, the same for each real program at the root of a tree: two children on two other providers, a message, a second request,
 * an interrupt, a wait for all. In the middle of that wait the host is killed; another one opens the tree and ends the job.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { delay, systemClock } from "../../src/platform/clock.ts";
import type { AgentPath } from "../../src/protocol/agent-path.ts";
import type { TreeId, WorkId } from "../../src/protocol/ids.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import type { Home } from "./support/home.ts";
import { PARENTS, type ParentName, parentOf } from "./support/parents.ts";
import { findReal } from "./support/programs.ts";
import type { HostInput } from "./support/scenario-host.ts";

const HOST = fileURLToPath(new URL("support/scenario-host.ts", import.meta.url));

interface Line {
  readonly type?: string;
  readonly path?: AgentPath;
  readonly tree?: TreeId;
  readonly work?: WorkId;
  readonly outcome?: object;
}

/** A host that runs until it is done, or killed. */
class Host {
  readonly #program;
  readonly lines: Line[] = [];
  readonly #heard = new Set<() => void>();
  readonly ended: Promise<string>;

  constructor(input: HostInput) {
    this.#program = spawn(process.execPath, [HOST, JSON.stringify(input)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    this.#program.stderr.on("data", (part: Buffer) => (said += part.toString()));
    createInterface({ input: this.#program.stdout }).on("line", (line) => {
      this.lines.push(JSON.parse(line) as Line);
      for (const heard of this.#heard) heard();
    });
    this.ended = new Promise((resolve) => {
      this.#program.on("close", () => {
        resolve(said);
        for (const heard of this.#heard) heard();
      });
    });
    onTestFinished(() => void this.#program.kill("SIGKILL"));
  }

  kill(): Promise<string> {
    this.#program.kill("SIGKILL");
    return this.ended;
  }

  /** The first line of that kind. @throws when it ends without one. */
  async until(matches: (line: Line) => boolean): Promise<Line> {
    for (;;) {
      const found = this.lines.find(matches);
      if (found !== undefined) return found;
      if (this.#program.exitCode !== null) throw new Error(`the host has ended: ${await this.ended}`);
      await new Promise<void>((resolve) => {
        const heard = (): void => {
          this.#heard.delete(heard);
          resolve();
        };
        this.#heard.add(heard);
      });
    }
  }
}

/** What the root does; with what it has been told, it goes on by itself after the loss. */
function task(before: string): string {
  const call = (name: string, input: object) => ask.call(`${before}${name}`, input);
  const child = { fork_turns: "none", message: "go" };
  return [
    call("spawn_agent", { ...child, task_name: "one", provider: "scripted" }),
    call("spawn_agent", {
      ...child,
      task_name: "two",
      provider: "model",
      message: `${ask.call("hold")} ${ask.text("TWO")}`,
    }),
    call("spawn_agent", { ...child, task_name: "three", provider: "scripted" }),
    call("send_message", { target: "one", message: "a word" }),
    call("followup_task", { target: "two", message: ask.text("TWO AGAIN") }),
    call("interrupt_agent", { target: "three" }),
    call("wait_agent", { targets: ["one", "two"] }),
    ask.text("never said"),
  ].join(" ");
}

describe.for(Object.keys(PARENTS) as ParentName[])("%s", (name) => {
  const { program, home: homeOf, before = "" } = parentOf(name);
  const found = findReal(program);
  const why = "missing" in found ? ` (${found.missing})` : "";

  test.skipIf(why !== "")(
    `REC-1 WRK-1 its job survives a kill, and each result comes once${why}`,
    async () => {
      const unscripted = `${ask.call(`${before}wait_agent`, { targets: ["one", "two"] })} ${ask.text("all of it")}`;
      await using server = await startModelServer({ unscripted });
      const home = homeOf(server);
      const place = { parent: name, env: home.env, workspace: home.workspace, model: server.openAiUrl };
      const input = { ...place, store: join(home.path, "store.db") };

      const first = new Host({ ...input, task: task(before) });
      const { tree, work } = await first.until((line) => line.tree !== undefined);
      await first.until(({ type, path }) => type === "wait.started" && path === "/root");
      await twice(first, "work.ended", "/root/two");
      await first.kill();

      const second = new Host({ ...input, task: { tree: tree!, work: work! } });
      const { outcome } = await second.until((line) => line.outcome !== undefined);
      expect(outcome).toMatchObject({ ending: "completed", text: expect.stringContaining("all of it") });
      await second.ended;

      const { works, results } = await stored(input.store, tree!);
      expect(works).toEqual([
        ["/root", "completed"],
        ["/root/one", "completed"],
        ["/root/three", "interrupted"],
        ["/root/two", "completed"],
        ["/root/two", "completed"],
      ]);
      // The second request of `two` came before its first answer, which is that of both.
      expect(results).toEqual([
        ["/root/one", "ONE", "settled"],
        ["/root/three", expect.stringContaining("interrupted"), "settled"],
        ["/root/two", "TWO AGAIN", "settled"],
        ["/root/two", "TWO AGAIN", "settled"],
      ]);
      await gone(home);
    },
  );
});

async function twice(host: Host, type: string, path: AgentPath): Promise<void> {
  await host.until(() => host.lines.filter((line) => line.type === type && line.path === path).length === 2);
}

/** Works by their agents with how they ended, and the results that the root was told. */
async function stored(path: string, tree: TreeId) {
  const store = await openSqliteStore({ path, readOnly: true });
  try {
    return await store.read((view) => {
      const { rows } = view.works(tree, { limit: 100 });
      const works = rows.map(({ executorPath, outcome }) => [executorPath, outcome?.ending]);
      const mail = view.mailOf(tree, { limit: 1000 }).rows.filter(({ kind }) => kind === "final_answer");
      const results = mail.map(({ author, content, state }) => [
        author.kind === "agent" ? author.path : author.kind,
        content.text,
        state,
      ]);
      return { works: works.toSorted(inOrder), results: results.toSorted(inOrder) };
    });
  } finally {
    await store.close();
  }
}

/** Of rows as they are read. */
function inOrder(one: readonly unknown[], other: readonly unknown[]): number {
  return JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
}

function gone(home: Home): Promise<unknown> {
  return waitUntil("its processes are gone", () => home.processes().length === 0, {
    step: () => delay(systemClock, 20),
  });
}
