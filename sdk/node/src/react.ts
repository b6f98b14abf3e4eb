/** The parameter `react` of emails: an element that `@react-email/render` renders, which the application installs. */

import { ConfigurationError } from "./errors.js";

type Render = (element: unknown, options?: { plainText?: boolean }) => string | Promise<string>;

/**
 * Parameters of `emails.send`, or `emails.sendBatch`, with `html` in the place of `react`, and with its text if the caller
 * gives none.
 */
export async function withoutReact(method: string, params: unknown): Promise<unknown> {
  if (method === "emails.send") return rendered(params);
  const emails = (params as { emails?: unknown } | null)?.emails;
  return method === "emails.sendBatch" && Array.isArray(emails) ? { ...(params as object), emails: await Promise.all(emails.map(rendered)) } : params;
}

async function rendered(params: unknown): Promise<unknown> {
  const { react, ...others } = (params ?? {}) as Record<string, unknown>;
  if (react === undefined || react === null) return params;
  if (others.html !== undefined && others.html !== null) throw new ConfigurationError("An email has either `react` or `html`");
  const render = await loaded();
  try {
    return { ...others, html: await render(react), text: others.text ?? (await render(react, { plainText: true })) };
  } catch (error) {
    throw new ConfigurationError(`\`react\` cannot be rendered: ${textOf(error)}`, { cause: error });
  }
}

async function loaded(): Promise<Render> {
  try {
    // @ts-ignore: an optional peer, which this package is built without.
    return ((await import("@react-email/render")) as { render: Render }).render;
  } catch (error) {
    const text = `\`react\` needs the package @react-email/render (npm install @react-email/render): ${textOf(error)}`;
    throw new ConfigurationError(text, { cause: error });
  }
}

function textOf(error: unknown): string {
  return (error as Error | null)?.message ?? String(error);
}
