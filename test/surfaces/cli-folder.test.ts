import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Folder } from "../../src/cli/demo/folder.ts";
import { Place } from "../support/cli.ts";

const place = new Place();
const signal = new AbortController().signal;
let folder: Folder;

beforeAll(() => {
  writeFileSync(join(place.path, "outside.txt"), "not to be seen");
  mkdirSync(join(place.path, "beside"));
  writeFileSync(join(place.path, "beside", "inner.txt"), "not to be seen");
  symlinkSync(join(place.path, "outside.txt"), join(place.dir, "link.txt"));
  symlinkSync(join(place.path, "beside"), join(place.dir, "linked"));
  symlinkSync("src/short.ts", join(place.dir, "inside.ts"));
  place.write(".env", "KEY=1");
  place.write(".git/config", "secret");
  place.write("node_modules/one/index.js", "x");
  place.write("picture.bin", "a\0b");
  folder = new Folder(place.dir);
});

afterAll(() => place[Symbol.dispose]());

test.for([
  ["..", "leads out of the folder"],
  ["../outside.txt", "leads out of the folder"],
  ["src/../../outside.txt", "leads out of the folder"],
  ["/etc/hostname", "is absolute"],
  ["link.txt", "is a link that leads out of the folder"],
  ["linked/inner.txt", "is a link that leads out of the folder"],
  ["linked", "is a link that leads out of the folder"],
  [".env", "is hidden"],
  [".git/config", "is hidden"],
  ["src/.hidden/x", "is hidden"],
  ["nothing.txt", "does not exist"],
  ["src", "is no file"],
  ["a\0b", "is no path"],
] as const)("reading %j is refused: %s", async ([path, why]) => {
  await expect(folder.read(path)).rejects.toThrow(why);
});

test.for(["..", "/", "linked", ".git", "README.md"])("listing and walking %j is refused", async (path) => {
  await expect(folder.list(path)).rejects.toThrow(/`/);
  await expect(folder.walk(path, signal)).rejects.toThrow(/`/);
});

test("a link that stays inside is read, and what is not text is told from text", async () => {
  expect(await folder.read("inside.ts")).toBe("export const beta = 1;\n");
  expect(await folder.read("picture.bin")).toBeNull();
});

test("a list shows links as links; a walk follows none and leaves out what is hidden or installed", async () => {
  const kinds = Object.fromEntries((await folder.list(".")).map((entry) => [entry.name, entry.kind]));
  expect(kinds).toMatchObject({ "link.txt": "link", linked: "link", src: "folder", "README.md": "file" });
  expect(Object.keys(kinds)).not.toContain(".env");
  expect(Object.keys(kinds)).not.toContain("node_modules");
  const found = (await folder.walk(".", signal)).map((file) => file.path);
  expect(found).toEqual([
    "NOTES.md",
    "README.md",
    "docs/guide.md",
    "picture.bin",
    "src/longest.ts",
    "src/short.ts",
  ]);
});

test("a folder that is not there is refused with its name", () => {
  expect(() => new Folder(join(place.path, "gone"))).toThrow(/there is no folder .*gone/);
});
