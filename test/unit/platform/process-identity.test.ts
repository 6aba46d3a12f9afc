/** Who is proved dead, and of whom nothing can be said. */
import { expect, test } from "vitest";
import { ownIdentity, provenDead } from "../../../src/platform/process-identity.ts";

// No process has this id: it is above what a system gives.
const NOBODY = 2 ** 22 + 1;

test("REC-6 the id of a process proves nothing where it counts in another namespace", () => {
  const me = ownIdentity();
  expect(provenDead(me)).toBe(false);
  expect(provenDead({ ...me, pid: NOBODY })).toBe(true);
  expect(provenDead({ ...me, pid: NOBODY, pidNamespace: "pid:[1]" })).toBe(false);
  // Another boot has ended every namespace with it.
  expect(provenDead({ ...me, bootId: "another", pidNamespace: "pid:[1]" })).toBe(true);
  const { pidNamespace: _none, ...older } = me;
  expect([provenDead(older), provenDead({ ...older, pid: NOBODY })]).toEqual([false, true]);
});
