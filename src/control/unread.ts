/** Unread mail of an agent, oldest first and page by page: results and notices go in over the limit, so no number bounds it. */
import type { ThreadId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { StoreView } from "../store/port.ts";

const PAGE = 64;

/** What it yields may be changed meanwhile, in its state too: pages go by `seq`. */
export function* unreadOf(view: StoreView, id: ThreadId, afterSeq = 0): Generator<MailRecord> {
  for (let after = afterSeq; ;) {
    const page = view.unread(id, { afterSeq: after, limit: PAGE });
    yield* page;
    if (page.length < PAGE) return;
    after = page.at(-1)!.seq;
  }
}
