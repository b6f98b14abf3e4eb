// Runs the affiliate browser script and the API reference in a real Chromium: a shop on loopback, and the API or a
// simulation of it.
// `tests/browser/run` starts this; the cases are in tests/browser/cases. Each case has a browser without state, and its
// own shop and simulated API. A case is a function, or `{run, blocked, milliseconds}`: `blocked` for a browser that blocks
// all cookies, and another timeout.
import { createRequire } from "node:module";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { open } from "./shop.mjs";
import { start as serve } from "./server.mjs";
import { start } from "./stand_in.mjs";
import { World } from "./world.mjs";

const FAMILIES = ["links", "cookies", "ready", "consent", "people", "pages", "hostile", "below", "documents", "circle", "reference", "dashboard", "templates", "reauthentication", "console", "portal", "connected_app", "inbox"];
const SITES = ["shop.localhost", "other.localhost", "shop.co.uk", "shop.github.io", "localhost", "127.0.0.1"];
const SCRIPT = new URL("../../web/stx.js", import.meta.url);
const SCRIPT_BYTES_MAX = 4 << 10;
/** Timeout of a case. */
const CASE_MS = 60_000;

const { values: given } = parseArgs({
  options: {
    "api": { type: "string" },
    "key": { type: "string" },
    "tokens": { type: "string", default: "ada,bob" },
    "shop-port": { type: "string", default: "0" },
    "server": { type: "string" },
    "server-port": { type: "string", default: "0" },
    "only": { type: "string", default: "" },
    "brief": { type: "boolean", default: false },
    "chromium": { type: "string" },
    "modules": { type: "string" },
  },
});
// The server needs the shop's origins before the shop opens, so the port must be fixed.
if (given.server && given["shop-port"] === "0") given["shop-port"] = "2829";
const { chromium } = createRequire(join(given.modules, "x.js"))("playwright-core");
const launch = {
  executablePath: given.chromium,
  // All host names resolve to this machine.
  args: ["--disable-gpu", "--host-resolver-rules=MAP * 127.0.0.1" + (given.api ? `, EXCLUDE ${new URL(given.api).hostname}` : "")],
  chromiumSandbox: false,
};

/** The server that was started for the cases, if any. */
let server;

/** The API: a running server, or a simulation whose partner links lead to this shop. */
async function api(shop) {
  if (server) return { ...server, stop: () => {} };
  const tokens = given.tokens.split(",");
  if (given.api) return { url: given.api.replace(/\/$/, ""), key: given.key, tokens, stop: () => {} };
  const allows = (origin) => SITES.some((site) => origin && `.${new URL(origin).hostname}`.endsWith("." + site));
  return Object.assign(
    await start({ allows: (origin) => origin != "null" && allows(origin), landing: shop.landing }),
    { tokens },
  );
}

async function run({ name, run, blocked, milliseconds = CASE_MS }, lane) {
  const port = Number(given["shop-port"]);
  const shop = await open({ port, securePort: given.server ? port + 1 : 0 });
  const program = await api(shop);
  shop.api = program.url;
  const room = blocked && mkdtempSync(join(tmpdir(), "browser-"));
  const context = blocked ? await distrustful(room) : (lane.context ??= await lend(lane.browser));
  const world = new World({ context, shop, program, modules: given.modules, binary: given.server, isBrief: given.brief });
  const begun = performance.now();
  let watch;
  const hung = new Promise((_, fail) => (watch = setTimeout(fail, milliseconds, new Error("timed out"))));
  try {
    await Promise.race([run(world), hung]);
    if (world.strange.length) throw new Error("error or dialog in a page: " + world.strange.join("; "));
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    console.log(`ok    ${name} (${seconds} s)`);
    return true;
  } catch (error) {
    console.log(`FAIL  ${name}\n      ${String(error.stack).replaceAll("\n", "\n      ")}`);
    return false;
  } finally {
    clearTimeout(watch);
    if (blocked) await context.close();
    else if (!(await world.leave())) lane.context = null;
    await Promise.all([shop.close(), program.stop()]);
    if (room) rmSync(room, { recursive: true, force: true });
  }
}

/** A browser context without state. One page stays open, so that the renderer process is kept. */
async function lend(browser) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  await context.newPage();
  return context;
}

/** A browser that blocks all cookies, and with them all storage. */
function distrustful(room) {
  mkdirSync(join(room, "Default"));
  const settings = { profile: { default_content_setting_values: { cookies: 2 } } };
  writeFileSync(join(room, "Default", "Preferences"), JSON.stringify(settings));
  return chromium.launchPersistentContext(room, launch);
}

async function cases() {
  const found = [];
  for (const family of FAMILIES) {
    const { anywhere = {}, withStandIn = {}, withServer = {} } = await import(`./cases/${family}.mjs`);
    const special = server ? withServer : given.api ? {} : withStandIn;
    for (const [name, of] of Object.entries({ ...anywhere, ...special })) {
      found.push({ name: `${family}: ${name}`, ...(typeof of == "function" ? { run: of } : of) });
    }
  }
  return found.filter(({ name }) => name.includes(given.only));
}

async function main() {
  const bytes = readFileSync(SCRIPT).length;
  if (bytes >= SCRIPT_BYTES_MAX)
    throw new Error(`web/stx.js has ${bytes} bytes; the limit is ${SCRIPT_BYTES_MAX} (exclusive)`);
  if (given.server) {
    const [binary, port] = [given.server, Number(given["server-port"])];
    server = await serve({ binary, shopPort: given["shop-port"], port });
  }
  const waiting = await cases(),
    count = waiting.length;
  const browser = await chromium.launch(launch);
  let held = 0;
  const lane = async () => {
    const own = { browser, context: null };
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      if (await run(next, own)) held += 1;
    }
  };
  // A fixed port and a real server's visitors cannot be shared by concurrent cases.
  await Promise.all(Array.from({ length: given.api || given.server ? 1 : 3 }, lane));
  await browser.close();
  console.log(`${held} of ${count} cases passed; web/stx.js has ${bytes} bytes`);
  process.exitCode = count && held == count ? 0 : 1;
}

// After a failed case, its pending waits also fail when its pages are closed.
process.on("unhandledRejection", () => {});
try {
  await main();
} finally {
  await server?.stop();
}
