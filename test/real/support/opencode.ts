/** OpenCode in a home of its own, on a model of ours. */
import { systemClock } from "../../../src/platform/clock.ts";
import { type LineProcess, startLineProcess } from "../../../src/platform/line-process.ts";
import {
  createOpenCodeProvider,
  type OpenCodeOptions,
} from "../../../src/providers/opencode/opencode-provider.ts";
import type { NativeAdapter } from "../../../src/providers/port.ts";
import type { ModelServer } from "../../support/model-server/model-server.ts";
import { type Home, makeHome } from "./home.ts";
import type { Installed } from "./programs.ts";

export function openCodeHome(server: ModelServer, settings: object = {}): Home {
  const home = makeHome({
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
  });
  const config = {
    autoupdate: false,
    share: "disabled",
    model: "mock/mock-model",
    small_model: "mock/mock-model",
    enabled_providers: ["mock"],
    provider: {
      mock: {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL: server.openAiUrl, apiKey: "dummy-opencode" },
        models: { "mock-model": { name: "mock", limit: { context: 100_000, output: 4096 } } },
      },
    },
    ...settings,
  };
  home.write(".config/opencode/opencode.json", JSON.stringify(config));
  return home;
}

/** A server of OpenCode, ready to be asked. */
export interface OpenCodeServer {
  readonly program: LineProcess;
  readonly url: string;
  /** Answers with the body that came. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into it by name
  readonly request: (method: "GET" | "POST", path: string, body?: object) => Promise<any>;
}

/** It chooses its port itself and says which. */
export async function serveOpenCode(installed: Installed, home: Home): Promise<OpenCodeServer> {
  const program = await startLineProcess(
    {
      command: installed.command,
      args: [...installed.args, "serve", "--hostname", "127.0.0.1", "--port", "0"],
      cwd: home.workspace,
      env: home.env,
    },
    { clock: systemClock },
  );
  const said = program.lines[Symbol.asyncIterator]();
  for (;;) {
    const { value, done } = await said.next();
    if (done === true) throw new Error(`it has ended: ${program.stderrTail()}`);
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(String(value))?.[0];
    if (url === undefined) continue;
    return {
      program,
      url,
      async request(method, path, body) {
        const response = await fetch(`${url}${path}`, {
          method,
          headers: { "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        const text = await response.text();
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
        return text === "" ? null : JSON.parse(text);
      },
    };
  }
}

/** The adapter as a host would make it, in a home. */
export function openCodeAdapter(
  program: Installed,
  home: Pick<Home, "env"> & Partial<Pick<Home, "workspace">>,
  more: OpenCodeOptions = {},
): NativeAdapter {
  const adapter = createOpenCodeProvider({
    ...(more.url === undefined ? { command: program.command, args: program.args, env: home.env } : {}),
    deadlineMs: BUSY_MS,
    ...more,
  });
  return {
    ...adapter,
    // Not the folder of the tests, whose settings it would read.
    openSession: (input) =>
      adapter.openSession({ ...input, workspace: input.workspace ?? home.workspace ?? null }),
  };
}

/** For an answer, on a machine that may be busy. */
const BUSY_MS = 240_000;
