/** Options of clients and calls, and their checks. */

import { ConfigurationError, type Headers } from "./errors.js";

export interface ClientOptions<Throws extends boolean = boolean> {
  /** Address of the API, for example `https://mail.example.com`; by default `POSTRIDER_BASE_URL` of the environment. */
  baseUrl?: string;
  /** Deadline of a call with its retries, in milliseconds (30,000). */
  timeout?: number;
  /** Retries after the first attempt (2). */
  maxRetries?: number;
  /** Whether calls resolve with the data and reject with errors, instead of resolving with `{data, error, headers}`. */
  throwOnError?: Throws;
  /** The function that sends requests, instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /** Added to the header `User-Agent`. */
  userAgent?: string;
  /** Called with each warning of the API, for example about an unknown field, and the name of the method. */
  onWarning?: (warning: string, method: string) => void;
  /** Accepts a base URL with `http:` to another machine. The API key is then sent in clear text. */
  allowInsecureHttp?: boolean;
  /** Replaces the clock; for tests of the SDK. @internal */
  clock?: Partial<Clock>;
}

export interface CallOptions {
  /** The server carries the request out once within 24 hours. Where an operation has such a key, the SDK makes one by default. */
  idempotencyKey?: string;
  /** The version that the object must still have. */
  ifMatch?: string;
  /** Instead of the client's, in milliseconds. */
  timeout?: number;
  /** Instead of the client's. */
  maxRetries?: number;
  /** Cancels the call. */
  signal?: AbortSignal;
  headers?: Readonly<Record<string, string>>;
}

/** Times are in milliseconds. */
export interface Clock {
  now(): number;
  /** A number from 0 to 1. */
  random(): number;
  sleep(duration: number, signal?: AbortSignal): Promise<void>;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (duration, signal) =>
    new Promise<void>((resolve) => {
      if (signal?.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, duration);
      signal?.addEventListener("abort", end);
    }),
};

/** Reads a variable of the environment; undefined in runtimes without one. */
export function environment(name: string): string | undefined {
  try {
    return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name];
  } catch {
    return undefined; // Deno without the permission.
  }
}

export function checkedKey(key: string | undefined): string {
  if (!key) throw new ConfigurationError("The API key is missing: pass it to the client, or set POSTRIDER_API_KEY");
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key)) {
    throw new ConfigurationError("The API key has a space, a line break or a character outside ASCII: copy it again without them");
  }
  return key;
}

/** The base URL without a slash at its end. Errors do not repeat the text, because it could be the key. */
export function checkedBaseUrl(text: string | undefined, allowInsecureHttp: boolean): string {
  const wanted = "the address of the API, for example https://mail.example.com";
  if (!text) throw new ConfigurationError(`The base URL is missing: pass \`baseUrl\`, or set POSTRIDER_BASE_URL, to ${wanted}`);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
  if (!isPlain) throw new ConfigurationError(`The base URL must be ${wanted}; without user, password, query and fragment`);
  const isLoopback = /^((.+\.)?localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url.protocol === "http:" && !isLoopback && !allowInsecureHttp) {
    throw new ConfigurationError(`The base URL http://${url.host} would send the API key in clear text: use https://, or set \`allowInsecureHttp\``);
  }
  return url.href.replace(/\/+$/, "");
}

export function checkedTimeout(timeout: number): number {
  if (!(timeout > 0)) throw new ConfigurationError("`timeout` must be a number of milliseconds above 0");
  return Math.min(timeout, 2 ** 31 - 1); // A longer timer would end at once.
}

export function checkedRetries(retries: number): number {
  if (!Number.isInteger(retries) || retries < 0) throw new ConfigurationError("`maxRetries` must be a whole number from 0");
  return retries;
}

/** Headers that say where a request ends and how the connection is used. */
const FRAMING = /^(connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** Checks names (in lower case) and values, so that no value can add a header. */
export function checkedHeaders(headers: Headers): Headers {
  for (const [name, value] of Object.entries(headers)) {
    if (FRAMING.test(name)) throw new ConfigurationError(`The header ${name} cannot be set: the SDK writes it itself`);
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !/^[\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new ConfigurationError(`The header ${JSON.stringify(name)} has a line break or another character that headers cannot have`);
    }
  }
  return headers;
}
