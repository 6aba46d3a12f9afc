/** `coppice works <id>`: one request and its outcome, whole: what `works` shows the beginning of. */
import { isWorkId } from "../../protocol/ids.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import { TreeReader } from "../../runtime/tree-reader.ts";
import type { StoreView } from "../../store/port.ts";
import { badUse, CommandError, EXIT } from "../failure.ts";
import { requesterOf, workState } from "../screen/words.ts";
import { openForReading, storePlace } from "../store-place.ts";
import { cleanLines, type Terminal } from "../terminal.ts";
import type { TreeOptions } from "./options.ts";

export async function printWork(terminal: Terminal, id: string, options: TreeOptions): Promise<void> {
  if (!isWorkId(id)) throw badUse(`\`${id}\` is not the id of a work; it looks like wrk_….`, "works");
  const store = await openForReading(storePlace(options.store));
  await using _closed = { [Symbol.asyncDispose]: () => store.close() };
  const work = await store.read((view) => view.work(id));
  if (work === undefined)
    throw new CommandError(EXIT.notFound, "INVALID_ARGUMENT", `no work ${id} is in ${store.name}.`, "works");
  const texts = await store.read((view) => ({ asked: requestOf(view, work), answer: answerOf(view, work) }));
  if (options.json === true) {
    terminal.json({ ...work, request: texts.asked, answer: texts.answer });
    return;
  }
  const owned = (await new TreeReader(store, work.treeId).owner()) !== null;
  const way = `${requesterOf(work)} → ${work.executorPath}`;
  terminal.line(terminal.paint("bold", `${work.id}  ${way}  ${workState(work, owned)}`));
  for (const line of cleanLines(texts.asked)) terminal.line(line);
  if (texts.answer === "") return;
  terminal.line();
  terminal.line(
    terminal.paint("bold", work.outcome?.ending === "completed" ? "Answer" : "Error, or last words"),
  );
  for (const line of cleanLines(texts.answer)) terminal.line(line);
}

function requestOf(view: StoreView, { requestMailId, objective }: WorkRecord): string {
  return view.mail(requestMailId)?.content.text ?? objective;
}

/** What an agent was sent in part lies whole in an artifact. */
function answerOf(view: StoreView, { outcome }: WorkRecord): string {
  if (outcome === null) return "";
  const whole = outcome.artifactId === null ? undefined : view.artifact(outcome.artifactId)?.text;
  const { error, text } = outcome;
  return whole ?? (text === "" && error !== null ? `${error.code}: ${error.message}` : text);
}
