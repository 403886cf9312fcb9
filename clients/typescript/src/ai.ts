/** The services as tools of the AI SDK (`ai`). */

import { jsonSchema, tool, type Tool } from "ai";
import type { Centgate } from "./client.js";
import type { ServiceTypes, Slug } from "./generated/methods.js";
import { TOOL_SCHEMAS, type ToolSchema } from "./generated/tool-schemas.js";
import type { CallOptions } from "./options.js";

/** What a model gets from a tool. */
export interface ToolAnswer {
  /** The service's `data`; text from the web in it is untrusted. */
  readonly data: unknown;
  /** Problems that reduce the quality of the answer. */
  readonly warnings: readonly string[];
  /** Hash of the payment's transaction; null if nothing was paid. */
  readonly transaction: string | null;
}

/** Which services are tools, and the limits of each call. */
export interface ToolOptions extends Pick<CallOptions, "timeout" | "maxPrice"> {
  /** Services to offer; by default all. */
  readonly services?: readonly Slug[] | undefined;
}

/**
 * Return the services as tools of the AI SDK, by name: `token_risk`, `phishing_check`, and so on.
 *
 * Each call pays from the client's wallet within its caps. An error of the client is the tool's error, and
 * its message tells the model the next step.
 *
 * @example
 * ```ts
 * const { text } = await generateText({ model, prompt, tools: tools(client, { services: ["token-risk"] }) });
 * ```
 */
export function tools(client: Centgate, options: ToolOptions = {}): Record<string, Tool<object, ToolAnswer>> {
  const slugs = options.services ?? (Object.keys(TOOL_SCHEMAS) as Slug[]);
  return Object.fromEntries(
    slugs.map((slug) => [TOOL_SCHEMAS[slug].name, buildTool(client, slug, options)]),
  );
}

function buildTool(client: Centgate, slug: Slug, options: ToolOptions): Tool<object, ToolAnswer> {
  const { description, inputSchema }: ToolSchema = TOOL_SCHEMAS[slug];
  const { timeout, maxPrice } = options;
  return tool<object, ToolAnswer>({
    description,
    inputSchema: jsonSchema<object>(inputSchema),
    execute: async (request, { abortSignal: signal }) => {
      const body = request as ServiceTypes[Slug]["request"];
      const { data, warnings, transaction } = await client.call(slug, body, { signal, timeout, maxPrice });
      return { data, warnings, transaction };
    },
  });
}
