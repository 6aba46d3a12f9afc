import { expect, test } from "vitest";
import { mailboxRoom, resultRoom } from "../../../src/mailbox/capacity.ts";
import { boundToReservation, buildContent } from "../../../src/mailbox/content.ts";
import { sha256 } from "../../../src/platform/digest.ts";
import { byteLength } from "../../../src/platform/text.ts";

const KIB = 1024;
const options = {
  artifactId: () => "art_1" as const,
  inlineBytes: 64 * KIB,
  headBytes: 4 * KIB,
  tailBytes: 2 * KIB,
};

test("a payload up to the size stays whole", () => {
  const text = "a".repeat(64 * KIB);
  expect(buildContent(text, options)).toEqual({
    content: { text, bytes: 64 * KIB, artifact: null },
    artifact: null,
  });
});

test("a payload above it becomes head, tail, size, digest and artifact", () => {
  const text = `${"h".repeat(40 * KIB)}${"t".repeat(40 * KIB)}`;
  const { content, artifact } = buildContent(text, options);
  expect(artifact).toEqual({ id: "art_1", bytes: 80 * KIB, digest: sha256(text), text });
  expect(content.artifact).toEqual({ id: "art_1", bytes: 80 * KIB, digest: sha256(text) });
  expect(content.text).toBe(`${"h".repeat(4 * KIB)}\n[${74 * KIB} bytes left out]\n${"t".repeat(2 * KIB)}`);
  expect(content.bytes).toBe(byteLength(content.text));
});

test("bytes are counted, and characters are never cut", () => {
  const { content } = buildContent("€".repeat(30_000), { ...options, headBytes: 100, tailBytes: 100 });
  expect(content.text.isWellFormed()).toBe(true);
  expect(content.text).toBe(`${"€".repeat(33)}\n[${90_000 - 198} bytes left out]\n${"€".repeat(33)}`);
});

test("a result bound to its reservation fits into it, header included", () => {
  const inlineBytes = boundToReservation(8 * KIB);
  expect(inlineBytes).toBe(7 * KIB);
  const { content, artifact } = buildContent("x".repeat(20 * KIB), { ...options, inlineBytes });
  expect(content.bytes).toBeLessThanOrEqual(inlineBytes);
  expect(artifact?.bytes).toBe(20 * KIB);
});

test.for([0, 1, 10, 40, 100, 1_000])("a stub never has more than the %d bytes it is given", (inlineBytes) => {
  const { content } = buildContent("y".repeat(100_000), { ...options, inlineBytes });
  expect(content.bytes).toBeLessThanOrEqual(inlineBytes);
  expect(content.bytes).toBe(byteLength(content.text));
});

const mailbox = {
  threadId: "thread_worker" as const,
  lastSeq: 8,
  unread: 5,
  unreadBytes: 500,
  triggers: 0,
  oldestUnreadAt: 42,
  reservedMessages: 3,
  reservedBytes: 300,
};

test("a mailbox fits up to its limit, unread and reserved together", () => {
  const limit = { messages: 10, bytes: 1_000 };
  expect(mailboxRoom(mailbox, limit, { messages: 2, bytes: 200 }).fits).toBe(true);
  expect(mailboxRoom(mailbox, limit, { messages: 3, bytes: 0 }).fits).toBe(false);
  expect(mailboxRoom(mailbox, limit, { messages: 1, bytes: 201 }).fits).toBe(false);
});

test("a refusal tells limit, use and when to come back", () => {
  const { left, detail, details } = mailboxRoom(
    mailbox,
    { messages: 8, bytes: 700 },
    { messages: 1, bytes: 1 },
  );
  expect(left).toEqual({ messages: 0, bytes: 0 });
  expect(detail).toBe("8 of 8 messages and 800 of 700 bytes are in use, 3 messages of them kept for results");
  expect(details).toEqual({
    limit: { messages: 8, bytes: 700 },
    use: { unread: 5, unreadBytes: 500, reserved: 3, reservedBytes: 300 },
    wanted: { messages: 1, bytes: 1 },
    oldestUnreadAt: 42,
    retry: "when_read",
  });
  expect(
    mailboxRoom({ ...mailbox, unread: 0 }, { messages: 3, bytes: 0 }, { messages: 1, bytes: 0 }).details[
      "retry"
    ],
  ).toBe("when_a_work_ends");
});

test("a result may use its reservation at least, and what is free besides", () => {
  expect(resultRoom(mailbox, { messages: 10, bytes: 1_000 }, 100)).toBe(300);
  expect(resultRoom(mailbox, { messages: 10, bytes: 800 }, 100)).toBe(100);
  expect(resultRoom(mailbox, { messages: 10, bytes: 100 }, 100)).toBe(100);
});
