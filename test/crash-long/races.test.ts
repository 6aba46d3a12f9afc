/** Processes that race for one thread, a hundred times each, and many that write to one at once (lineage C11.1, C11.9). */
import { expect, test } from "vitest";
import { answer, command, raceTrack } from "../support/crash/race.ts";
import {
  continueAndArchive,
  closeAndArchive,
  continueAndClose,
  settleAnd,
  settleAndReconcile,
  twoContinues,
} from "../support/crash/races.ts";
import { startRacer } from "../support/crash/start.ts";

const ROUNDS = 100;

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

test("S1-53 C11.1 twenty processes write to one thread: nothing is lost, and no revision is skipped", async () => {
  await using track = await raceTrack();
  const { runtime, store } = track;
  const { id } = await runtime.threads.create();
  const writers = [...track.racers, ...Array.from({ length: 18 }, () => startRacer(store.name))];
  await Promise.all(writers.map((writer) => writer.says("ready")));
  const lines: string[] = [];
  await Promise.all(
    writers.map(async (writer, at) => {
      for (let n = 0; n < 5; n += 1) {
        const text = `${at}.${n}`;
        lines.push(text);
        const pinned = await answer(
          writer,
          n,
          command(id, "pin", { thread: id, section: "decisions", text }),
        );
        expect(pinned).toMatchObject({ won: true });
      }
    }),
  );
  const agent = (await store.read((view) => view.agent(id)))!;
  expect(agent.thread!.pins.map(({ text }) => text).toSorted()).toEqual(lines.toSorted());
  expect(agent.revision).toBe(1 + lines.length);
  for (const writer of writers) await writer.kill();
});
