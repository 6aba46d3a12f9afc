/** Captures that are not asked for: a test overrides those that it expects. */
import type { WorkspaceCapture } from "../../src/platform/workspace/port.ts";

const unasked = async (): Promise<never> => Promise.reject(new Error("It is not asked for."));

export const NO_CAPTURE: WorkspaceCapture = {
  available: unasked,
  capture: unasked,
  diff: unasked,
  restore: unasked,
  remove: unasked,
};
