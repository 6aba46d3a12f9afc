/** SEC-3 for text that comes in pieces: however it is split, no secret passes, and nothing is held back for long. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRedactor } from "../../../src/platform/redact.ts";
import { RedactedStream } from "../../../src/platform/redact-stream.ts";

const letters = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5hJ7k";
const KNOWN = ["swordfish", "swordfish-and-more", "two words\nand a line", "aaaa"];

function shownOf(pieces: readonly string[], secrets: readonly string[] = KNOWN): readonly string[] {
  const stream = new RedactedStream(secrets);
  return [...pieces.map((piece) => stream.push(piece)), stream.end()];
}

const SECRETS = [
  ["a secret known by value", "it is swordfish-and-more, I said", "swordfish-and-more"],
  ["one over two lines", "it is two words\nand a line, I said", "and a line"],
  ["a key of a model provider", `use sk-proj-${letters} now`, letters],
  ["a token of GitHub", `(ghp_${letters.slice(0, 36)})`, letters.slice(0, 36)],
  ["a web token", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4 and", "SflKxwRJSMeKKF2QT4"],
  ["a header", "Authorization: Basic dXNlcjpw and more\nHost: a", "dXNlcjpw"],
  ["a bearer", "sent bearer   abcdef0123456789+/= to it", "abcdef0123456789"],
  ["a password", "the password = hunter2, user=me", "hunter2"],
  ["a quoted one with blanks", 'PASSWORD :  "two secret words" next', "secret words"],
  ["one on the next line", "password:\n  'two secret words' next", "secret words"],
  ["JSON in JSON", String.raw`"{\"db_password\": \"a b c d\", \"n\": 1}"`, "a b c d"],
  ["a variable", `export MY_OWN_OPENAI_API_KEY=${letters}/${letters} && run`, letters],
  ["credentials in a URL", "clone https://me:p@ss@host.test/r now", "p@ss"],
  ["a private key", "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- b", "MIIE"],
] as const;

describe("redaction of a stream", () => {
  test.for(SECRETS)("SEC-3 %s does not pass, split in every position", ([, text, secret]) => {
    const whole = createRedactor(KNOWN)(text);
    expect(whole).not.toContain(secret);
    for (let at = 0; at <= text.length; at += 1)
      expect(shownOf([text.slice(0, at), text.slice(at)]).join("")).toBe(whole);
    expect(shownOf(Array.from(text)).join("")).toBe(whole);
    // What was shown by any time is a beginning of it, so that nothing of the secret was there in between.
    let shown = "";
    for (const piece of shownOf(Array.from(text))) expect(whole.startsWith((shown += piece))).toBe(true);
  });

  test("SEC-3 in whatever pieces a text comes, what is shown is what the filter makes of the whole", () => {
    const fragments = [
      "password",
      "pass",
      "token",
      "secret",
      "access_key",
      "_id",
      "Authorization",
      "cookie",
      "bearer",
      "b",

      ": ",
      "=",
      " = ",
      '"',
      "'",
      "\\",
      '\\"',
      " ",
      "  ",
      "\n",
      ",",
      ";",
      "}",
      "x",
      "-",
      "_",
      ".",
      "@",
      "/",
      "://",

      "a:b@c",
      "hunter2",
      "sk-",
      "ghp_",
      "tok_",
      "eyJ",
      letters,
      "aa",
      "aaa",
      "aaaa",
      "swordfish",
      "sword",
      "two words",
      "\nand a",
      " line",
      "-----",
      "-----BEGIN ",
      "PRIVATE KEY",
      "-----END ",
      "ä",
      "日本",
    ];
    const pieces = fc.array(fc.array(fc.constantFrom(...fragments), { maxLength: 4 }), { maxLength: 10 });
    fc.assert(
      fc.property(pieces, fc.array(fc.nat(200), { maxLength: 8 }), (parts, cuts) => {
        const text = parts.flat().join("");
        const at = [0, ...cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b), text.length];
        const split = at.slice(1).map((to, index) => text.slice(at[index], to));
        expect(shownOf(split).join("")).toBe(createRedactor(KNOWN)(text));
      }),
      { numRuns: 3000 },
    );
  });

  test("plain text is shown as it comes, but for the word that is not over", () => {
    expect(shownOf(["One word ", "after ano", "ther, and\nlines. ", "日本語です", "."])).toEqual([
      "One word ",
      "after ",
      "another, and\nlines. ",
      "日本語です",
      "",
      ".",
    ]);
  });

  test.for([
    ["a value that does not end", 'password="', "v ", "\nafter", "\nafter"],
    ["a value on the line after its label", "password:\n'", "v ", "\nafter", "\nafter"],
    ["a word that does not end", "", "w", " after", " after"],
    ["a bearer that does not end", "bearer ", "w=", " after", " after"],
    [
      "a key that does not end",
      "-----BEGIN PRIVATE KEY-----\n",
      "k\n",
      "-----END PRIVATE KEY----- after",
      " after",
    ],
  ] as const)(
    "SEC-3 %s is held back within bounds, and then taken for a secret",
    ([, start, more, end, after]) => {
      const stream = new RedactedStream([]);
      let shown = stream.push(start);
      for (let times = 0; times < 20_000; times += 1) shown += stream.push(more);
      expect(shown).toBe("***");
      for (const piece of Array.from(end)) shown += stream.push(piece);
      expect(shown + stream.end()).toBe(`***${after}`);
    },
  );

  test("a stream that has ended is as new", () => {
    const stream = new RedactedStream([]);
    expect(stream.push("password=hun")).toBe("");
    expect(stream.end()).toBe("password=***");
    expect([stream.push("ter2 is left "), stream.end()]).toEqual(["ter2 is left ", ""]);
  });

  test.for(["a", "password", 'password="', "bearer ", "://a:", "-----BEGIN ", "aa", " ", "eyJaaaaaaaaa."])(
    "reads a megabyte of '%s' at once, and in pieces, in steps that do not grow with it",
    (piece) => {
      // Quadratic work on a megabyte takes minutes and meets the test's own limit.
      const text = piece.repeat(Math.ceil(1_048_576 / piece.length));
      shownOf([text]);
      const pieces = Array.from({ length: 1024 }, (_, index) => text.slice(index * 1024, (index + 1) * 1024));
      shownOf(pieces);
    },
  );
});
