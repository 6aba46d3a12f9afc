import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  CoppiceError,
  ERROR_CODES,
  ERROR_TABLE,
  type ErrorCode,
  InterruptedError,
  InvariantError,
  RejectedError,
  TransientError,
} from "../../src/protocol/errors.ts";
import { gate, say, together } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";

/** Codes that the runtime's contract names; the rest of the list belongs to threads, providers and the runtime itself. */
const GUARANTEED =
  `AGENT_NOT_FOUND AGENT_EXISTS AGENT_CLOSED AGENT_LIMIT_REACHED QUEUE_FULL MAILBOX_FULL BUDGET_EXHAUSTED
  LIMIT_REACHED CAUSAL_LIMIT WAIT_CYCLE LOAD_FAILED NOT_OWNER FENCED STORE_BUSY STORE_FULL STORE_IO STORE_CORRUPT
  STORE_VERSION TOKEN_INVALID INVALID_ARGUMENT`.split(/\s+/);

/** Codes of threads and lineage. They stand in the same list, and none of them means what a code above means. */
const LINEAGE =
  `AUTHORITY_ESCALATION_DENIED COMMAND_ID_CONFLICT CONTEXT_UNSUPPORTED EXTERNAL_SERVER_URL_INVALID
  FORK_NATIVE_FAILED FORK_NATIVE_INDETERMINATE FORK_NATIVE_UNSUPPORTED FORK_REPLAY_DISABLED FORK_SEED_EMPTY
  FORK_UNCOMMITTED_MESSAGE HANDOFF_BUDGET_TOO_SMALL HANDOFF_GENERATION_FAILED INVALID_REQUEST LINEAGE_CYCLE
  LINEAGE_DEPTH_EXCEEDED MERGE_BACK_NOT_A_FORK MERGE_BACK_SOURCE_UNSTABLE PROVIDER_CAPABILITY_MISSING
  PROVIDER_RESUME_FAILED PROVIDER_UNAVAILABLE PROVIDER_WRITER_BUSY REQUEST_NOT_RESUMABLE RESUME_MISSING_ENCRYPTION_KEY
  ROLLBACK_ACTIVE_RUN ROLLBACK_NATIVE_UNSUPPORTED ROLLBACK_PROVIDER_CHANGED ROLLBACK_TARGET_INVALID
  ROLLBACK_TURN_UNAVAILABLE SOURCE_POINT_NOT_FOUND SOURCE_POINT_ROLLED_BACK SOURCE_POINT_UNSTABLE
  SUBAGENT_PARENT_NOT_ACTIVE SUBAGENT_TASK_NOT_FOUND THREAD_ARCHIVED THREAD_BUSY THREAD_CLOSED THREAD_CONTEXT_TAMPERED
  THREAD_EXECUTION_BINDING_MISMATCH THREAD_EXISTS THREAD_INVARIANT_VIOLATION THREAD_LOCK_TIMEOUT THREAD_NOT_FOUND
  THREAD_REVISION_CONFLICT THREAD_STORE_CORRUPT TRANSFER_SOURCE_UNRESOLVABLE TRANSFER_STATE_INVALID`.split(
    /\s+/,
  );

const classes = {
  rejected: RejectedError,
  transient: TransientError,
  interrupted: InterruptedError,
  invariant: InvariantError,
} as const;

function make(code: ErrorCode, text: string): CoppiceError {
  const { family } = ERROR_TABLE[code];
  if (family === "invariant") return new InvariantError(text, { secret: text }, code as "INVARIANT_BROKEN");
  const Class = classes[family] as new (code: ErrorCode, message: string, details: object) => CoppiceError;
  return new Class(code, text, { secret: text });
}

describe("the list of errors", () => {
  test("ERR-1 holds every code that is guaranteed, none of which is a code of lineage", () => {
    expect(GUARANTEED.filter((code) => !ERROR_CODES.includes(code as ErrorCode))).toEqual([]);
    expect(GUARANTEED.filter((code) => LINEAGE.includes(code))).toEqual([]);
    expect(new Set(ERROR_CODES).size).toBe(ERROR_CODES.length);
  });

  test.for(ERROR_CODES)(
    "ERR-1 %s says whether to repeat, and has a text for models and one for operators",
    (code) => {
      const { family, retryable, meaning } = ERROR_TABLE[code];
      const error = make(code, "the file /srv/private could not be read; ask somebody else.");
      expect(error).toBeInstanceOf(classes[family]);
      expect(CoppiceError.is(error)).toBe(true);
      expect(error).toMatchObject({
        code,
        family,
        retryable,
        message: expect.stringContaining("/srv/private"),
      });
      expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code, retryable, message: error.message });
      expect(meaning).toMatch(/^[A-Z`][^\n]{15,120}\.$/);
      expect(error.forModel()).toMatch(new RegExp(`^${code}: .{10,}`));
      const worded = family === "rejected" || family === "interrupted";
      expect(error.forModel().includes("/srv/private")).toBe(worded);
      expect(retryable).toBe(family === "transient" || (family === "rejected" && retryable));
    },
  );

  test("ERR-1 docs/errors.md is the list, both ways", () => {
    const text = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
    const rows = text.split("\n").flatMap((line) => {
      const [, code, family, repeat, meaning] =
        /^\| `(\w+)` \| (\w+) \| (yes|no) \| (.+) \|$/.exec(line) ?? [];
      return code === undefined ? [] : [{ code, family, retryable: repeat === "yes", meaning }];
    });
    expect(rows).toEqual(Object.entries(ERROR_TABLE).map(([code, entry]) => ({ code, ...entry })));
  });
});

describe.each(STORES)("errors of the store on %s", (store) => {
  test("ERR-1 a full mailbox surfaces as MAILBOX_FULL, with limit, use and what to do", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [together(gate("busy"), say("done"))] },
      tree: { limits: { mailboxMessages: 2 } },
    });
    for (const text of ["one", "two"]) await h.tree.root.tell(text);
    await expect(h.tree.root.tell("three")).rejects.toMatchObject({
      code: "MAILBOX_FULL",
      retryable: true,
      message: expect.stringContaining("It is idle and reads when a request starts its next run"),
      details: { path: "/root" },
    });
    expect((await h.tree.root.summary()).unread).toBe(2);
  });

  test("ERR-1 a lost lease surfaces as FENCED, and nothing is stored", async () => {
    await using h = await harness({ store, scripts: { "/root": [say("done")] } });
    const before = h.tree;
    await h.store.claim({
      treeId: h.tree.id,
      token: "another",
      owner: { host: "test", bootId: "boot", pid: 99, startedAt: "1" },
      leaseMs: 10_000,
      provenDead: () => true,
    });
    await expect(before.root.tell("late")).rejects.toMatchObject({ code: "FENCED", retryable: false });
    expect(before.owned).toBe(false);
    await expect(before.root.tell("later")).rejects.toMatchObject({ code: "FENCED" });
    expect(await h.store.read((view) => view.mailbox(before.id).lastSeq)).toBe(0);
  });
});
