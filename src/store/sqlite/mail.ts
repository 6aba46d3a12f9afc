/**
 * Mail. One insert a mail, which also says whether its id or key was known. A row that cannot be read is left out of
 * every list and never hides the others (MBX-10); its counters hold, because they rest on columns.
 */
import { InvariantError } from "../../protocol/errors.ts";
import type { MailId, ThreadId, TreeId } from "../../protocol/ids.ts";
import type { MailRecord } from "../../protocol/mail.ts";
import type { AgentRecord } from "../../protocol/agent.ts";
import { ROOT_PATH } from "../../protocol/agent-path.ts";
import type { GroupContext, MailRows } from "../backend.ts";
import { numberCursor } from "../cursor.ts";
import { accepted, authorKey, unreadableLetter } from "../mail-identity.ts";
import { countedOf, recount, reserve } from "../mailbox-counters.ts";
import type { Connection, Row } from "./connection.ts";
import { Mailboxes } from "./mailboxes.ts";
import { RecordCache } from "./record-cache.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export function mailRows(
  connection: Connection,
  threads: ThreadNumbers,
  context: GroupContext,
  now: () => number,
  agentOf: (id: ThreadId) => AgentRecord | undefined,
): MailRows {
  const boxes = new Mailboxes(connection, threads);
  const insert = connection.statement(
    `INSERT INTO mail (id, tree, box, seq, unread, ready, arrival, bytes, created_at, author_key, body)
       VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  const update = connection.statement(
    "UPDATE mail SET unread = ?, ready = ?, bytes = ?, run_id = ?, body = ? WHERE id = ?",
  );
  const counted = connection.statement("SELECT unread, ready, bytes FROM mail WHERE id = ?");
  const byId = connection.statement("SELECT body, id FROM mail WHERE id = ?");
  const byKey = connection.statement("SELECT body, id FROM mail WHERE author_key = ?");
  const unreadRows = connection.statement(
    "SELECT body, seq, id FROM mail WHERE box = ? AND unread = 1 AND seq > ? ORDER BY seq LIMIT ?",
  );
  const oldest = connection.statement(
    "SELECT created_at FROM mail WHERE box = ? AND unread = 1 ORDER BY seq LIMIT 1",
  );
  const half = (unread: 0 | 1): string =>
    `SELECT body, seq FROM (SELECT body, seq FROM mail WHERE box = ?1 AND unread = ${unread} AND seq > ?2
       ORDER BY seq LIMIT ?3)`;
  const all = connection.statement(`${half(0)} UNION ALL ${half(1)} ORDER BY seq LIMIT ?3`);
  const ofRun = connection.statement("SELECT body FROM mail WHERE run_id = ? ORDER BY rowid");
  const readyIn = connection.statement(
    `SELECT threads.id FROM mail JOIN threads ON number = box
      WHERE tree = ? AND ready = 1 GROUP BY box ORDER BY MIN(mail.rowid)`,
  );
  const arrived = connection.statement("SELECT body FROM mail WHERE tree = ? AND arrival = 1 ORDER BY rowid");
  const seen = connection.statement("UPDATE mail SET arrival = 0 WHERE id = ? AND arrival = 1");
  const keepBody = connection.statement(
    "INSERT INTO unreadable_bodies (id, body) SELECT id, body FROM mail WHERE id = ? ON CONFLICT DO NOTHING",
  );
  const columns = connection.statement(
    `SELECT trees.id, boxes.id, seq, bytes, created_at, unread, body, mail.id FROM mail
       JOIN threads trees ON trees.number = tree JOIN threads boxes ON boxes.number = box WHERE mail.id = ?`,
  );

  /** By mailbox: up to which `seq` all that is unread was found whole. What is written here is; a read that meets a broken one forgets it. */
  const whole = connection.join(new RecordCache<number>());

  function* unreadFrom(id: ThreadId, afterSeq: number, limit: number): Generator<Row> {
    const box = threads.find(id);
    for (let from = afterSeq; ;) {
      const rows = unreadRows.all(box, from, limit);
      yield* rows;
      if (rows.length < limit) return;
      from = rows.at(-1)![1] as number;
    }
  }

  function letterOf(row: Row): MailRecord {
    const [treeId, recipient, seq, bytes, createdAt] = row as readonly [
      TreeId,
      ThreadId,
      number,
      number,
      number,
    ];
    const recipientPath = agentOf(recipient)?.path ?? ROOT_PATH;
    const id = row[7] as MailId;
    return unreadableLetter({ id, treeId, recipient, recipientPath, seq, bytes, createdAt, at: now() });
  }

  const rows: MailRows = {
    counters: (id) => boxes.get(id),
    mailbox: (id) => {
      const box = boxes.get(id);
      return {
        ...box,
        oldestUnreadAt: box.unread === 0 ? null : ((oldest.get(threads.find(id))?.[0] as number) ?? null),
      };
    },
    mail: (id) => readRow(byId.get(id)),
    knownMail(draft) {
      const key = authorKey(draft);
      const row = byId.get(draft.id) ?? (key === null ? undefined : byKey.get(key));
      return row === undefined ? undefined : (readRow(row) ?? letterOf(columns.get(row[1] as MailId)!));
    },
    unread(id, { afterSeq = 0, limit }) {
      const found: MailRecord[] = [];
      if (limit <= 0) return found;
      for (const row of unreadFrom(id, afterSeq, limit)) {
        if (found.length >= limit) break;
        const mail = readRow(row);
        if (mail === undefined) whole.set(id, 0);
        else found.push(mail);
      }
      return found;
    },
    mailOfRun: (id, state) => readable(ofRun.all(id)).filter((mail) => mail.state === state),
    mailOf(id, { after = null, limit }) {
      const from = numberCursor(after ?? "0", boxes.get(id).lastSeq);
      const found = all.all(threads.find(id), from, limit + 1);
      const page = found.slice(0, limit);
      const last = page.at(-1);
      return {
        rows: readable(page),
        next: last !== undefined && found.length > limit ? String(last[1]) : null,
      };
    },
    unreadable(id) {
      const broken: MailId[] = [];
      let upTo = whole.get(id) ?? 0;
      for (const row of unreadFrom(id, upTo, 1000)) {
        if (readRow(row) === undefined) broken.push(row[2] as MailId);
        else if (broken.length === 0) upTo = row[1] as number;
      }
      whole.set(id, upTo);
      return broken;
    },
    triggered: (tree) => readyIn.all(threads.find(tree)).map((row) => row[0] as ThreadId),
    arrivals: (tree) => readable(arrived.all(threads.find(tree))),
    insertMail(draft, arrival) {
      const box = boxes.get(draft.recipient);
      const mail = accepted(draft, box.lastSeq + 1);
      const stored = insert.run(
        mail.id,
        threads.number(draft.treeId),
        threads.number(draft.recipient),
        mail.seq,
        mail.trigger ? 1 : 0,
        arrival ? 1 : 0,
        mail.content.bytes,
        mail.createdAt,
        authorKey(mail),
        JSON.stringify(mail),
      );
      if (stored === 0) return undefined;
      boxes.put(recount(box, null, countedOf(mail), mail.seq));
      if (arrival) context.told.add(mail.treeId);
      return mail;
    },
    appendMail: (draft) =>
      // Mail to another tree is as much of a surprise to its owner as mail that was sent.
      rows.insertMail(draft, draft.treeId !== context.tree) ?? rows.knownMail(draft)!,
    putMail(mail) {
      const row = counted.get(mail.id) as readonly [number, number, number] | undefined;
      if (row === undefined)
        throw new InvariantError(`The mail ${mail.id} was never stored.`, { id: mail.id });
      const before = { unread: row[0] === 1, trigger: row[1] === 1, bytes: row[2] };
      const after = countedOf(mail);
      const ready = after.unread && after.trigger ? 1 : 0;
      update.run(after.unread ? 1 : 0, ready, after.bytes, mail.runId, JSON.stringify(mail), mail.id);
      boxes.put(recount(boxes.get(mail.recipient), before, after));
    },
    deadLetterUnreadable(id) {
      const row = columns.get(id);
      if (row === undefined || row[5] !== 1 || readMail(row[6]) !== undefined) return;
      keepBody.run(id);
      rows.putMail(letterOf(row));
      seen.run(id);
    },
    reserveMailbox: (id, messages, bytes) => boxes.put(reserve(boxes.get(id), messages, bytes)),
    takeArrivals(ids) {
      for (const id of ids) seen.run(id);
    },
  };
  return rows;
}

function readable(rows: readonly Row[]): MailRecord[] {
  return rows.map(readRow).filter((mail) => mail !== undefined);
}

function readRow(row: Row | undefined): MailRecord | undefined {
  return row === undefined ? undefined : readMail(row[0]);
}

/** Undefined for what is not a mail: enough is looked at that nobody who reads it can fail. */
function readMail(body: unknown): MailRecord | undefined {
  let mail: Partial<MailRecord> | null;
  try {
    mail = JSON.parse(body as string) as Partial<MailRecord> | null;
  } catch {
    // Broken text is what this function is asked about; the caller gets "unreadable".
    return undefined;
  }
  const isMail =
    typeof mail === "object" &&
    mail !== null &&
    typeof mail.id === "string" &&
    typeof mail.recipient === "string" &&
    typeof mail.seq === "number" &&
    typeof mail.state === "string" &&
    typeof mail.kind === "string" &&
    typeof mail.author?.kind === "string" &&
    typeof mail.content?.text === "string" &&
    typeof mail.content.bytes === "number";
  return isMail ? (mail as MailRecord) : undefined;
}
