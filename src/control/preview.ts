/** The text of a response as those who watch see it come, without secrets (OBS-4, SEC-3); where nobody does, none is made. */
import type { RunId } from "../protocol/ids.ts";
import { RedactedStream } from "../platform/redact-stream.ts";
import type { Preview } from "../session/ports.ts";
import type { Session } from "../session/session.ts";
import type { Tree } from "./tree.ts";

/** Who begins to watch in the middle of a response sees the next one: what he has missed may be half a secret. */
export function previewOf({ shared, events }: Tree, { agent: { path } }: Session, runId: RunId): Preview {
  const stream = new RedactedStream(shared.secrets);
  let missed = false;
  const show = (redacted: () => string): void => {
    missed ||= !events.observed;
    const text = missed ? "" : redacted();
    if (text !== "") events.publish([{ type: "progress", path, runId, text }]);
  };
  return { push: (text) => show(() => stream.push(text)), end: () => show(() => stream.end()) };
}
