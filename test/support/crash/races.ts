/** The races themselves, each so many rounds (lineage C11.9). */
import { expect } from "vitest";
import { answer, both, command, raceTrack } from "./race.ts";
import type { Process } from "./start.ts";

const ALL = { limit: 1000 };

export async function twoContinues(rounds: number): Promise<void> {
  await using track = await raceTrack();
  const { runtime, store, racers } = track;
  const lost: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { id, revision } = await runtime.threads.create();
    const planned = round % 2 === 0 ? { expectedRevision: revision } : {};
    const say = (message: string) => command(id, "continue", { thread: id, message, ...planned });
    const answers = await both(racers, round, say("one"), say("two"));
    expect({ answers, winners: answers.filter(({ won }) => won).length }).toMatchObject({ winners: 1 });
    const { code } = answers.find(({ won }) => !won)!;
    expect(code).toBe(round % 2 === 0 ? "THREAD_REVISION_CONFLICT" : "THREAD_BUSY");
    lost.push(answers[0].won ? "two" : "one");
    const mail = await store.read((view) => view.mailOf(id, ALL).rows);
    expect(mail.map(({ content }) => content.text)).toEqual([answers[0].won ? "one" : "two"]);
  }
  expect(new Set(lost).size).toBe(2);
}

export async function continueAndClose(rounds: number): Promise<void> {
  await using track = await raceTrack();
  const { runtime, store, racers } = track;
  const winners = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const { id } = await runtime.threads.create();
    const [go, close] = await both(
      racers,
      round,
      command(id, "continue", { thread: id, message: "go" }),
      command(id, "close", { target: "/root", politely: true }),
    );
    expect({ go, close, one: go.won !== close.won }).toMatchObject({ one: true });
    winners.add(go.won ? "continue" : "close");
    if (go.won) expect(close.code).toBe("THREAD_BUSY");
    else expect(go.code).toBe("THREAD_CLOSED");
    const { state, runs } = (await store.read((view) => view.agent(id)))!;
    expect([state, runs]).toEqual([go.won ? "open" : "closed", 0]);
    expect((await store.read((view) => view.mailbox(id))).triggers).toBe(go.won ? 1 : 0);
  }
  expect(winners.size).toBe(2);
}

export async function continueAndArchive(rounds: number): Promise<void> {
  await using track = await raceTrack();
  const { runtime, store, racers } = track;
  for (let round = 0; round < rounds; round += 1) {
    const { id } = await runtime.threads.create();
    const closed = round % 2 === 1;
    if (closed) await answer(racers[0]!, round, command(id, "close", { target: "/root" }));
    const [go, archive] = await both(
      racers,
      round,
      command(id, "continue", { thread: id, message: "go" }),
      command(id, "archive", { thread: id }),
    );
    expect([go.won, archive.won]).toEqual([!closed, closed]);
    if (closed) expect(["THREAD_CLOSED", "THREAD_ARCHIVED"]).toContain(go.code);
    else expect(archive.code).toBe("THREAD_INVARIANT_VIOLATION");
    expect((await store.read((view) => view.agent(id)))!.state).toBe(closed ? "archived" : "open");
  }
}

export async function closeAndArchive(rounds: number): Promise<void> {
  await using track = await raceTrack();
  const { runtime, store, racers } = track;
  for (let round = 0; round < rounds; round += 1) {
    const { id } = await runtime.threads.create();
    const [close, archive] = await both(
      racers,
      round,
      command(id, "close", { target: "/root", politely: true }),
      command(id, "archive", { thread: id }),
    );
    expect(close).toMatchObject({ won: true });
    if (!archive.won) expect(archive.code).toBe("THREAD_INVARIANT_VIOLATION");
    expect((await store.read((view) => view.agent(id)))!.state).toBe(archive.won ? "archived" : "closed");
  }
}

/** Against a run that is about to settle: a continue or a close finds it busy, or comes after it. */
export async function settleAnd(verb: "continue" | "close" | "archive", rounds: number): Promise<void> {
  await using track = await raceTrack();
  const { runtime, store, racers } = track;
  const [owner, other] = racers as [Process, Process];
  for (let round = 0; round < rounds; round += 1) {
    const { id } = await runtime.threads.create();
    expect(await answer(owner, round, { act: "own", tree: id })).toMatchObject({ won: true });
    const asked = {
      continue: { thread: id, message: `settle ${round}` },
      close: { target: "/root", politely: true },
      archive: { thread: id },
    }[verb];
    const [settle, change] = await Promise.all([
      answer(owner, round, { act: "settle", tree: id }),
      answer(other, round, command(id, verb, asked)),
    ]);
    expect(settle).toMatchObject({ won: true });
    const busy = verb === "archive" ? "THREAD_INVARIANT_VIOLATION" : "THREAD_BUSY";
    if (!change.won) expect(change.code).toBe(busy);
    const { agent, first, ends, mail } = await store.read((view) => {
      const run = view.runAt(id, 1)!;
      const settled = view.events(id, 0, 1000).filter(({ type }) => type === "run.settled");
      return {
        agent: view.agent(id)!,
        first: run,
        ends: settled.filter(({ runId }) => runId === run.id).length,
        mail: view.mailOf(id, ALL).rows.length,
      };
    });
    expect([first.status, first.nextContextRevision, ends]).toEqual(["completed", 1, 1]);
    expect(agent.state).toBe(verb === "close" && change.won ? "closed" : "open");
    expect(mail).toBe(verb === "continue" && change.won ? 2 : 1);
    if (verb === "archive") expect(change.won).toBe(false);
  }
}

export async function settleAndReconcile(rounds: number): Promise<void> {
  await using track = await raceTrack();
  const { runtime, store, racers } = track;
  const [owner, looker] = racers as [Process, Process];
  for (let round = 0; round < rounds; round += 1) {
    const { id } = await runtime.threads.create();
    expect(await answer(owner, round, { act: "own", tree: id })).toMatchObject({ won: true });
    const settle = answer(owner, round, { act: "settle", tree: id });
    const answers = await Promise.all([answer(looker, round, { act: "reconcile", tree: id }), settle]);
    expect(answers).toMatchObject([{ won: true }, { won: true }]);
    const { runs, settles, agent, second } = await store.read((view) => ({
      runs: view.runsOf(id, ALL).rows,
      settles: view.events(id, 0, 1000).filter(({ type }) => type === "run.settled").length,
      agent: view.agent(id)!,
      second: view.snapshot(id, 2),
    }));
    expect(runs.map(({ nextContextRevision }) => nextContextRevision)).toEqual([1]);
    expect([settles, agent.currentRun, second]).toEqual([1, null, undefined]);
    expect(["completed", "interrupted"]).toContain(runs[0]!.status);
  }
}
