/** The errors that have behaviour of their own; generated/error_classes.ts has the others. */

import type { EmailDetail } from "./generated/types.js";

export type Headers = Record<string, string>;

/** Base class of all errors. */
export class PostriderError extends Error {
  /** Set if the server answered. */
  declare readonly status?: number;
  declare readonly code?: string;
  declare readonly requestId?: string;
  /** Headers of the answer, with names in lower case. */
  declare readonly headers?: Headers;

  /** `fields` become fields of the error. */
  constructor(message: string, fields: object = {}) {
    super(message);
    Object.assign(this, fields);
  }

  /** The error with its message, which `JSON.stringify` leaves out of other errors. */
  toJSON(): { name: string; message: string } {
    return Object.assign({ name: this.name, message: this.message }, this);
  }
}

/** No answer came. */
export class ConnectionError extends PostriderError {
  declare readonly reason: "dns" | "refused" | "reset" | "tls" | "other";
  /** False if the request cannot have reached the server. */
  declare readonly sent: boolean;
}

/** An answer that is not the API's, for example the page of a proxy. */
export class UnexpectedResponseError extends PostriderError {
  declare readonly status: number;
  declare readonly headers: Headers;
  declare readonly contentType: string;
  /** The first 200 characters of the body. */
  declare readonly excerpt: string;
  /** True if the connection was lost in the middle of the body. */
  declare readonly endedEarly: boolean;

  constructor(message: string, status: number, headers: Headers, text = "", endedEarly = false) {
    super(message, { status, headers, contentType: headers["content-type"] ?? "", excerpt: text.slice(0, 200), endedEarly });
  }
}

/** An error that the API answered. */
export class ApiError extends PostriderError {
  declare readonly status: number;
  declare readonly code: string;
  declare readonly requestId: string;
  declare readonly headers: Headers;
  /** The page that explains the code. */
  declare readonly docUrl: string;
  declare readonly details: Record<string, any>;
}

/** The server does not know whether it took the email (504). Sending again could deliver it twice: call `resolve`. */
export class SendUnconfirmedError extends ApiError {
  readonly emailId: string = this.details.email_id ?? "";
  #find: (emailId: string, timeout: number) => Promise<EmailDetail> = () => Promise.reject(this);

  /** Sets how `resolve` asks. @internal */
  asking(find: (emailId: string, timeout: number) => Promise<EmailDetail>): this {
    this.#find = find;
    return this;
  }

  /**
   * Asks for the email until it is no longer failed, for at most `timeout` milliseconds (60,000), and returns it. It
   * never sends again. Whatever `throwOnError` is, it throws: `NotFoundError` if the server did not take the email, and
   * the errors of other calls.
   */
  resolve(options: { timeout?: number } = {}): Promise<EmailDetail> {
    return this.#find(this.emailId, options.timeout ?? 60_000);
  }
}
