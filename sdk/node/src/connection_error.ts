import { ConnectionError } from "./errors.js";

/** Runtimes tell the cause of a failed `fetch` by a code, or only by texts. In order: the first that fits. */
const CAUSES: [RegExp, ConnectionError["reason"], boolean, string][] = [
  [/bad port|are blocked/i, "refused", false, "fetch connects to no port that belongs to another protocol; let the API listen on another port"],
  [/ENOTFOUND|EAI_|ENODATA|dns|resolve/i, "dns", false, "the host was not found; check the base URL and the name servers"],
  [/ECONNREFUSED|refused|FailedToOpenSocket/i, "refused", false, "the connection was refused; check that the server runs and that the base URL has its port"],
  [/CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO_|EPROTO|corrupt message/i, "tls", false, "TLS failed; check the certificate with its name and issuer, and that the port speaks TLS"],
  [/CONNECT_TIMEOUT|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|\(Connect\)/i, "other", false, "no connection; check the base URL, the network and the firewall"],
  [/ECONNRESET|EPIPE|UND_ERR_SOCKET|reset|closed|terminated/i, "reset", true, "the connection was lost before the answer; the request may have been carried out"],
  [/^/, "other", true, "the request failed; check the base URL and the network"],
];

/** The typed error of a failed `fetch`. `redacted` removes the API key from a text. */
export function connectionError(error: unknown, host: string, redacted: (text: string) => string): ConnectionError {
  const { message, code, cause } = (error ?? {}) as { message?: string; code?: string; cause?: { code?: string; message?: string } };
  const known = cause?.code ?? code;
  const text = redacted([known, cause?.message, message].filter(Boolean).join(" "));
  // A text can have the host's name, such as `dns.example.com`; a code cannot.
  const [, reason, sent, advice] = CAUSES.find(([pattern]) => pattern.test(known ?? text)) as (typeof CAUSES)[number];
  return new ConnectionError(`${host}: ${advice} (${text})`, { reason, sent });
}
