// The inbox of `postrider dev` (src/dev/inbox.html), over fixed answers of its server: the URL names the open message.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const PAGE = readFileSync(new URL("../../../src/dev/inbox.html", import.meta.url), "utf8");
const URL_OF_INBOX = "http://inbox.localhost:8025/";

/** Opens the inbox with messages of these subjects; the first has the number 1. Returns the page. */
async function open(context, subjects, hash = "") {
  const messages = new Map(subjects.map((subject, n) => [n + 1, message(n + 1, subject)]));
  const page = await context.newPage();
  let version = 1;
  await page.route(URL_OF_INBOX + "**", (route) => {
    const { pathname } = new URL(route.request().url());
    const id = Number(pathname.split("/")[3]);
    const isDeletion = route.request().method() === "DELETE";
    if (pathname === "/") return route.fulfill({ contentType: "text/html", body: PAGE });
    if (!id) {
      const newestFirst = [...messages.values()].reverse();
      return route.fulfill({ json: { version: `${version}`, total: messages.size, messages: newestFirst } });
    }
    if (isDeletion) {
      messages.delete(id);
      version += 1;
      return route.fulfill({ json: {} });
    }
    return messages.has(id) ? route.fulfill({ json: messages.get(id) }) : route.fulfill({ status: 404, body: "" });
  });
  await page.goto(URL_OF_INBOX + hash);
  return page;
}

function message(id, subject) {
  return {
    id, subject, source: "handed_in", from: "ada@example.com", to: ["bob@example.net"], envelope_from: null,
    received_at: "2026-11-27T08:00:00Z", size: 300, tls: false, dkim: [], headers: [], attachments: [],
    attachment_count: 0, preview: "Hello", has_html: false, html: null, text: `Text of ${subject}`,
  };
}

const shown = (page, subject) => page.locator("main h2", { hasText: subject }).waitFor();
const hash = (page) => new URL(page.url()).hash;

export const anywhere = {
  async "Back and a reload show the message again"(w) {
    const page = await open(w.context, ["First", "Second"]);
    await page.locator("nav button", { hasText: "First" }).click();
    await shown(page, "First");
    await page.keyboard.press("k");
    await shown(page, "Second");
    assert.equal(hash(page), "#2");
    await page.goBack();
    await shown(page, "First");
    await page.reload();
    await shown(page, "First");
    await page.goBack();
    await page.getByText("Select a message.").waitFor();
    assert.equal(hash(page), "");
    await page.goForward();
    await shown(page, "First");
  },

  async "the next message follows a deleted one"(w) {
    const page = await open(w.context, ["First", "Second"], "#2");
    await shown(page, "Second");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await shown(page, "First");
    assert.equal(hash(page), "#1");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("No messages yet").waitFor();
    assert.equal(hash(page), "");
  },

  async "a message that does not exist leads to the list"(w) {
    const page = await open(w.context, ["First"], "#7");
    await page.getByText("Select a message.").waitFor();
    assert.equal(hash(page), "");
  },
};
