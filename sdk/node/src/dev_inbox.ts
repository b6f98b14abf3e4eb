/** The inbox of `postrider dev`, for tests of applications. */

import { TimeoutError } from "./errors.js";
import type { Operation } from "./operation.js";
import type { Transport } from "./transport.js";

const PARTS = { method: "GET", query: [], body: false, idempotent: false, retry: true, mediaType: "application/json" };
const LIST: Operation = { ...PARTS, name: "dev.waitForEmail", path: "/messages" };
const GET: Operation = { ...PARTS, name: "dev.waitForEmail", path: "/messages/{id}" };
const WAIT_MAX_MS = 30_000;

export interface DevEmail {
  id: number;
  from: string;
  to: string[];
  subject: string;
  text: string | null;
  html: string | null;
  headers: { name: string; value: string }[];
  attachments: { filename: string | null; content_type: string; size: number }[];
  [field: string]: unknown;
}

export class DevInbox {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * The newest email to an address (`to`) and with a text in its subject, as soon as there is one. Rejects with
   * `TimeoutError` after `timeout` milliseconds, whatever `throwOnError` is.
   */
  async waitForEmail(
    { to, subject, timeout = 30_000, signal }: { to?: string; subject?: string; timeout?: number; signal?: AbortSignal } = {},
  ): Promise<DevEmail> {
    const { clock } = this.#transport;
    for (const deadline = clock.now() + timeout; clock.now() < deadline; ) {
      const wait = Math.min(deadline - clock.now(), WAIT_MAX_MS);
      const params = { to, subject, limit: 1, wait: `${Math.ceil(wait)}ms` };
      const { data } = await this.#transport.call<{ messages: DevEmail[] }>(LIST, [], params, { timeout: wait + 10_000, signal });
      const found = data.messages[0];
      if (found) return (await this.#transport.call<DevEmail>(GET, [String(found.id)], {}, { signal })).data;
    }
    const wanted = [to && ` to ${to}`, subject && ` with the subject ${subject}`].filter(Boolean).join("");
    throw new TimeoutError(`No email${wanted} came within ${timeout} ms: check that the application sends to this server`);
  }
}
