/** Reads the live event stream (server-sent events), and reconnects after the last event when the connection is lost. */

import { CallSignal } from "./call_signal.js";
import { ConnectionError, type PostriderError, TimeoutError, UnexpectedResponseError } from "./errors.js";
import { isRetried, type Transport } from "./transport.js";

const SILENCE_MAX_MS = 60_000;
const EVENT_BYTES_MAX = 1 << 20;

export interface StreamOptions<Type extends string = string> {
  /** Only these types. */
  types?: readonly (Type | (string & {}))[];
  /** Begins after the event with this `cursor`, instead of now. */
  after?: string;
  /** Ends the stream with `CancelledError`; `break` in a `for await` ends it, too. */
  signal?: AbortSignal;
}

/** Events with their `cursor`. Ends with an error of the API that a later attempt would get again, such as 401. */
export async function* streamEvents<Event extends { cursor: string }>(transport: Transport, path: string, options: StreamOptions = {}): AsyncGenerator<Event, void, undefined> {
  const query = options.types?.length ? `?types=${options.types.map(encodeURIComponent).join(",")}` : "";
  const position = { cursor: options.after ?? "" };
  let hasConnected = false;
  for (let failures = 0; ; failures++) {
    const call = new CallSignal(options.signal);
    let lost: PostriderError | undefined;
    try {
      const body = await watched(call, transport.open(path + query, position.cursor ? { "last-event-id": position.cursor } : {}, call));
      hasConnected = true;
      for await (const event of readEvents<Event>(body, position, call)) {
        failures = 0;
        yield event;
      }
    } catch (error) {
      lost = error as PostriderError;
      const isUnknownServer = !hasConnected && failures >= transport.maxRetries({});
      if (isUnknownServer || !(isRetried(error, true) || error instanceof TimeoutError)) throw error;
    } finally {
      call.abort(new TimeoutError("The stream was closed"));
      call.end();
    }
    await transport.clock.sleep(transport.backoff(failures, lost), options.signal);
  }
}

/** Ends the connection if nothing comes for a minute; the server sends a comment more often. */
async function watched<T>(call: CallSignal, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => call.abort(new TimeoutError("The event stream was silent for 60 seconds")), SILENCE_MAX_MS);
  try {
    return (await call.until(() => work)) as T;
  } finally {
    clearTimeout(timer);
  }
}

/** Parses `id` and `data` fields (HTML Living Standard, 9.2). `position` is the last `id`, also one without an event. */
async function* readEvents<Event>(body: ReadableStream<Uint8Array>, position: { cursor: string }, call: CallSignal): AsyncGenerator<Event, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let buffer = "";
  let event = "";
  let data = "";
  let cursor = position.cursor;
  try {
    for (;;) {
      const { done, value } = await watched(call, reader.read()).catch(() => {
        throw call.signal.aborted ? call.signal.reason : new ConnectionError("The event stream was lost", { reason: "reset", sent: true });
      });
      if (done) return;
      buffer += decoder.decode(value, { stream: true });
      const lines = buffer.split(/\r\n|\n|\r(?!$)/);
      buffer = lines.pop() ?? "";
      for (const line of lines) {
        const [, name, text = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
        if (name === "data") data += `${text}\n`;
        else if (name === "id") cursor = text;
        checkSize((event += `${line}\n`));
        if (line !== "") continue;
        position.cursor = cursor;
        if (data !== "") yield parseEvent<Event>(data, cursor);
        event = data = "";
      }
      checkSize(event + buffer);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function checkSize(text: string): void {
  // A unit of the length has at most three bytes.
  if (text.length > EVENT_BYTES_MAX / 3 && new Blob([text]).size > EVENT_BYTES_MAX) throw new UnexpectedResponseError("An event of the stream is larger than 1 MiB: check the proxy in front of the API", 200, {});
}

function parseEvent<Event>(text: string, cursor: string): Event {
  try {
    return { cursor, ...JSON.parse(text) };
  } catch {
    throw new UnexpectedResponseError("An event of the stream is not JSON: check the proxy in front of the API", 200, {}, text);
  }
}
