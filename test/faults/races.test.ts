/** Processes that race for one thread: exactly one wins, and the other is told what has beaten it (lineage C11.9). */
import { test } from "vitest";
import {
  continueAndArchive,
  closeAndArchive,
  continueAndClose,
  settleAnd,
  settleAndReconcile,
  twoContinues,
} from "../support/crash/races.ts";

/** A hundred of each are run with the long suites. */
const ROUNDS = 10;

test("S1-24 C11.9 of two continues one wins, and the other learns that the thread has changed or is busy", () =>
  twoContinues(ROUNDS));

test("C11.9 C2.1 of a continue and a close one wins: the thread is busy, or closed", () =>
  continueAndClose(ROUNDS));

test("C11.9 C3.7 of a continue and an archive one wins: an open thread goes on, a closed one is archived", () =>
  continueAndArchive(ROUNDS));

test("C11.9 C3.7 a close and an archive: the archive comes after it, or is refused", () =>
  closeAndArchive(ROUNDS));

test.for(["continue", "close", "archive"] as const)(
  "C11.9 C14.1 of a settle and a %s: it comes after the settle, or is refused, and the run has one end",
  (verb) => settleAnd(verb, ROUNDS),
);

test("S1-67 C14.1 of a settle and a reconcile one wins, and the run has one end and one revision", () =>
  settleAndReconcile(ROUNDS));
