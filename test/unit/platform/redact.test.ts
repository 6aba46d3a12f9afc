/** SEC-3's filter: what it takes, what it leaves, and that it is linear. */
import { describe, expect, test } from "vitest";
import { canonicalJson } from "../../../src/platform/canonical-json.ts";
import { createRedactor, redact, redactJson } from "../../../src/platform/redact.ts";

const letters = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5hJ7k";

describe("redaction", () => {
  test.for([
    ["a key of a model provider", `use sk-proj-${letters} now`, "use *** now"],
    ["a token of GitHub", `ghp_${letters.slice(0, 36)}`, "***"],
    ["a fine-grained one", `github_pat_${letters}`, "***"],
    ["a key of AWS", "id AKIAIOSFODNN7EXAMPLE.", "id ***."],
    ["a token of Slack", "xoxb-1234567890-abcdef", "***"],
    ["a token of ours", `tok_${letters.slice(0, 21)}`, "***"],
    ["a web token", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4", "***"],
    ["a bearer", "-H 'Authorization: Bearer abc.def.ghi-123'", "-H 'Authorization: ***'"],
    ["a short header", "Authorization: Basic dXNlcjpw\nHost: a", "Authorization: ***\nHost: a"],
    ["a bearer in prose", "sent bearer abcdef0123456789 to it", "sent bearer *** to it"],
    ["a password", "password=hunter2 user=me", "password=*** user=me"],
    ["a quoted one with blanks", 'PASSWORD: "two words" next', 'PASSWORD: "***" next'],
    ["a quoted one with a quote in it", String.raw`{"password":"a\"b","x":1}`, `{"password":"***","x":1}`],
    [
      "JSON in JSON",
      String.raw`"{\"db_password\": \"a b c\", \"n\": 1}"`,
      String.raw`"{\"db_password\": \"***\", \"n\": 1}"`,
    ],
    ["a variable", `export OPENAI_API_KEY=${letters}`, "export OPENAI_API_KEY=***"],
    ["a query", "https://a.test/?token=abcdefgh12&x=1", "https://a.test/?token=***&x=1"],
    ["a URL with credentials", "git clone https://me:p@ss@host.test/r", "git clone https://***@host.test/r"],
    ["a cookie", "Cookie: a=1; b=2", "Cookie: ***"],
    [
      "a private key",
      "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- b",
      "a *** b",
    ],
    ["half a private key", "a -----BEGIN PRIVATE KEY-----\nMIIE", "a ***"],
  ] as const)("takes %s", ([, text, expected]) => {
    expect(redact(text)).toBe(expected);
    expect(redact(expected)).toBe(expected);
  });

  test.for([
    "the password is written down elsewhere",
    "tokens: 1200 of 5000",
    "https://host.test:8080/path?x=1",
    "task-sk-1 is done, ghp_ is a prefix",
    "-----BEGIN CERTIFICATE-----",
    "a secret, a token",
  ])("leaves '%s'", (text) => {
    expect(redact(text)).toBe(text);
  });

  test("takes secrets it is told of, the longest first", () => {
    const filter = createRedactor(["swordfish", "swordfish-and-more", "ab", ""]);
    expect(filter("swordfish-and-more swordfish about")).toBe("*** *** about");
  });

  test("goes through JSON, keys that name a secret included", () => {
    expect(redactJson({ apiKey: "short", list: [`sk-${letters}`, 1, null], note: "fine", token: 5 })).toEqual(
      {
        apiKey: "***",
        list: ["***", 1, null],
        note: "fine",
        token: 5,
      },
    );
  });

  test.for([
    ["prefixes of a web token", "eyJaaaaaaaaa"],
    ["web tokens that never end", "eyJaaaaaaaaa."],
    ["starts of private keys", "-----BEGIN PRIVATE KEY-----"],
    ["starts and ends that do not match", "-----BEGIN PRIVATE KEY----------END "],
    ["starts of URLs", "://a:"],
    ["credentials without a host", "://a:b:c"],
    ["labels", "password"],
    ["labels with open quotes", 'password="'],
    ["labels with escaped quotes", String.raw`password=\"`],
    ["labels and blanks", "password        "],
    ["headers", "authorization: "],
    ["backslashes", "\\"],
    ["bearers", "bearer        "],
    ["letters", "a"],
  ] as const)("reads a megabyte of %s in steps that do not grow with it", ([, piece]) => {
    // Quadratic work on a megabyte takes minutes and meets the test's own limit; linear work takes milliseconds.
    const text = piece.repeat(Math.ceil(1_048_576 / piece.length));
    expect(redact(text).length).toBeLessThanOrEqual(text.length);
  });
});

describe("canonical JSON", () => {
  test("sorts keys by code unit and leaves out what is undefined", () => {
    expect(canonicalJson({ b: 1, a: [true, null, "ä"], Z: undefined, É: 2, z: 3, "10": 4, "9": 5 })).toBe(
      '{"10":4,"9":5,"a":[true,null,"ä"],"b":1,"z":3,"É":2}',
    );
  });

  test("refuses what JSON cannot hold", () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, () => 0, 1n, [undefined]]) {
      expect(() => canonicalJson(value)).toThrow(/canonical JSON cannot hold/);
    }
  });
});
