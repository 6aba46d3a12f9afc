import { describe, expect, test } from "vitest";
import type { ContextChannel } from "../../../src/protocol/provider-capabilities.ts";
import type { ItemBody } from "../../../src/protocol/transcript.ts";
import { turnWords } from "../../../src/session/native-input.ts";

const user: ItemBody = { kind: "user", text: "do it", mailId: null, workId: null, inherited: false };
const mail: ItemBody = {
  kind: "mail",
  mailId: "msg_a",
  mail: "message",
  author: "/root/w",
  recipient: "/root",
  workId: null,
  resultOf: null,
  text: "header\nfrom a worker",
};
const handoff: ItemBody = { kind: "context", topic: "handoff", text: "what went before" };
const note: ItemBody = { kind: "context", topic: "children", text: "a child" };
const all: readonly ContextChannel[] = ["system", "developer", "history_items", "synthetic_user"];

describe("the words of a turn", () => {
  test("C6.10 a handoff takes the best channel that there is, from system to synthetic user text", () => {
    for (const [at, channel] of all.entries()) {
      const { preambles, userMessage } = turnWords([handoff, user], all.slice(at).toReversed());
      expect(preambles).toEqual([{ kind: "handoff", channel, text: "what went before" }]);
      expect(userMessage).toBe("do it");
    }
  });

  test("C4.9 a provider without a channel is refused a handoff, and takes notes and mail as words", () => {
    expect(() => turnWords([handoff, user], [])).toThrow(
      expect.objectContaining({ code: "CONTEXT_UNSUPPORTED" }),
    );
    expect(turnWords([note, mail, user], [])).toEqual({
      preambles: [],
      userMessage: "[runtime: children]\na child\n\nheader\nfrom a worker\n\ndo it",
    });
  });

  test("MBX-11 mail gets no channel above the user's words", () => {
    const channelOf = (channels: readonly ContextChannel[]) =>
      turnWords([mail, user], channels).preambles.map(({ channel }) => channel);
    expect(channelOf(all)).toEqual(["history_items"]);
    expect(channelOf(["synthetic_user"])).toEqual(["synthetic_user"]);
    expect(channelOf(["system", "developer"])).toEqual([]);
  });

  test("C4.11 without words of the user the mail is what the turn is for, and without mail the note", () => {
    expect(turnWords([note, mail], all).userMessage).toBe("header\nfrom a worker");
    expect(turnWords([note], all)).toEqual({ userMessage: "[runtime: children]\na child", preambles: [] });
    expect(turnWords([handoff], all).userMessage).not.toBe("");
  });
});
