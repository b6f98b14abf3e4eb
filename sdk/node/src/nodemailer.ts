/**
 * A transport for Nodemailer:
 *
 *     nodemailer.createTransport(postriderTransport({ apiKey, baseUrl }))
 *
 *   mail ─► Nodemailer resolves streams, paths and addresses ─► params of emails.send ─► info with messageId msg_…
 */

import { Postrider } from "./client.js";
import { ConfigurationError } from "./errors.js";
import type { EmailAttachment, SendEmailParams } from "./generated/params.js";
import { VERSION } from "./generated/version.js";
import { toBase64 } from "./operation.js";
import type { ClientOptions } from "./options.js";

export interface PostriderTransportOptions extends Omit<ClientOptions, "throwOnError"> {
  /** By default POSTRIDER_API_KEY of the environment. */
  apiKey?: string;
}

/** Options of a mail beside Nodemailer's. Most can also be headers: `Service-Tags`, `Service-Category` and so on. */
export interface PostriderMailOptions
  extends Pick<SendEmailParams, "tags" | "category" | "scheduledAt" | "template" | "variables" | "unsubscribe" | "expiresIn" | "onSuppressed"> {
  /** The server sends the mail once, however often it gets it with this key within 24 hours. */
  idempotencyKey?: string;
}

export interface PostriderSentInfo {
  /** The email's id, `msg_…`. */
  messageId: string;
  envelope: { from: string | false; to: string[] };
  accepted: string[];
  rejected: string[];
  pending: string[];
  response: string;
  /** What the API warned of. */
  warnings: string[];
}

interface MailAddress {
  name?: string;
  address?: string;
  group?: MailAddress[];
}

interface MailAttachment {
  filename?: string | false;
  contentType?: string | false;
  content?: unknown;
  contentDisposition?: string;
  encoding?: string;
  cid?: string;
  headers?: object;
  raw?: unknown;
}

/** What Nodemailer gives a transport, as far as it is used. */
interface MailMessage {
  data: object;
  normalize(callback: (error: Error | null, data?: object) => void): void;
}

interface NormalizedMail extends PostriderMailOptions {
  from?: MailAddress;
  to?: MailAddress[];
  cc?: MailAddress[];
  bcc?: MailAddress[];
  replyTo?: MailAddress[];
  subject?: string;
  html?: string;
  text?: string;
  attachments?: MailAttachment[];
  headers?: object;
  normalizedHeaders?: Record<string, string>;
  envelope: PostriderSentInfo["envelope"];
  priority?: string;
  signal?: AbortSignal;
}

type SendCallback = (error: Error | null, info: PostriderSentInfo) => void;

/** Fields of Nodemailer that the API cannot carry. They are refused, so that no part of a mail is lost. */
const UNSUPPORTED = ["raw", "alternatives", "icalEvent", "amp", "watchHtml", "envelope", "sender", "dsn", "messageId", "date"];

/** The transport for `nodemailer.createTransport`. */
export class PostriderTransport {
  readonly name = "Postrider";
  readonly version = VERSION;
  readonly supportsAbortSignal = true;
  readonly #client: Postrider<true>;

  constructor({ apiKey, ...options }: PostriderTransportOptions = {}) {
    this.#client = new Postrider(apiKey, { ...options, throwOnError: true });
  }

  send(mail: MailMessage, callback: SendCallback): void {
    // Callbacks of Node have no result beside an error.
    const fail = callback as (error: Error) => void;
    this.#send(mail).then((info) => callback(null, info), fail);
  }

  /** Checks the key and the base URL. */
  verify(callback?: (error: Error | null, success?: true) => void): Promise<true> | undefined {
    const checked = this.#client.emails.list({ limit: 1 }).then(() => true as const);
    if (!callback) return checked;
    checked.then(() => callback(null, true), (error) => callback(error));
    return undefined;
  }

  async #send(mail: MailMessage): Promise<PostriderSentInfo> {
    const given = mail.data as Record<string, unknown>;
    const unsupported = UNSUPPORTED.find((name) => given[name] !== undefined && given[name] !== null);
    if (unsupported) throw unsupportedField(unsupported);
    checkAttachments((given.attachments ?? []) as MailAttachment[]);
    const data = await new Promise<NormalizedMail>((resolve, reject) => {
      mail.normalize((error, normalized) => (error ? reject(error) : resolve(normalized as NormalizedMail)));
    });
    const headers = new MailHeaders(data);
    const params: SendEmailParams = {
      from: data.from && { email: data.from.address ?? "", ...(data.from.name ? { name: data.from.name } : {}) },
      to: texts(data.to) ?? [],
      cc: texts(data.cc),
      bcc: texts(data.bcc),
      replyTo: texts(data.replyTo),
      subject: data.subject,
      html: data.html,
      text: data.text,
      attachments: data.attachments?.map(attachment),
      tags: single("tags", data.tags, headers.tags()),
      category: single("category", data.category, headers.take("service-category")),
      scheduledAt: single("scheduledAt", data.scheduledAt, headers.take("service-scheduled-at")),
      template: single("template", data.template, headers.take("service-template")),
      variables: single("variables", data.variables, headers.json<SendEmailParams["variables"]>("service-variables")),
      unsubscribe: single("unsubscribe", data.unsubscribe, headers.json<SendEmailParams["unsubscribe"]>("service-unsubscribe")),
      expiresIn: data.expiresIn,
      onSuppressed: data.onSuppressed,
    };
    const keys = [data.idempotencyKey, headers.take("service-idempotency-key"), headers.take("idempotency-key")];
    const idempotencyKey = single("idempotencyKey", ...keys);
    params.headers = headers.rest();
    const sent = await this.#client.emails.send(params, { idempotencyKey, signal: data.signal });
    return {
      messageId: sent.id,
      envelope: data.envelope,
      accepted: data.envelope.to,
      rejected: [],
      pending: [],
      response: `200 ${sent.id} ${sent.status}`,
      warnings: sent.warnings ?? [],
    };
  }
}

export function postriderTransport(options?: PostriderTransportOptions): PostriderTransport {
  return new PostriderTransport(options);
}

/** Headers of a mail, of which some are options of the API. */
class MailHeaders {
  readonly #values = new Map<string, { name: string; value: string }>();

  constructor({ headers = {}, normalizedHeaders = {}, priority }: NormalizedMail) {
    if (priority === "high" || priority === "low") {
      this.#add("X-Priority", priority === "high" ? "1 (Highest)" : "5 (Lowest)");
      this.#add("Importance", priority);
    }
    for (const [name, value] of Object.entries(normalizedHeaders)) {
      if (/^(references|in-reply-to|list-.*)$/i.test(name)) this.#add(name, value);
    }
    const entries = Array.isArray(headers) ? headers.map(({ key, value }) => [key, value]) : Object.entries(headers);
    const added = new Set<string>();
    for (const [name, value] of entries) {
      if (added.has(name.toLowerCase())) throw repeatedHeader(name);
      added.add(name.toLowerCase());
      this.#add(name, value);
    }
  }

  #add(name: string, given: unknown): void {
    if (Array.isArray(given) && given.length > 1) throw repeatedHeader(name);
    const one = Array.isArray(given) ? given[0] : given;
    const value = typeof one === "object" && one !== null ? (one as { value?: unknown }).value : one;
    if (value !== undefined && value !== null) this.#values.set(name.toLowerCase(), { name, value: String(value) });
  }

  /** Removes a header and returns its value. */
  take(name: string): string | undefined {
    const value = this.#values.get(name)?.value;
    this.#values.delete(name);
    return value;
  }

  json<T>(name: string): T | undefined {
    const value = this.take(name);
    try {
      return value === undefined ? undefined : JSON.parse(value);
    } catch {
      throw new ConfigurationError(`The header ${name} must be JSON`);
    }
  }

  /** `flow=welcome, step=2`, or JSON. */
  tags(): SendEmailParams["tags"] {
    const text = this.#values.get("service-tags")?.value.trim();
    if (text === undefined || /^[[{]/.test(text)) return this.json("service-tags");
    this.take("service-tags");
    return text.split(",").map((tag) => {
      const [name = "", ...value] = tag.split("=");
      return { name: name.trim(), value: value.join("=").trim() };
    });
  }

  /** What remains is sent with the mail. */
  rest(): Record<string, string> | undefined {
    const unknown = [...this.#values.keys()].find((name) => name.startsWith("service-"));
    if (unknown) throw new ConfigurationError(`The header ${unknown} is no option of the API`);
    return this.#values.size === 0 ? undefined : Object.fromEntries([...this.#values.values()].map(({ name, value }) => [name, value]));
  }
}

/** The value of an option that may be a field of the mail or a header. */
function single<T>(name: string, ...sources: (T | null | undefined)[]): T | undefined {
  const [value, ...others] = sources.filter((one) => one !== undefined && one !== null);
  if (others.length > 0) {
    throw new ConfigurationError(`\`${name}\` occurs more than once, as a field of the mail or a header: give it one value`);
  }
  return value as T | undefined;
}

function repeatedHeader(name: string): ConfigurationError {
  return new ConfigurationError(`The header ${name} occurs more than once, which the API cannot send: give it one value`);
}

function unsupportedField(name: string): ConfigurationError {
  return new ConfigurationError(`The API cannot send a mail with \`${name}\`: leave it out, or send the mail by SMTP`);
}

/** Refuses fields of attachments that the API cannot carry, such as a disposition that does not follow from `cid`. */
function checkAttachments(attachments: MailAttachment[]): void {
  for (const { raw, headers, contentDisposition, cid } of attachments) {
    if (raw !== undefined) throw unsupportedField("attachments.raw");
    if (Object.keys(headers ?? {}).length > 0) throw unsupportedField("attachments.headers");
    const disposition = cid ? "inline" : "attachment";
    if (contentDisposition && contentDisposition.toLowerCase() !== disposition) {
      throw new ConfigurationError(
        `\`attachments.contentDisposition\` of an attachment ${cid ? "with" : "without"} \`cid\` must be \`${disposition}\`: change it, or send the mail by SMTP`,
      );
    }
  }
}

function texts(addresses: MailAddress[] | undefined | null): string[] | undefined {
  return addresses?.flatMap(({ name, address, group }) => {
    if (group) return texts(group) ?? [];
    return name ? `"${name.replace(/["\\]/g, "\\$&")}" <${address}>` : (address ?? []);
  });
}

function attachment({ filename, contentType, content, encoding, cid }: MailAttachment): EmailAttachment {
  return {
    name: filename || "attachment",
    contentType: contentType || undefined,
    data: typeof content === "string" && encoding === "base64" ? content : toBase64(bytes(content)),
    contentId: cid,
  };
}

function bytes(content: unknown): Uint8Array {
  return content instanceof Uint8Array ? content : new TextEncoder().encode(String(content ?? ""));
}
