/** `Operation`: an entry of the generated table, and the request that it makes of the caller's parameters. */

import { ConfigurationError } from "./errors.js";

export interface Operation {
  /** Name of the method, for example `emails.send`. */
  readonly name: string;
  readonly method: string;
  /** With `{name}` for each path parameter. */
  readonly path: string;
  /** The API's names of query parameters. */
  readonly query: readonly string[];
  readonly body: boolean;
  readonly idempotent: boolean;
  /** Whether an attempt that may have been carried out can be repeated. */
  readonly retry: boolean;
  /** Media type of the answer. */
  readonly mediaType: string;
  /** Field of the answer that has the items of a page. */
  readonly items?: string;
  readonly fields?: () => Fields;
}

/**
 * Fields of an object by camelCase name, if the API's name differs or the value has such fields, too. `*` stands for
 * an object that has others beside them.
 */
export type Fields = { readonly [name: string]: readonly [wireName: string, fields?: () => Fields] };

/** Parameters in camelCase, or with the API's names. */
export type Params<T> = T | Wire<T>;

/** The parameters of a method that has none. */
export type NoParams = { readonly [name: string]: never };

type Wire<T> = T extends Date | Uint8Array | null | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { [Name in keyof T as Name extends string ? Snake<Name> : Name]: Wire<T[Name]> }
      : T;

type Snake<Name extends string> = Name extends `${infer Letter}${infer Rest}`
  ? `${Letter extends Lowercase<Letter> ? Letter : `_${Lowercase<Letter>}`}${Snake<Rest>}`
  : Name;

/** Values of the caller in the API's names. */
type WireObject = Record<string, unknown>;

export function buildRequest(baseUrl: string, operation: Operation, path: readonly string[], params: unknown): { url: URL; body?: string } {
  let index = 0;
  const filled = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(checkedSegment(name, path[index++])));
  const url = new URL(baseUrl + filled);
  const body: WireObject = Object.create(null);
  try {
    const wire = toWire(params ?? {}, operation.fields?.() ?? {}, "") as WireObject;
    for (const [name, value] of Object.entries(wire)) {
      if (operation.body && !operation.query.includes(name)) body[name] = value;
      else if (value !== undefined && value !== null) url.searchParams.set(name, queryValue(value));
    }
    return operation.body ? { url, body: JSON.stringify(body) } : { url };
  } catch (error) {
    throw new ConfigurationError(`The parameters of ${operation.name} cannot be sent: ${(error as Error).message}`);
  }
}

function checkedSegment(name: string, value: unknown): string {
  const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
  // URLs resolve `.` and `..`: the request would go to another path.
  if (/^\.{0,2}$/.test(text)) throw new ConfigurationError(`The path parameter \`${name}\` must be a text, for example an id`);
  return text;
}

function queryValue(value: unknown): string {
  return Array.isArray(value) ? value.join(",") : value instanceof Date ? value.toISOString() : String(value);
}

/** Renames known fields and encodes bytes of attachments. Keys of free maps and unknown fields stay as they are. */
function toWire(value: unknown, fields: Fields, place: string): unknown {
  if (Array.isArray(value)) return value.map((entry, index) => toWire(entry, fields, `${place}[${index}]`));
  if (value instanceof ArrayBuffer) return toWire(new Uint8Array(value), fields, place);
  if (ArrayBuffer.isView(value)) {
    // The only field in base64 that the API has. Elsewhere, recipients would read the base64.
    if (/^attachments\[\d+\]\.data$/.test(place)) return toBase64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    throw new TypeError(`bytes are accepted as \`data\` of an attachment only; make a text of \`${place || "params"}\``);
  }
  const prototype = typeof value === "object" && value !== null && Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const wire: WireObject = Object.create(null); // A field `__proto__` is then one like the others.
  for (const [name, entry] of Object.entries(value as object)) {
    const camel = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    const known = Object.hasOwn(fields, camel) ? fields[camel] : undefined;
    const other = fields["*"] ? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) : name;
    wire[known?.[0] ?? other] = toWire(entry, known?.[1]?.() ?? {}, place ? `${place}.${name}` : name);
  }
  return wire;
}

export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let start = 0; start < bytes.length; start += 0x8000) binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(binary);
}
