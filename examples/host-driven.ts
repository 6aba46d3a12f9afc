/**
 * A loop of one's own: the AI SDK's `generateText` drives the root, Coppice drives the children. The root's mail comes into
 * the loop through `prepareStep`, and the result of a child is there when the loop looks.
 */
import { createRuntime, scripted, toAiSdkTools } from "coppice";
import { script } from "coppice/testing";
import type { LanguageModelV4, LanguageModelV4Content } from "@ai-sdk/provider";
import { generateText, isStepCount } from "ai";

const children = scripted({ "/root/counter": [script.say("Seven letters.")] });
await using runtime = await createRuntime({ providers: { scripted: children } });
const tree = await runtime.openTree({ hostDriven: true });

/** Stands for a real model, such as `openai("gpt-5")`: spawns, waits, and answers with what came back. */
const answers: ((prompt: string) => LanguageModelV4Content)[] = [
  () =>
    call("spawn_agent", {
      task_name: "counter",
      message: "Count the letters of coppice.",
      fork_turns: "none",
    }),
  () => call("wait_agent", { targets: ["counter"], timeout_ms: 10_000 }),
  (prompt) => ({
    type: "text",
    text: prompt.includes("Seven letters.") ? "It has seven." : "I do not know.",
  }),
];
const model: LanguageModelV4 = {
  specificationVersion: "v4",
  provider: "example",
  modelId: "example",
  supportedUrls: {},
  async doGenerate({ prompt }) {
    const content = answers.shift()!(JSON.stringify(prompt));
    const tools = content.type === "tool-call";
    return {
      content: [content],
      finishReason: { unified: tools ? "tool-calls" : "stop", raw: undefined },
      usage: {
        inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 5, text: 5, reasoning: 0 },
      },
      warnings: [],
    };
  },
  doStream: () => Promise.reject(new Error("this example does not stream")),
};

using host = tree.root.tools();
const { prepareStep, onStepEnd } = await tree.root.injectMail();
const { text } = await generateText({
  model,
  prompt: "How many letters has the word coppice? Ask an agent.",
  tools: toAiSdkTools(host),
  stopWhen: isStepCount(10),
  prepareStep,
  onStepEnd,
});
console.log(text);
if (text !== "It has seven.") process.exitCode = 1;

function call(toolName: string, input: unknown): LanguageModelV4Content {
  return { type: "tool-call", toolCallId: toolName, toolName, input: JSON.stringify(input) };
}
