// A shop: pages that a case writes, a checkout that records its orders, and a reverse proxy to the API below /px/.
// It listens on loopback over http and https and serves every host name.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Opens the shop. `port` is for http and `securePort` for https; 0 takes a free one. /px/ is proxied to `api`. */
export async function open({ port = 0, securePort = 0 }) {
  const shop = { pages: new Map(), orders: [], api: null };
  const serve = (request, response) => answer(shop, request, response);
  const plain = createServer(serve),
    secure = createSecureServer(certificate(), serve);
  await new Promise((done) => plain.listen(port, "127.0.0.1", done));
  await new Promise((done) => secure.listen(securePort, "127.0.0.1", done));
  /** The URL of a path at one of the shop's hosts. */
  shop.at = (host, path = "/") => `http://${host}:${plain.address().port}${path}`;
  shop.secureAt = (host, path = "/") => `https://${host}:${secure.address().port}${path}`;
  /** Adds a page; returns its path. */
  shop.page = (html) => {
    const path = `/page-${shop.pages.size + 1}`;
    shop.pages.set(path, html);
    return path;
  };
  /** The page of a partner's link: the first one added. */
  shop.landing = () => shop.at("www.shop.localhost", "/page-1");
  shop.close = () =>
    Promise.all(
      [plain, secure].map((server) => {
        server.closeAllConnections();
        return new Promise((done) => server.close(done));
      }),
    );
  return shop;
}

function answer(shop, request, response) {
  const { pathname } = new URL(request.url, "http://shop.invalid");
  if (pathname.startsWith("/px/")) return passOn(shop, request, response);
  if (request.method == "POST") return take(shop, request, response);
  const html = shop.pages.get(pathname);
  response.writeHead(html ? 200 : 404, { "content-type": "text/html; charset=utf-8" }).end(html ?? "");
}

/** Records a POST as an order, like a checkout session created from it. */
async function take(shop, request, response) {
  let text = "";
  for await (const piece of request) text += piece;
  const { referral } = Object.fromEntries(new URLSearchParams(text));
  shop.orders.push({ mode: "subscription", ...(referral && { client_reference_id: referral }) });
  response.writeHead(200, { "content-type": "text/html" }).end("<title>Thanks</title>");
}

function passOn(shop, request, response) {
  const to = new URL(shop.api),
    headers = { ...request.headers, host: to.host };
  const path = request.url.slice("/px".length);
  const passed = ask({ host: to.hostname, port: to.port, path, method: request.method, headers }, (answered) => {
    response.writeHead(answered.statusCode, answered.headers);
    answered.pipe(response);
  });
  passed.on("error", () => response.destroy());
  request.pipe(passed);
}

let made;
function certificate() {
  return (made ??= sign());
}

function sign() {
  const room = mkdtempSync(join(tmpdir(), "shop-"));
  const at = (name) => join(room, name);
  try {
    execFileSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=shop.localhost",
        "-keyout",
        at("key.pem"),
        "-out",
        at("cert.pem"),
      ],
      { stdio: "ignore" },
    );
    return { key: readFileSync(at("key.pem")), cert: readFileSync(at("cert.pem")) };
  } finally {
    rmSync(room, { recursive: true });
  }
}
