/** Base of the generated resources: results, and lists that are iterated over all pages. */

import { type Headers, PostriderError, UnexpectedResponseError } from "./errors.js";
import type { Operation } from "./operation.js";
import type { CallOptions } from "./options.js";
import type { Answer, Transport } from "./transport.js";

/** What a call resolves with. Exactly one of `data` and `error` is null. */
export type Result<T> =
  | { data: T; error: null; headers: Headers; requestId: string; warnings: string[] }
  | { data: null; error: PostriderError; headers: Headers; requestId: string; warnings: string[] };

/** With `throwOnError: true` the data, otherwise a `Result`. */
export type Reply<T, Throws extends boolean> = Throws extends true ? T : Result<T>;

/** A client's connection and how it answers. */
export class Core<Throws extends boolean> {
  readonly transport: Transport;
  readonly #throws: boolean;

  constructor(transport: Transport, throws: boolean) {
    this.transport = transport;
    this.#throws = throws;
  }

  async reply<T>(work: Promise<Answer<T>>): Promise<Reply<T, Throws>> {
    if (this.#throws) return (await work).data as Reply<T, Throws>;
    const result = await work.then(
      (answer): Result<T> => ({ ...answer, error: null }),
      (error: PostriderError): Result<T> => ({ data: null, error: typed(error), headers: error.headers ?? {}, requestId: error.requestId ?? "", warnings: [] }),
    );
    return result as Reply<T, Throws>;
  }
}

/** Every failure of a call has a class of the SDK, also one of a replaced `fetch` that answers nonsense. */
function typed(error: unknown): PostriderError {
  return error instanceof PostriderError ? error : new PostriderError(`The call failed: ${(error as Error)?.message ?? error}`);
}

export class Resource<Throws extends boolean> {
  readonly #core: Core<Throws>;

  constructor(core: Core<Throws>) {
    this.#core = core;
  }

  protected get transport(): Transport {
    return this.#core.transport;
  }

  protected call<T>(operation: Operation, path: readonly string[], params: unknown, options?: CallOptions): Promise<Reply<T, Throws>> {
    return this.#core.reply(this.transport.call<T>(operation, path, params, options));
  }

  protected pagesOf<Page, Item>(operation: Operation, path: readonly string[], params: unknown, options?: CallOptions): List<Page, Item, Throws> {
    return new List(this.#core, operation, path, params, options);
  }
}

/**
 * A list of all pages. `await` gives the first page; `for await` all items, and fetches pages when it needs them. An
 * iteration throws errors, whatever `throwOnError` is.
 */
export class List<Page, Item, Throws extends boolean> implements PromiseLike<Reply<Page, Throws>>, AsyncIterable<Item> {
  readonly #core: Core<Throws>;
  readonly #operation: Operation;
  readonly #fetch: (cursor?: string) => Promise<Answer<Page>>;
  #first: Promise<Answer<Page>> | undefined;

  constructor(core: Core<Throws>, operation: Operation, path: readonly string[], params: unknown, options?: CallOptions) {
    this.#core = core;
    this.#operation = operation;
    this.#fetch = (cursor) => core.transport.call<Page>(operation, path, cursor === undefined ? params : { ...(params as object), cursor }, options);
  }

  then<Value = Reply<Page, Throws>, Failure = never>(
    onPage?: ((page: Reply<Page, Throws>) => Value | PromiseLike<Value>) | null, onError?: ((error: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    return this.#core.reply((this.#first ??= this.#fetch())).then(onPage, onError);
  }

  /** All pages. */
  async *pages(): AsyncGenerator<Page, void, undefined> {
    const seen = new Set<string>();
    for (let page = this.#first ??= this.#fetch(); ; ) {
      const { data, headers } = await page;
      yield data;
      const { has_more, next_cursor } = data as { has_more?: boolean; next_cursor?: string | null };
      if (!has_more || !next_cursor) return;
      if (seen.has(next_cursor)) {
        throw new UnexpectedResponseError(`${this.#operation.name} repeats a cursor, so the list would never end: check the server or its proxy`, 200, headers);
      }
      seen.add(next_cursor);
      page = this.#fetch(next_cursor);
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* ((page as Record<string, unknown>)[this.#operation.items ?? ""] ?? []) as Item[];
  }
}
