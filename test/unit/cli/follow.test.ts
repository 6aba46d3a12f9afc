/** What a command tells beside its result, when that comes to an end by itself. */
import { expect, test } from "vitest";
import { follow } from "../../../src/cli/commands/run-until-idle.ts";
import type { Terminal } from "../../../src/cli/terminal.ts";
import type { TreeHandle } from "../../../src/runtime/tree-handle.ts";

test("what fails while the command waits for something else is told when the command ends, and ends no process", async () => {
  const unheard: unknown[] = [];
  const hear = (error: unknown): void => void unheard.push(error);
  process.prependListener("unhandledRejection", hear);
  const handle = {
    events: () => ({
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("the store is gone")) }),
    }),
  } as unknown as TreeHandle;
  const following = follow({} as Terminal, handle, 0, { json: true });
  await new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
  process.off("unhandledRejection", hear);
  expect(unheard).toEqual([]);
  await expect(following[Symbol.asyncDispose]()).rejects.toThrow("the store is gone");
});
