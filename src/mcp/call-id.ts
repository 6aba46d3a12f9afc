/**
 * What the client calls a call, from `_meta` of its request: the id that the model's vendor gave it. Calls are told apart by it
 * for as long as the tree lives (SPN-6), so that `progressToken` is none: clients count it anew with each connection.
 */
const NAMES = ["callId", "claudecode/toolUseId"] as const;

export function callIdOf(meta: Readonly<Record<string, unknown>> | undefined): string | undefined {
  for (const name of NAMES) {
    const value = meta?.[name];
    if (typeof value === "string" && value !== "") return `${name}:${value}`;
  }
  return undefined;
}
