import { CancelledError, PostriderError, TimeoutError } from "./errors.js";

/** The signal of a call. It ends at the deadline, or when the caller cancels. */
export class CallSignal {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #aborted: Promise<never>;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `timeout` is in milliseconds; without it there is no deadline. */
  constructor(caller?: AbortSignal, timeout?: number) {
    this.#aborted = new Promise((_, reject) => this.signal.addEventListener("abort", () => reject(this.signal.reason)));
    this.#aborted.catch(() => {});
    if (timeout !== undefined) {
      const text = `The call was not answered within ${timeout} ms: raise \`timeout\`, or check the server and the network`;
      this.#timer = setTimeout(() => this.abort(new TimeoutError(text)), timeout);
    }
    this.#caller = caller;
    if (caller?.aborted) this.#cancel();
    caller?.addEventListener("abort", this.#cancel);
  }

  readonly #cancel = () => this.abort(this.#caller?.reason instanceof PostriderError ? this.#caller.reason : new CancelledError("The caller cancelled the call"));

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: PostriderError): void {
    this.#controller.abort(reason);
  }

  /** Waits for `work`, but no longer than the signal lasts, whether or not `work` heeds the signal. */
  async until<T>(work: () => Promise<T>): Promise<T> {
    this.signal.throwIfAborted();
    const running = work();
    running.catch(() => {});
    return Promise.race([this.#aborted, running]);
  }

  /** Releases the timer and the caller's signal. */
  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#cancel);
  }
}
