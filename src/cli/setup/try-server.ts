/** Whether a server answers as clients ask it: it is started, greeted and asked for its tools, and ended. No tool is called. */
import { systemClock } from "../../platform/clock.ts";
import { type LineProcess, startLineProcess } from "../../platform/line-process.ts";
import { describeError } from "../../protocol/errors.ts";
import type { ServerCommand } from "./clients.ts";

const ANSWER_MS = 15_000;
const GRACE_MS = 2_000;
/** The oldest revision that is served. */
const REVISION = "2025-06-18";

export type Tried = { readonly tools: number } | { readonly fault: string };

export async function tryServer({ command, args, env = {} }: ServerCommand): Promise<Tried> {
  try {
    const spec = { command, args, env: { ...process.env, ...env } };
    await using program = await startLineProcess(spec, { clock: systemClock });
    const timer = systemClock.setTimer(ANSWER_MS, () => void program.end({ graceMs: 0 }));
    try {
      return await greet(program);
    } finally {
      timer.cancel();
      await program.end({ graceMs: GRACE_MS });
    }
  } catch (error) {
    return { fault: describeError(error).split("\n")[0]! };
  }
}

async function greet(program: LineProcess): Promise<Tried> {
  const ask = (message: object): Promise<void> =>
    program.write(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const clientInfo = { name: "coppice doctor", version: "1" };
  const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
  await ask({ id: 1, method: "initialize", params });
  for await (const line of program.lines) {
    const { id, result } = JSON.parse(line) as Answer;
    if (id === 1 && result !== undefined) {
      await ask({ method: "notifications/initialized" });
      await ask({ id: 2, method: "tools/list" });
    } else if (id === 2 && result?.tools !== undefined) return { tools: result.tools.length };
    else if (id !== undefined) break;
  }
  const said = program.stderrTail().trim().split("\n").at(-1) ?? "";
  return { fault: said === "" ? "it does not answer as a server of MCP" : said };
}

interface Answer {
  readonly id?: number;
  readonly result?: { readonly tools?: readonly unknown[] };
}
