/** What a program may tell of a model, as a schema: for every adapter that takes models by name. */
import { z } from "zod";
import type { Shape } from "../platform/check.ts";
import type { ModelInfo } from "./port.ts";

const tokens = z.number().int().min(1).nullable().optional();

export const modelShape: Shape<Partial<ModelInfo>> = {
  contextWindow: tokens,
  maxOutputTokens: tokens,
  efforts: z.array(z.string()).nullable().optional(),
  defaultEffort: z.string().nullable().optional(),
  collaborates: z.boolean().optional(),
  modeHint: z.string().nullable().optional(),
};
