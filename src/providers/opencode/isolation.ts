/** The environment of a server in which nothing of its user's acts by itself, over which its rules would have no power (POL-2). */
import { RejectedError } from "../../protocol/errors.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Programs that it would run on files that an agent has changed or read. */
const WITHOUT_PROGRAMS = { formatter: false, lsp: false };

/** @throws RejectedError `INVALID_ARGUMENT` for settings in it that are not JSON: ours could not be put beside them. */
export function isolatedEnvironment(env: Environment): Environment {
  return {
    ...env,
    OPENCODE_PURE: "1",
    OPENCODE_DISABLE_PROJECT_CONFIG: "1",
    OPENCODE_DISABLE_EXTERNAL_SKILLS: "1",
    OPENCODE_CONFIG_CONTENT: JSON.stringify({
      ...settingsIn(env["OPENCODE_CONFIG_CONTENT"]),
      ...WITHOUT_PROGRAMS,
    }),
  };
}

function settingsIn(content: string | undefined): object {
  if (content === undefined || content.trim() === "") return {};
  try {
    const settings: unknown = JSON.parse(content);
    if (typeof settings === "object" && settings !== null && !Array.isArray(settings)) return settings;
  } catch {
    // Said below.
  }
  throw new RejectedError(
    "INVALID_ARGUMENT",
    "OPENCODE_CONFIG_CONTENT is no object of JSON, beside which `isolated` could put its own settings; put it into a file.",
    {},
  );
}
