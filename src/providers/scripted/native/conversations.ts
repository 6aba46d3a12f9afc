/**
 * Conversations as six scripted providers keep them: in memory, outside of any adapter, so that another adapter object finds
 * what an earlier one has left, as another process would.
 */
import type { PromptMessage } from "../../../protocol/provider-events.ts";

export interface ConversationItem {
  readonly id: string;
  readonly turn: string;
  readonly message: PromptMessage;
}

export interface ConversationTurn {
  readonly id: string;
  status: "running" | "completed" | "failed" | "interrupted";
}

export interface Conversation {
  readonly id: string;
  readonly driver: string;
  /** How the provider keeps it; only one of them has both ways. */
  readonly history: "legacy" | "paginated";
  readonly forkedFrom: string | null;
  turns: ConversationTurn[];
  items: ConversationItem[];
  /** Answers given here, which is the place in the script; a fork begins its own. */
  played: number;
  /** Steps since then that failed or stalled. */
  spent: number;
  /** The provider does not find it any more. */
  lost: boolean;
  /** The session that writes to it, where there may be only one. */
  writer: object | null;
}

/** Conversations of scripted providers, which another adapter finds again. */
export interface NativeConversations {
  /** An id that no other has. */
  mint(kind: string): string;
  create(driver: string, history: Conversation["history"], forkedFrom: string | null): Conversation;
  find(driver: string, id: string): Conversation | undefined;
  all(): readonly Conversation[];
}

/** An empty store of conversations, to be given to adapters that are to share them. */
export function createNativeConversations(): NativeConversations {
  const known = new Map<string, Conversation>();
  let minted = 0;
  const mint = (kind: string): string => `${kind}-${(minted += 1)}`;
  return {
    mint,
    create(driver, history, forkedFrom) {
      const id = mint("conversation");
      const empty = { turns: [], items: [], played: 0, spent: 0, lost: false, writer: null };
      const made: Conversation = { id, driver, history, forkedFrom, ...empty };
      known.set(id, made);
      return made;
    },
    find: (driver, id) => {
      const found = known.get(id);
      return found?.driver === driver ? found : undefined;
    },
    all: () => [...known.values()],
  };
}
