/** Codex in a home of its own, on a model of ours. */
import type { ModelServer } from "../../support/model-server/model-server.ts";
import { type Home, makeHome } from "./home.ts";
import type { Installed } from "./programs.ts";
import { speak, type Speaking, type SpeakOptions } from "./rpc.ts";

export interface CodexHomeOptions {
  /** A name that Codex does not know gets plain function tools; one of its catalogue may get others. */
  readonly model?: string;
  /** More lines at the top level of its configuration. */
  readonly settings?: readonly string[];
  /** More tables of its configuration; unless given, the one that switches its own agents off, which old ones do not know. */
  readonly tables?: readonly string[];
}

/** Whatever starts by itself is switched off. */
export function codexHome(server: ModelServer, options: CodexHomeOptions = {}): Home {
  const home = makeHome({ OPENAI_API_KEY: "dummy-codex" });
  const { model = "mock-model", settings = [], tables = ["[agents]", "enabled = false"] } = options;
  home.write(
    ".codex/config.toml",
    `model = "${model}"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
${settings.join("\n")}

[model_providers.mock]
name = "mock"
base_url = "${server.openAiUrl}"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
requires_openai_auth = false
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0

[features]
plugins = false
apps = false
goals = false
shell_snapshot = false

[analytics]
enabled = false

${tables.join("\n")}
`,
  );
  return home;
}

/** Its app server, as a client that has greeted it. */
export async function speakCodex(
  codex: Installed,
  home: Home,
  options: Pick<SpeakOptions, "onRequest"> = {},
): Promise<Speaking> {
  const speaking = await speak(codex, home, { args: ["app-server"], versioned: false, ...options });
  await speaking.request("initialize", {
    clientInfo: { name: "coppice", title: "Coppice", version: "0.1.0" },
    capabilities: { experimentalApi: true, requestAttestation: false },
  });
  await speaking.peer.notify("initialized");
  return speaking;
}
