/** `coppice mcp` as clients start it: a child process, spoken to by the protocol's own client over its standard streams. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { BIN, NODE, Place, ROOT, type Row } from "../support/cli.ts";

/** Providers of the user's own, in a module that talks; one agent is held until it is ended. */
const MODULE = `
import { scripted } from "${ROOT}/src/index.ts";
import { script } from "${ROOT}/src/testing.ts";
console.log("this must not reach the client");
const { say, gate } = script;
export default { providers: { mine: scripted({ "*": [say("done")], "/root/held": [gate("never"), say("late")] }) } };
`;

function placed(): Place {
  const place = new Place();
  onTestFinished(() => place[Symbol.dispose]());
  place.write("mine.ts", MODULE);
  return place;
}

async function connected(place: Place, args: readonly string[], env: Record<string, string> = {}) {
  const transport = new StdioClientTransport({
    command: NODE,
    args: [BIN, "mcp", "--store", place.store, "--config", `${place.dir}/mine.ts`, ...args],
    cwd: place.dir,
    env: { PATH: process.env["PATH"]!, HOME: place.path, ...env },
    stderr: "pipe",
  });
  let stderr = "";
  transport.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const faults: Error[] = [];
  client.onerror = (error) => void faults.push(error);
  await client.connect(transport);
  onTestFinished(() => client.close());
  const call = async (name: string, given: object = {}): Promise<Row> =>
    (await client.callTool({ name, arguments: { ...given } })).structuredContent;
  return { client, transport, call, faults, stderr: () => stderr };
}

test("HDR-4 REC-1 a client gets a tree; the next one goes on with what was killed with the first", async () => {
  const place = placed();
  const first = await connected(place, ["--provider", "mine"]);
  expect((await first.client.listTools()).tools.map(({ name }) => name)).toContain("spawn_agent");
  expect(await place.run("tree")).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("there is no store"),
  });

  await first.call("spawn_agent", { task_name: "quick", message: "do it" });
  const { messages, cursor } = await first.call("wait_agent");
  expect(messages).toMatchObject([{ from: "/root/quick", text: "done" }]);
  const held = await first.call("spawn_agent", { task_name: "held", message: "hold it", wake: "always" });
  await waitUntil("it runs", async () => {
    const { agents } = await first.call("list_agents", { path_prefix: "/root/held" });
    return agents[0].status.kind === "running";
  });
  const [{ tree }] = await place.rows("tree");
  expect(first.faults).toEqual([]);
  process.kill(first.transport.pid!, "SIGKILL");

  const next = await connected(place, ["--tree", tree]);
  const ended = await next.call("wait_agent", { cursor, works: [held.work_id] });
  expect(ended.works).toMatchObject([{ work_id: held.work_id, state: "runtime_lost" }]);
  await next.client.close();
  expect(next.stderr()).toContain("this must not reach the client");
  expect(next.stderr()).toContain("the client has gone");
  expect((await place.rows("works")).map((work) => work.outcome.ending)).toEqual([
    "completed",
    "runtime_lost",
  ]);
});

test("REC-6 a client that is killed ends the server, which gives the tree back", async () => {
  const place = placed();
  const args = [BIN, "mcp", "--store", place.store, "--config", `${place.dir}/mine.ts`, "--provider", "mine"];
  const server = spawn(NODE, args, { cwd: place.dir, stdio: "pipe" });
  const ended = once(server, "close");
  const answers = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const ask = async (id: number, method: string, params: object): Promise<void> => {
    server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    await answers.next();
  };
  const clientInfo = { name: "test", version: "1" };
  await ask(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  await ask(2, "tools/call", { name: "spawn_agent", arguments: { task_name: "held", message: "hold it" } });
  // All that a killed client leaves are closed pipes.
  for (const pipe of [server.stdout, server.stderr, server.stdin]) pipe.destroy();
  expect((await ended)[0]).toBe(0);
  using database = new DatabaseSync(place.store, { readOnly: true });
  const leases = database.prepare("SELECT json_extract(body, '$.token') AS token FROM leases").all();
  expect(leases).toEqual([{ token: null }]);
});
