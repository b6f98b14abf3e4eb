import { CancelledError, type PostriderError, TimeoutError } from "./errors.js";

/** The signal of a call. It ends at the deadline, or when the caller cancels. */
export class CallSignal extends AbortController {
  readonly #caller: AbortSignal | undefined;
  readonly #aborted: Promise<never>;
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #cancel = () => this.abort(new CancelledError("The caller cancelled the call"));

  /** `timeout` is in milliseconds; without it there is no deadline. */
  constructor(caller?: AbortSignal, timeout?: number) {
    super();
    this.#aborted = new Promise((_, reject) => this.signal.addEventListener("abort", () => reject(this.signal.reason)));
    this.#aborted.catch(() => {});
    const text = `The call was not answered within ${timeout} ms: raise \`timeout\`, or check the server and the network`;
    if (timeout !== undefined) this.#timer = setTimeout(() => this.abort(new TimeoutError(text)), timeout);
    this.#caller = caller;
    caller?.addEventListener("abort", this.#cancel);
    if (caller?.aborted) this.#cancel();
  }

  override abort(reason: PostriderError): void {
    super.abort(reason);
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
