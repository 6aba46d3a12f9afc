/**
 * The public surface of `coppice`. Adding a line here is a decision about the API; everything else is closed by the
 * package's `exports`.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { createRuntime } from "./runtime/create-runtime.ts";
export type { OpenPendingOptions, Runtime } from "./runtime/runtime.ts";
export type { RuntimeOptions, TreeOptions } from "./runtime/options.ts";
export type { TreeHandle } from "./runtime/tree-handle.ts";
export type {
  Agent,
  CloseOptions,
  Repeatable,
  PageOptions,
  SendOptions,
  SpawnOptions,
  SpawnRequest,
} from "./runtime/agent.ts";
export type { TreeCounts, TreeSummary } from "./runtime/trees.ts";
export type { Owner } from "./control/live-owner.ts";
export type { SelectionInput } from "./threads/verbs.ts";
export type { Work } from "./runtime/work.ts";
export type {
  ContinueOptions,
  CreateThreadOptions,
  ThreadCommandOptions,
  ForkOptions,
  MergeOptions,
  PlannedFork,
  RestoreOptions,
  SyncOptions,
  ThreadReference,
} from "./runtime/thread-options.ts";
export type { Threads } from "./runtime/threads.ts";
export type {
  CheckpointRange,
  ThreadFilter,
  ThreadPage,
  ThreadReads,
  TranscriptOptions,
} from "./runtime/thread-reads.ts";
export type { Connection, ConnectOptions } from "./runtime/connection.ts";
export type { EventOptions, EventStream, StreamEvent } from "./runtime/event-stream.ts";
export { commandTree, type CommandOptions, type CommandReceipt } from "./runtime/command-tree.ts";
export type {
  AskedRequest,
  AgentSummary,
  Counts,
  ListRequest,
  OwedWork,
  TreeSnapshot,
} from "./control/listing.ts";
export type { InterruptInput, Touched } from "./control/interrupt.ts";
export type { Explanation } from "./control/why.ts";
export type { HostUsage } from "./control/host.ts";
export type { OnBusy } from "./control/messages.ts";

export type { Inspect, SessionInspection } from "./session/lifecycle.ts";

export type { Identified, ThreadOptions } from "./threads/create.ts";
export type { RestoreAnswer, Unfinished, WorkspaceCheckpoint } from "./threads/checkpoints.ts";
export type { ForkedThread } from "./threads/make-fork.ts";
export type { MergedBack } from "./threads/merge-back.ts";
export type { HistoryPage } from "./threads/history.ts";
export type { PreviewedText, StartPreview } from "./threads/preview.ts";
export type { RollbackOptions, RollbackTo, RolledBack } from "./threads/rollback.ts";
export type { ShownThread } from "./threads/show.ts";
export type {
  ProviderCoverage,
  ThreadActivity,
  ThreadDocument,
  ThreadSummary,
} from "./threads/thread-view.ts";
export type { EntryPlace, ThreadTranscript, TranscriptEntry } from "./threads/transcript.ts";
export type { ForkAvailability, NativeObstacle, ReplayObstacle } from "./lineage/fork-availability.ts";
export {
  modelSummariser,
  type Summariser,
  type Summary,
  type SummaryMaterial,
} from "./lineage/handoff/summarise.ts";
export type { ForkPoint, ForkPointName } from "./lineage/fork-points.ts";

export { defineTool, type OwnTool, type ToolDefinition, type ToolRun } from "./tools/define-tool.ts";

export type { ToolHints } from "./protocol/tool.ts";
export type {
  HostCallOptions,
  HostTool,
  HostToolOptions,
  HostToolResult,
  HostTools,
} from "./tools/host-tools.ts";
export { toAiSdkTools, type AiSdkTool } from "./tools/bindings/ai-sdk.ts";
export { answerOpenAICall, toOpenAITools } from "./tools/bindings/openai.ts";
export { answerAnthropicToolUse, toAnthropicTools } from "./tools/bindings/anthropic.ts";
export { answerMcpCall, toMcpTools } from "./tools/bindings/mcp.ts";
export type { MailInjection } from "./tools/bindings/inject-mail.ts";

export { createMemoryStore, type MemoryStore, type MemoryStoreOptions } from "./store/memory.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./store/sqlite.ts";
export type {
  BrokenAgent,
  BrokenRow,
  OpenRow,
  BrokenWork,
  MendableTable,
  Page,
  Store,
  StoreTx,
  StoreView,
} from "./store/port.ts";

export { type ClaudeOptions, createClaudeProvider } from "./providers/claude/claude-provider.ts";
export type { ClaudeApprovals } from "./providers/claude/policy.ts";
export type { ClaudeQuery, ClaudeSdk, ClaudeSessionStore } from "./providers/claude/sdk.ts";
export { type AcpOptions, createAcpProvider } from "./providers/acp/acp-provider.ts";
export type { AcpModes } from "./providers/acp/policy.ts";
export { createOpenCodeProvider, type OpenCodeOptions } from "./providers/opencode/opencode-provider.ts";
export type { OpenCodeApprovals } from "./providers/opencode/policy.ts";
export { type CodexOptions, createCodexProvider } from "./providers/codex/codex-provider.ts";
export type { CodexApprovals } from "./providers/codex/policy.ts";
export {
  createModelProvider,
  type ModelEntry,
  type ModelProviderOptions,
} from "./providers/model/model-provider.ts";
export type { LanguageModel } from "./providers/model/language-model.ts";
export { loadModel } from "./providers/model/load-model.ts";
export {
  scripted,
  type ScriptedOptions,
  type ScriptedProvider,
  type Scripts,
} from "./providers/scripted/provider.ts";
export type {
  ModelInfo,
  NativeAdapter,
  NativeSession,
  OwnLoopAdapter,
  ProviderAdapter,
  ProviderCapabilities,
  ProviderSession,
} from "./providers/port.ts";
export type {
  NativeAnswer,
  NativeEvent,
  NativeItem,
  NativeThread,
  Preamble,
} from "./protocol/native-events.ts";

export { loadRoles, type RoleSet } from "./policy/roles.ts";
export type { Role, RoleFile } from "./policy/role-file.ts";
export { readRoleFolder, type RoleFolder } from "./policy/role-folder.ts";
export type { Prices } from "./policy/budget.ts";
export type { AgentChoice } from "./policy/resolve-config.ts";

export {
  CoppiceError,
  InterruptedError,
  InvariantError,
  RejectedError,
  TransientError,
} from "./protocol/errors.ts";
export { ERROR_CODES, ERROR_TABLE, type ErrorCode } from "./protocol/errors.ts";
export { DEFAULT_LIMITS, type Budgets, type Limits, type LimitsInput } from "./protocol/limits.ts";
export type {
  ArtifactId,
  CheckpointId,
  HandoffId,
  MailId,
  ProviderThreadId,
  RequestId,
  RunId,
  ThreadId,
  TransferId,
  TreeId,
  WorkId,
} from "./protocol/ids.ts";
export type { AgentPath } from "./protocol/agent-path.ts";
export type { AgentConfig, AgentRecord, AgentStatus, Effect, TreeRecord } from "./protocol/agent.ts";
export type { EventType, ProgressEvent, RuntimeEvent } from "./protocol/events.ts";
export type { Json, JsonObject } from "./protocol/json.ts";
export type { MailReceipt, MailRecord } from "./protocol/mail.ts";
export type { Decision } from "./protocol/decision.ts";
export type { RuntimeRequestRecord, WaitRecord } from "./protocol/wait.ts";
export type { ProfileName } from "./protocol/profile.ts";
export type { RunRecord } from "./protocol/run.ts";
export type { Pin, PinSection, SnapshotRecord } from "./protocol/snapshot.ts";
export type {
  ContextReference,
  Continuity,
  ExecutionRef,
  ForkDraft,
  ForkOrigin,
  ForkPolicy,
  ForkPolicyInput,
  HistoryEntry,
  HistoryLevel,
  HistoryState,
  Lineage,
  ProviderSelection,
  RunOutcome,
  ThreadFacts,
} from "./protocol/thread.ts";
export type { TranscriptItem } from "./protocol/transcript.ts";
export type { OrdinalRange } from "./protocol/ordinals.ts";
export type {
  ContextSourcePoint,
  HandoffKind,
  HandoffRecord,
  StalenessSignal,
  TransferRecord,
} from "./protocol/transfer.ts";
export type { Usage, UsageReport } from "./protocol/usage.ts";
export type { ThreadToolsPolicy } from "./protocol/thread-tools.ts";
export type { WorkEnding, WorkOutcome, WorkRecord } from "./protocol/work.ts";
export { stderrLogger, type Logger } from "./platform/logger.ts";
export type { CallOptions } from "./platform/abortable.ts";
export { systemClock, type Clock } from "./platform/clock.ts";
export { gitCapture } from "./platform/workspace/git-capture.ts";
export type {
  Captured,
  CaptureRequest,
  Difference,
  Missing,
  Refused,
  Restored,
  RestoreRequest,
  Within,
  WorkspaceCapture,
} from "./platform/workspace/port.ts";
export type { CaptureBounds } from "./platform/workspace/content.ts";
export type { Random } from "./platform/ids.ts";
export type {
  ProcessEnd,
  ProcessInput,
  ProcessOutput,
  ProcessSpec,
  StartedProcess,
  StartProcess,
} from "./platform/process.ts";
export type { ProcessIdentity, ProvenDead } from "./protocol/process-identity.ts";
