/** `coppice mcp` as clients start it: a child process, spoken to by the protocol's own client over its standard streams. */
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
