/**
 * Permits that somebody else holds: another tree of the runtime takes the only one there is, so that what is asked of the
 * harness' tree is queued for as long as the test likes. Wants `runtime: ONE_PERMIT`.
 */
import { gate, say } from "../../src/providers/scripted/script.ts";
import type { Harness } from "./harness.ts";

const HOLDER = "holder";

/** One running child in the whole runtime. */
export const ONE_PERMIT = { limits: { runningTotal: 1 } } as const;

/** Resolves when the only permit is held, by a child of another tree that ends when the gate `holder` is opened. */
export async function occupyPermits(h: Harness): Promise<void> {
  h.provider.append(`/root/${HOLDER}`, gate(HOLDER), say("done"));
  const other = await h.runtime.openTree();
  await other.root.spawn(HOLDER, "hold the permit");
  await h.provider.gates.arrived(HOLDER);
}
