// Local servers for tests: one that answers from a list, and the real one.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Postrider } from "postrider";

export const KEY = "rnl_0123456789abcdefghijKLMNOPQRSTUV";

/** Answers requests with `answers` in order; each is `{status, headers, json | body}` or `(request, response)`. */
export async function answering(test, ...answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    requests.push({ method: request.method, url: request.url, headers: request.headers, body, json: body ? JSON.parse(body) : undefined });
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (typeof answer === "function") return answer(request, response);
    const { status = 200, headers = {}, json, body: text } = answer;
    response.writeHead(status, { ...(json === undefined ? {} : { "content-type": "application/json" }), ...headers });
    response.end(json === undefined ? text : JSON.stringify(json));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { baseUrl: `http://127.0.0.1:${server.address().port}`, requests, server };
}

/** A TCP server; `onConnection` does with the socket what it wants. */
export async function raw(test, onConnection) {
  const sockets = new Set();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    onConnection(socket);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  test.after(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  return server.address().port;
}

/** A clock that does not wait: `waits` has what it was asked for. `random` is always a half. */
export function testClock() {
  let now = 1_700_000_000_000;
  const waits = [];
  return {
    waits,
    now: () => now,
    random: () => 0.5,
    sleep: async (duration) => {
      waits.push(duration);
      now += duration;
    },
  };
}

export function client(baseUrl, options = {}) {
  return new Postrider(KEY, { baseUrl, ...options });
}

export function apiError(status, code, { details, headers, ...error } = {}) {
  return { status, headers: { "x-request-id": "req_1", ...headers }, json: { error: { message: `Injected ${code}`, code, details, request_id: "req_1", doc_url: `https://docs.example/${code}`, ...error } } };
}

/** The server's binary: TEST_POSTRIDER, or that of this repository. */
export const BINARY = [process.env.TEST_POSTRIDER, fileURLToPath(new URL("../../../target/debug/postrider", import.meta.url))].find((path) => path && existsSync(path));

/** Starts `postrider dev` on free ports; resolves with what it prints when it is ready. */
export async function startDev() {
  const directory = mkdtempSync(join(tmpdir(), "postrider-node-"));
  const ports = ["--api", "127.0.0.1:0", "--submission", "127.0.0.1:0", "--mx", "127.0.0.1:0"];
  const server = spawn(BINARY, ["dev", "--json", "--data-dir", directory, ...ports], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  for await (const line of createInterface({ input: server.stdout })) {
    const ready = JSON.parse(line);
    const stop = async () => {
      server.kill();
      await ended;
      rmSync(directory, { recursive: true, force: true });
    };
    return { ...ready, stop };
  }
  throw new Error("postrider dev ended");
}
