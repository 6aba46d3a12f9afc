/**
 * A language model of the AI SDK's specification v4, by what a program's compiler needs to see of it: the SDK's packages are
 * the user's, and nobody needs their types to use this one. Adapters take it for the whole specification.
 */
export interface LanguageModel {
  readonly specificationVersion: "v4";
  readonly provider: string;
  readonly modelId: string;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}
