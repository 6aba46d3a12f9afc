/**
 * `coppice/testing`: what a program needs to test its own orchestration. Scripted agents, a clock that only moves when
 * told, stores that fail on purpose, a seeded scheduler that owns every interleaving, and the suites that our own adapters
 * pass. It depends on no test runner.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { scripted, type ScriptedProvider, type UnconsumedStep } from "./providers/scripted/provider.ts";
export * as script from "./providers/scripted/script.ts";
export type {
  Act,
  FailOptions,
  FinishReason,
  RepeatedStep,
  Script,
  ScriptedInput,
  ScriptedStep,
  ScriptedText,
  ScriptEntry,
  StepFunction,
} from "./providers/scripted/script.ts";
export type { ScriptContext } from "./providers/scripted/context.ts";
export type { PromptMessage, StepRequest } from "./protocol/provider-events.ts";
export type { AskedAbout } from "./protocol/wait.ts";
export {
  exclusiveFork,
  headFork,
  itemFork,
  mute,
  noFork,
  type ScriptedNativeOptions,
  type ScriptedNativeProvider,
  turnFork,
} from "./providers/scripted/native/provider.ts";
export { changeFile, nativeChild, ownTool } from "./providers/scripted/native/words.ts";
export type { TurnForkOptions } from "./providers/scripted/native/rows.ts";
export type { WireCall } from "./providers/scripted/native/wire.ts";
export {
  createNativeConversations,
  type NativeConversations,
} from "./providers/scripted/native/conversations.ts";
export {
  crashAfter,
  hang,
  type NativeCall,
  type NativeFault,
  type NativeMethod,
  refuse,
  unauthenticated,
} from "./providers/scripted/native/faults.ts";
export { createGates, type Gates } from "./providers/scripted/gates.ts";
export { createMemoryStore, type MemoryStore } from "./store/memory.ts";
export { seededRandom } from "./platform/ids.ts";

export {
  type PendingTimer,
  turn,
  virtualClock,
  type VirtualClock,
  type VirtualClockOptions,
} from "./testing/virtual-clock.ts";
export { seededScheduler, type SchedulerOptions, type SeededScheduler } from "./testing/scheduler.ts";
export { crashPoints, type CrashPoint, type CrashPoints } from "./testing/scheduler-crash.ts";
export { shrinkTrace } from "./testing/scheduler-shrink.ts";
export {
  createFaultyStore,
  CrashSignal,
  type Fault,
  faultsAt,
  type FaultPlan,
  type FaultyStore,
  type WriteKind,
} from "./testing/faulty-store.ts";
export { waitUntil, type WaitUntilOptions } from "./testing/wait-until.ts";
export { assertAllConsumed, type Consumable } from "./testing/consumed.ts";
export { invariants, type Invariants } from "./testing/invariants.ts";
export type { Violation } from "./testing/invariants-picture.ts";

export {
  type ConformanceCheck,
  type ConformanceSubject,
  providerConformance,
} from "./testing/provider-conformance.ts";
export {
  type NativeBehaviour,
  nativeProviderConformance,
  type NativeSubject,
} from "./testing/provider-conformance-native.ts";
export { storeConformance, type StoreConformance } from "./testing/store-conformance.ts";
