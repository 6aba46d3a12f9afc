/** Mail and mailboxes in memory. The counters are a record of their own, changed with the mail (MBX-2, MBX-8). */
import { InvariantError } from "../../protocol/errors.ts";
import type { MailId, ThreadId, TreeId } from "../../protocol/ids.ts";
import type { MailDraft, MailRecord } from "../../protocol/mail.ts";
import type { GroupContext, MailRows } from "../backend.ts";
import { numberCursor } from "../cursor.ts";
import { accepted, authorKey, unreadableLetter } from "../mail-identity.ts";
import { countedOf, type Counters, emptyCounters, recount, reserve } from "../mailbox-counters.ts";
import type { Journal } from "./journal.ts";
import { type Freeze, Table } from "./table.ts";

export interface MemoryMail {
  readonly rows: MailRows;
  /** Makes a stored row unreadable, as a broken row of a file would be. */
  readonly damage: (id: MailId) => void;
  readonly isUnread: (id: MailId) => boolean;
  readonly hasArrivals: (tree: TreeId) => boolean;
  /** Trees with unread trigger-turn mail. */
  readonly triggeredTrees: () => Iterable<string>;
}

export function mailRows(
  journal: Journal,
  freeze: Freeze,
  context: GroupContext,
  now: () => number,
): MemoryMail {
  const mail = new Table<MailRecord>(journal, freeze, ({ id }) => id);
  const isUnread = ({ state }: MailRecord): boolean => state === "accepted";
  const byRecipient = mail.index(({ recipient }) => recipient);
  const unreadOf = mail.index((one) => (isUnread(one) ? one.recipient : null));
  const triggers = mail.index((one) => (isUnread(one) && one.trigger ? one.treeId : null));
  const byRun = mail.index(({ runId }) => runId);
  const byKey = mail.index(authorKey);
  const boxes = new Table<Counters>(journal, freeze, ({ threadId }) => threadId);
  const arrivals = new Table<{ readonly id: MailId; readonly treeId: string }>(
    journal,
    freeze,
    ({ id }) => id,
  );
  const arrivalsOf = arrivals.index(({ treeId }) => treeId);
  const damaged = new Set<MailId>();

  const isReadable = ({ id }: MailRecord): boolean => !damaged.has(id);
  const counters = (id: ThreadId): Counters => boxes.get(id) ?? emptyCounters(id);
  const known = (draft: MailDraft): MailRecord | undefined => {
    const key = authorKey(draft);
    return mail.get(draft.id) ?? (key === null ? undefined : byKey.first(key));
  };

  const rows: MailRows = {
    counters,
    knownMail(draft) {
      const one = known(draft);
      return one === undefined || isReadable(one) ? one : unreadableLetter({ ...pick(one), at: now() });
    },
    mailbox: (id) => ({ ...counters(id), oldestUnreadAt: unreadOf.first(id)?.createdAt ?? null }),
    mail(id) {
      const one = mail.get(id);
      return one !== undefined && isReadable(one) ? one : undefined;
    },
    unread(id, { afterSeq = 0, limit }) {
      const found: MailRecord[] = [];
      if (limit <= 0) return found;
      for (const one of unreadOf.each(id)) {
        if (one.seq <= afterSeq || !isReadable(one)) continue;
        found.push(one);
        if (found.length >= limit) break;
      }
      return found;
    },
    mailOfRun: (id, state) => byRun.get(id).filter((one) => one.state === state && isReadable(one)),
    mailOf: (id, page) => {
      const after = numberCursor(page.after ?? "0", counters(id).lastSeq);
      const rest = byRecipient.get(id).filter((one) => one.seq > after && isReadable(one));
      const rows = rest.slice(0, page.limit);
      const last = rows.at(-1);
      return { rows, next: last !== undefined && rest.length > rows.length ? String(last.seq) : null };
    },
    unreadable: (id) =>
      [...damaged]
        .map((one) => mail.get(one)!)
        .filter((one) => one.recipient === id && isUnread(one))
        .toSorted((a, b) => a.seq - b.seq)
        .map((one) => one.id),
    triggered: (tree) => [...new Set(triggers.get(tree).map(({ recipient }) => recipient))],
    arrivals: (tree) =>
      arrivalsOf
        .get(tree)
        .map(({ id }) => mail.get(id)!)
        .filter(isReadable),
    insertMail(draft, arrival) {
      if (known(draft) !== undefined) return undefined;
      const box = counters(draft.recipient);
      const record = accepted(draft, box.lastSeq + 1);
      mail.put(record);
      boxes.put(recount(box, null, countedOf(record), record.seq));
      if (arrival) {
        arrivals.put({ id: record.id, treeId: record.treeId });
        context.told.add(record.treeId);
      }
      return record;
    },
    appendMail: (draft) =>
      // Mail to another tree is as much of a surprise to its owner as mail that was sent.
      rows.insertMail(draft, draft.treeId !== context.tree) ?? rows.knownMail(draft)!,
    putMail(record) {
      const before = mail.get(record.id);
      if (before === undefined) {
        throw new InvariantError(`The mail ${record.id} was never stored.`, { id: record.id });
      }
      mail.put(record);
      boxes.put(recount(counters(record.recipient), countedOf(before), countedOf(record)));
    },
    deadLetterUnreadable(id) {
      const one = mail.get(id);
      if (one === undefined || isReadable(one) || !isUnread(one)) return;
      damaged.delete(id);
      journal.record(() => damaged.add(id));
      rows.putMail(unreadableLetter({ ...pick(one), at: now() }));
      arrivals.remove(id);
    },
    reserveMailbox: (id, messages, bytes) => void boxes.put(reserve(counters(id), messages, bytes)),
    takeArrivals(ids) {
      for (const id of ids) arrivals.remove(id);
    },
  };
  return {
    rows,
    damage: (id) => void damaged.add(id),
    isUnread(id) {
      const one = mail.get(id);
      return one !== undefined && isUnread(one);
    },
    hasArrivals: (tree) => arrivalsOf.has(tree),
    triggeredTrees: () => triggers.keys(),
  };
}

function pick(one: MailRecord) {
  const { id, treeId, recipient, recipientPath, seq, createdAt } = one;
  return { id, treeId, recipient, recipientPath, seq, createdAt, bytes: one.content.bytes };
}
