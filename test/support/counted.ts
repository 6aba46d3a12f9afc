/** Counts what is asked of the views of a store, and the rows that they answer. */
import type { Store, StoreView } from "../../src/store/port.ts";

export interface Counted {
  readonly store: Store;
  readonly asked: () => number;
  readonly rows: () => number;
}

export function counted(inner: Store): Counted {
  let asked = 0;
  let rows = 0;
  const watch = <V extends StoreView>(view: V): V =>
    new Proxy(view, {
      get(target, name) {
        const found = Reflect.get(target, name) as unknown;
        if (typeof found !== "function") return found;
        asked += 1;
        return (...given: unknown[]) => {
          const answer = (found as (...args: unknown[]) => unknown).apply(target, given);
          rows += rowsOf(answer);
          return answer;
        };
      },
    });
  const store = new Proxy(inner, {
    get(target, name) {
      if (name === "read")
        return <T>(plan: (view: StoreView) => T) => target.read((view) => plan(watch(view)));
      if (name === "commit")
        return ((lease, plan) => target.commit(lease, (tx) => plan(watch(tx)))) satisfies Store["commit"];
      const found = Reflect.get(target, name) as unknown;
      return typeof found === "function" ? (found.bind(target) as unknown) : found;
    },
  });
  return { store, asked: () => asked, rows: () => rows };
}

function rowsOf(answer: unknown): number {
  if (typeof answer !== "object" || answer === null) return 0;
  const list = "rows" in answer ? answer.rows : answer;
  return Array.isArray(list) ? list.length : 1;
}
