/**
 * `coppice/testing`: what a program needs to test its own orchestration. Scripted agents, a clock that only moves when
 * told, stores that fail on purpose, a seeded scheduler that owns every interleaving, and the suites that our own adapters
 * pass. It depends on no test runner.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { scripted, type ScriptedProvider } from "./providers/scripted/provider.ts";
export * as script from "./providers/scripted/script.ts";
export type { ScriptContext } from "./providers/scripted/context.ts";
export {
  exclusiveFork,
  headFork,
  itemFork,
  mute,
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "./providers/scripted/native/provider.ts";
export { changeFile, nativeChild, ownTool } from "./providers/scripted/native/words.ts";
export { createNativeConversations } from "./providers/scripted/native/conversations.ts";
export { crashAfter, hang, refuse, unauthenticated } from "./providers/scripted/native/faults.ts";
export { createGates } from "./providers/scripted/gates.ts";
export { createMemoryStore, type MemoryStore } from "./store/memory.ts";
export { seededRandom } from "./platform/ids.ts";

export { turn, virtualClock, type VirtualClock } from "./testing/virtual-clock.ts";
export { seededScheduler } from "./testing/scheduler.ts";
export { crashPoints } from "./testing/scheduler-crash.ts";
export { shrinkTrace } from "./testing/scheduler-shrink.ts";
export {
  createFaultyStore,
  CrashSignal,
  faultsAt,
  type FaultPlan,
  type FaultyStore,
} from "./testing/faulty-store.ts";
export { waitUntil } from "./testing/wait-until.ts";
export { assertAllConsumed } from "./testing/consumed.ts";
export { invariants, type Invariants } from "./testing/invariants.ts";
export type { Violation } from "./testing/invariants-picture.ts";

export { providerConformance } from "./testing/provider-conformance.ts";
export {
  type NativeBehaviour,
  nativeProviderConformance,
  type NativeSubject,
} from "./testing/provider-conformance-native.ts";
export { storeConformance } from "./testing/store-conformance.ts";
