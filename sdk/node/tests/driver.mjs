// Exposes the SDK to sdk/run: one JSON object for each request on standard input, one for each answer on standard output.
import { createInterface } from "node:readline";
import * as sdk from "postrider";

let client;
const ownOptions = ({ idempotency_key, if_match, timeout_ms, max_retries, cancel_after_ms, headers } = {}) => ({
  headers,
  idempotencyKey: idempotency_key,
  ifMatch: if_match,
  timeout: timeout_ms,
  maxRetries: max_retries,
  signal: cancel_after_ms === undefined ? undefined : AbortSignal.timeout(cancel_after_ms),
});
const invoke = (name, { path = [], params = {}, options }) => {
  const parts = name.split(".");
  const method = parts.pop();
  const resource = parts.reduce((parent, part) => parent[part], client);
  return resource[method](...path, params, ownOptions(options));
};
const call = async (request) => {
  const { data, error, headers, requestId, warnings } = await invoke(request.call, request);
  if (error) throw error;
  return { data: data instanceof Uint8Array ? { base64: Buffer.from(data).toString("base64") } : data, headers, request_id: requestId, warnings };
};
const limited = async (items, count) => {
  const found = [];
  for await (const item of items) if (found.push(item) >= count) break;
  return { data: found };
};
const handlers = {
  new: ({ new: { api_key, base_url, timeout_ms, max_retries } }) => {
    client = new sdk.Postrider(api_key, { baseUrl: base_url, timeout: timeout_ms, maxRetries: max_retries });
    return {};
  },
  call,
  iterate: (request) => limited(invoke(request.iterate, request), request.count_max ?? Infinity),
  verify: async ({ verify: { payload, headers, secrets, tolerance_s, now } }) => ({
    data: await sdk.constructEvent(payload, headers, secrets, { tolerance: tolerance_s, now }),
  }),
  test_header: async ({ test_header: { event_id, ...parts } }) => ({ data: await sdk.generateTestHeader({ ...parts, id: event_id }) }),
  stream: ({ stream: { types, after, count } }) => limited(client.webhookEvents.stream({ types, after }), count),
  resolve_unconfirmed: async ({ resolve_unconfirmed: request, timeout_ms }) => {
    const { error } = await invoke(request.call, request);
    if (!(error instanceof sdk.SendUnconfirmedError)) throw error ?? new Error("the call did not fail");
    return { data: await error.resolve({ timeout: timeout_ms }) };
  },
  wait_for_email: async ({ wait_for_email: { to, subject, timeout_ms } }) => ({ data: await client.dev.waitForEmail({ to, subject, timeout: timeout_ms }) }),
  last_response: () => {
    const { status, requestId, rateLimit } = client.lastResponse;
    return { data: { status, request_id: requestId, rate_limit: rateLimit } };
  },
};
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const described = (error) => {
  const fields = Object.entries(error).map(([name, value]) => [snake(name), value]);
  return { class: error.name, message: error.message, ...Object.fromEntries(fields) };
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const handler = Object.keys(handlers).find((name) => name in request);
  const answer = await Promise.resolve(request).then(handlers[handler]).then((ok) => ({ ok }), (error) => ({ error: described(error) }));
  process.stdout.write(`${JSON.stringify({ id: request.id, ...answer })}\n`);
}
process.exit();
