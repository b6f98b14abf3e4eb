// A real server with a live affiliate program: `postrider dev` on loopback with its own data directory.
//
//   start({binary, shopPort}) ─► {url, key, tokens, website, api(method, path, body), pay(event), told, stop}
//
// The program's website is the shop's first page; its partners ada and bob earn 20 % of payments; `pay` sends signed
// events of the processor.
import { execFileSync, spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const SECRET = "whsec_of_the_browser_cases";
const HOSTS = ["www.shop.localhost", "app.shop.localhost", "shop.localhost", "other.localhost"];

export async function start({ binary, shopPort, port = 0 }) {
  const room = mkdtempSync(join(tmpdir(), "server-"));
  const doors = ["--api", `127.0.0.1:${port}`, "--submission", "127.0.0.1:0", "--mx", "127.0.0.1:0"];
  const env = { ...process.env, POSTRIDER_OPS_LISTEN: "127.0.0.1:0" };
  const server = spawn(binary, ["dev", "--json", "--data-dir", room, ...doors], { stdio: ["ignore", "pipe", "inherit"], env });
  const stop = () =>
    new Promise((done) => {
      front?.kill("SIGTERM");
      server.once("exit", done);
      server.kill("SIGTERM");
    }).then(() => rmSync(room, { recursive: true, force: true }));
  const ready = await new Promise((done, fail) => {
    createInterface({ input: server.stdout }).once("line", (line) => done(JSON.parse(line)));
    server.once("exit", (code) => fail(new Error(`${binary} dev exited with ${code}`)));
  });
  const admin = (...command) =>
    JSON.parse(execFileSync(binary, ["admin", "--data-dir", room, "affiliate", "--account", "dev@example.com", ...command, "--json"]));
  const own = new URL(/^http/.test(ready.api) ? ready.api : "http://" + ready.api);
  // PAGES names a build of the example of crate pages, which serves its own pages over this server.
  const front = process.env.PAGES && spawn(process.env.PAGES, ["--server", own.host, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
  const url = front ? new URL(await new Promise((done) => createInterface({ input: front.stdout }).once("line", done))).origin : own.origin;
  const atUrl = (link) => url + new URL(link).pathname;
  const api = async (method, path, body) => {
    const headers = { "authorization": "Bearer " + ready.api_key, "content-type": "application/json" };
    const answer = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const website = `http://www.shop.localhost:${shopPort}/page-1`;
  admin("enable", "--website", website, "--currency", "usd", "--mode", "test");
  const origins = HOSTS.flatMap((host) => [`http://${host}:${shopPort}`, `https://${host}:${Number(shopPort) + 1}`]);
  admin("set", "allowed_origins=" + JSON.stringify(origins));
  const { processor } = admin("processor", "connect", "--webhook-secret", SECRET);
  admin("campaign", "default", '{"name":"Partners","commission_bps":2000,"hold_days":0}');
  const { program } = admin("go-live");
  for (const [token, first_name, last_name] of [["ada", "Ada", "Lovelace"], ["bob", "Bob", "Bemer"]]) {
    await api("POST", "/affiliates", { email: `${token}@partners.example`, first_name, last_name, token, send_invite: false });
  }
  /** Sends a signed event of the processor. */
  const pay = async (type, object) => {
    const at = Math.floor(Date.now() / 1000);
    const event = { id: "evt_" + randomBytes(8).toString("hex"), type, created: at, livemode: false, data: { object } };
    const body = JSON.stringify(event);
    const tag = createHmac("sha256", SECRET).update(`${at}.${body}`).digest("hex");
    const path = new URL(processor.webhook_url).pathname;
    const headers = { "stripe-signature": `t=${at},v1=${tag}`, "content-type": "application/json" };
    const answer = await fetch(url + path, { method: "POST", headers, body });
    if (answer.status != 200) throw new Error(`${type}: ${answer.status} ${await answer.text()}`);
  };
  /** Runs `postrider admin` on the server. */
  const operator = (...command) => JSON.parse(execFileSync(binary, ["admin", "--data-dir", room, "--json", ...command]));
  const session = () => {
    const made = operator("session", "create", "--account", "dev@example.com");
    return { ...made, url: atUrl(made.url) };
  };
  /** Creates an account; returns the link that signs its owner in. */
  const account = (email) => atUrl(operator("account", "create", "--email", email).sign_in.link);
  /** The path of the link in the latest email to an address. */
  const mailedLink = async (to) => {
    const answer = await fetch(`${own.origin}/latest/links?to=${encodeURIComponent(to)}&wait=10s`);
    return atUrl((await answer.text()).match(/http[^"\s]*\/auth\/link\/[\w-]+/)[0]);
  };
  return { session, operator, account, mailedLink, url, key: program.publishable_key, tokens: ["ada", "bob"], website, api, pay, admin, stop };
}
