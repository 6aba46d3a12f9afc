/** The scripted model that plays the demo: a script for each path, decided anew from the conversation at every step. */
import { scripted, type ScriptedProvider } from "../../providers/scripted/provider.ts";
import { say } from "../../providers/scripted/script.ts";
import { counterScript, readerScript, searcherScript } from "./children.ts";
import { COUNTER, DEMO_MODEL, READER, SEARCHER } from "./job.ts";
import { pathOf } from "./ledger.ts";
import { rootScript } from "./root.ts";

/** `pace` is how long a response takes, in milliseconds, so that one can follow. */
export function demoProvider(pace: number): ScriptedProvider {
  return scripted(
    {
      "/root": rootScript(pace),
      [pathOf(COUNTER)]: counterScript(pace),
      [pathOf(READER)]: readerScript(pace),
      [pathOf(SEARCHER)]: searcherScript(pace),
      "*": () => say("I am an agent of the demo, and have no script for this."),
    },
    { models: { [DEMO_MODEL]: {} }, recorded: 0 },
  );
}
