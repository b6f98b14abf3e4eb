// A simulation of the API for the browser script: it behaves as the script expects of a server, and stores its state in
// memory.
//
//   node tests/browser/stand_in.mjs [PORT]     alone, with the key pk_test and the partners ada and bob
//
// POST /affiliate/visits    204 unless the token (or, with `stx_ref`, the visit) is known; else the attributed visit
// POST /affiliate/signups   202 for any input
// POST /affiliate/identify  202 for any input
// GET  /r/{token}?key=      302 to the partner's page, with the visit in `stx_ref`
// GET  /stx.js              web/stx.js
import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const SCRIPT = new URL("../../web/stx.js", import.meta.url);
const COOKIE_DAYS = 60;
const DAY_MS = 24 * 3600 * 1000;
const BODY_BYTES_MAX = 8 << 10;
export const PARTNERS = {
  ada: { id: "aff_ada", name: "Ada Lovelace", first_name: "Ada" },
  bob: { id: "aff_bob", name: "Bob Bemer", first_name: "Bob" },
};

/** Listens on loopback. `allows` returns whether an origin is allowed; `landing` is the target of `/r/`. */
export async function start({ port = 0, key = "pk_test", allows = () => true, landing = () => "/" } = {}) {
  const program = {
    key,
    allows,
    landing,
    attribution: "first_click",
    visits: new Map(),
    standing: new Map(),
    methods: new Set(),
  };
  const arrivals = new EventEmitter();
  /** Waits for the next request to a path: its headers and body. */
  program.arrival = async (path) => (await once(arrivals, path))[0];
  const server = createServer((request, response) => {
    answer(program, arrivals, request, response).catch((error) => response.destroy(error));
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  program.url = `http://127.0.0.1:${server.address().port}`;
  program.stop = () => (server.closeAllConnections(), new Promise((done) => server.close(done)));
  return program;
}

async function answer(program, arrivals, request, response) {
  const url = new URL(request.url, "http://api.invalid");
  const text = request.method == "POST" ? await body(request) : "";
  program.methods.add(request.method);
  arrivals.emit(url.pathname, { headers: request.headers, text });
  if (url.pathname == "/stx.js") {
    response.writeHead(200, {
      "content-type": "text/javascript; charset=utf-8",
      "cross-origin-resource-policy": "cross-origin",
      "cache-control": "public, max-age=3600",
    });
    return response.end(await readFile(SCRIPT));
  }
  const origin = request.headers.origin ?? "";
  const allowed = program.allows(origin);
  response.setHeader("vary", "Origin");
  if (allowed) response.setHeader("access-control-allow-origin", origin);
  if (request.method == "POST" && ["/affiliate/signups", "/affiliate/identify"].includes(url.pathname)) {
    return json(response, 202, { ok: true });
  }
  if (request.method == "POST" && url.pathname == "/affiliate/visits") {
    if (!allowed)
      return json(response, 403, { error: { code: "forbidden", message: "origin is not allowed" } });
    return visit(program, JSON.parse(text), response);
  }
  if (request.method == "GET" && url.pathname.startsWith("/r/")) return redirect(program, url, response);
  json(response, 404, { error: { code: "not_found", message: "not found" } });
}

async function body(request) {
  const pieces = [];
  let bytes = 0;
  for await (const piece of request) {
    bytes += piece.length;
    if (bytes > BODY_BYTES_MAX) throw new Error("body too large");
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

function visit(program, told, response) {
  const known =
    told.key == program.key && (told.param == "stx_ref" ? program.visits.get(told.token) : click(program, told));
  if (!known) return response.writeHead(204).end();
  program.standing.set(told.visitor, known);
  response.setHeader("set-cookie", cookies(known, told));
  json(response, 200, { referral: known.id, affiliate: known.affiliate, expires_at: known.expires_at });
}

/** The visit that gets the credit after a click: the first one or this one. */
function click(program, told) {
  const affiliate = PARTNERS[String(told.token).toLowerCase()];
  if (!affiliate) return null;
  const standing = program.standing.get(told.visitor);
  if (standing && program.attribution == "first_click") return standing;
  const id = "vis_" + randomBytes(13).toString("hex");
  const made = { id, affiliate, expires_at: new Date(Date.now() + COOKIE_DAYS * DAY_MS).toISOString() };
  program.visits.set(id, made);
  return made;
}

/** Browsers store these only if the script is served below the site's own address. */
function cookies({ id, affiliate, expires_at }, { visitor, domain, url }) {
  const until = `; Path=/; SameSite=Lax${url.startsWith("https:") ? "; Secure" : ""}${domain ? `; Domain=${domain}` : ""}`;
  const visitorUntil = new Date(Date.now() + 396 * DAY_MS);
  return [
    `stx_ref=${id}; Expires=${new Date(expires_at).toUTCString()}${until}`,
    `stx_aff=${encodeURIComponent(JSON.stringify(affiliate))}; Expires=${new Date(expires_at).toUTCString()}${until}`,
    `stx_vid=${visitor}; Expires=${visitorUntil.toUTCString()}${until}`,
  ];
}

function redirect(program, url, response) {
  const token = url.pathname.slice("/r/".length);
  const made =
    url.searchParams.get("key") == program.key && click(program, { token, visitor: randomBytes(16).toString("hex") });
  const to = new URL(program.landing(token));
  if (made) to.searchParams.set("stx_ref", made.id);
  response.writeHead(302, { "location": to.href, "cache-control": "no-store" }).end();
}

function json(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

if (process.argv[1] == fileURLToPath(import.meta.url)) {
  const { url } = await start({ port: Number(process.argv[2] ?? 0) });
  console.log(url);
}
