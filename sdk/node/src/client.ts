import { DevInbox } from "./dev_inbox.js";
import { Resources } from "./generated/resources.js";
import type { ClientOptions } from "./options.js";
import { Core } from "./resource.js";
import { type LastResponse, Transport } from "./transport.js";

/**
 * A client of one server with one API key. Key and base URL are by default POSTRIDER_API_KEY and POSTRIDER_BASE_URL of
 * the environment. The constructor throws `ConfigurationError`; calls throw nothing, unless `throwOnError` is set.
 */
export class Postrider<Throws extends boolean = false> extends Resources<Throws> {
  /** The inbox of `postrider dev`. */
  readonly dev: DevInbox;
  readonly #transport: Transport;

  constructor(key?: string, options: ClientOptions<Throws> = {}) {
    const transport = new Transport(key, options);
    super(new Core<Throws>(transport, options.throwOnError ?? false));
    this.dev = new DevInbox(transport);
    this.#transport = transport;
  }

  /** Status, rate limit, request id and headers of the last answer, whichever call it was for. */
  get lastResponse(): LastResponse | null {
    return this.#transport.lastResponse;
  }
}
