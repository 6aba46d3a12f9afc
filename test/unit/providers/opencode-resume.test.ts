/** Rules of a conversation of OpenCode's that is resumed: they can only be added to, and hold as those of a new one would. */
import { describe, expect, onTestFinished, test } from "vitest";
import { type Effect, EFFECTS } from "../../../src/protocol/agent.ts";
import { type OpenCodeApprovals, type OpenCodeRule } from "../../../src/providers/opencode/policy.ts";
import { type FakeOpenCode, fakeOpenCode } from "../../support/opencode.ts";
import { failure, INPUT } from "../../support/opencode-session.ts";

const KINDS = ["never", "on-request", "untrusted"] as const;
const TOOLS = ["read", "edit", "bash", "webfetch", "task", "custom", "coppice_other_look"];

interface Setup {
  readonly approvals: OpenCodeApprovals;
  readonly effects: readonly Effect[];
}

/** What a conversation's rules say of each tool; the last that fits holds. */
const said = (rules: readonly OpenCodeRule[]) =>
  TOOLS.map(
    (tool) =>
      rules.findLast(({ permission }) =>
        permission.endsWith("*") ? tool.startsWith(permission.slice(0, -1)) : tool === permission,
      )?.action ?? "as set",
  );

const openWith = async (server: FakeOpenCode, { approvals, effects }: Setup) => {
  const session = await server
    .adapter({}, { approvals, isolated: effects !== EFFECTS })
    .openSession({ ...INPUT, effects });
  onTestFinished(() => session.close());
  return session;
};

/** Rules that the server has been told for its only conversation, in their order. */
const told = (server: FakeOpenCode): OpenCodeRule[] =>
  server
    .asked()
    .filter(({ request }) => request === "POST /session" || request === "PATCH /session/:id")
    .flatMap(({ body }) => body.permission as OpenCodeRule[]);

const made = async (setup: Setup) => {
  const server = fakeOpenCode();
  const session = await openWith(server, setup);
  const { ref } = await session.ensureThread({ model: null, effort: null });
  await session.close();
  return { server, ref };
};

const RESTRICTED: Setup = { approvals: "never", effects: ["read"] };
const all = (approvals: OpenCodeApprovals): Setup => ({ approvals, effects: EFFECTS });
const SETUPS = [...KINDS.map(all), RESTRICTED];
const PAIRS = SETUPS.flatMap((before) => SETUPS.map((after) => ({ before, after })));

describe("a conversation that is resumed", { timeout: 60_000 }, () => {
  test.for(PAIRS)(
    "POL-2 asks and allows what a new one would, or is not resumed ($before.approvals $before.effects, then $after.approvals $after.effects)",
    async ({ before, after }) => {
      const [{ server, ref }, fresh] = await Promise.all([made(before), made(after)]);
      const length = told(server).length;
      const session = await openWith(server, after);
      // OpenCode's own settings hold where no rule does, and none can be taken back.
      if (after.approvals === "on-request" && before !== after) {
        expect(await failure(session.resumeThread(ref))).toMatchObject({ code: "PROVIDER_RESUME_FAILED" });
        expect(told(server)).toHaveLength(length);
        return;
      }
      await session.resumeThread(ref);
      expect(said(told(server))).toEqual(said(told(fresh.server)));
      if (before === after) expect(told(server)).toHaveLength(length);
    },
  );

  test("POL-2 rules that were added once more do not hide those before them", async () => {
    const { server, ref } = await made(all("never"));
    const untrusted = await openWith(server, all("untrusted"));
    await untrusted.resumeThread(ref);
    await untrusted.close();
    const asking = said(told(server));
    const again = await openWith(server, all("never"));
    await again.resumeThread(ref);
    expect([asking[2], said(told(server))[2]]).toEqual(["ask", "allow"]);
  });
});
