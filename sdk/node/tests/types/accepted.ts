// Must compile. Lines with @ts-expect-error must not.
import nodemailer, { type SendMailOptions } from "nodemailer";
import { constructEvent, Postrider, PostriderError, RateLimitError, type EmailStatus, type SendEmailParams, type WebhookEvent } from "postrider";
import { webhookHandler, webhookMiddleware } from "postrider/handlers";
import { type PostriderMailOptions, postriderTransport } from "postrider/nodemailer";

type Equal<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;
const isTrue = <_ extends true>() => {};

const results = new Postrider("rnl_…", { baseUrl: "https://mail.example.com" });
const throwing = new Postrider("rnl_…", { throwOnError: true });
const email: SendEmailParams = { from: "ada@example.com", to: "grace@example.net", subject: "Hello", text: "Hello" };

export async function calls(): Promise<void> {
  const { data, error } = await results.emails.send(email, { idempotencyKey: "k", timeout: 1000 });
  if (error) {
    isTrue<Equal<typeof data, null>>();
    if (error instanceof RateLimitError) isTrue<Equal<typeof error.retryAfter, number | undefined>>();
    isTrue<Equal<typeof error, PostriderError>>();
    return;
  }
  isTrue<Equal<typeof data.id, string>>();
  const sent = await throwing.emails.send(email);
  isTrue<Equal<typeof sent.id, string>>();
  // @ts-expect-error: results have no `error` with throwOnError.
  sent.error;
  // @ts-expect-error: `data` can be null.
  (await results.emails.send(email)).data.id;

  // camelCase or the API's names.
  await results.emails.send({ to: ["a@example.com"], replyTo: "b@example.com", scheduledAt: new Date(), attachments: [{ name: "a", data: new Uint8Array() }] });
  await results.emails.send({ to: ["a@example.com"], reply_to: "b@example.com", scheduled_at: "2026-01-01T00:00:00Z", attachments: [{ name: "a", data: "", content_id: "x" }] });
  await results.emails.send({ to: "a@example.com", headers: { "X-Any": "1" }, variables: { anyName: { at: 1 } }, tags: { flow: "welcome" } });
  await results.emails.send({ to: "a@example.com", react: { type: "p", props: {}, key: null } });
  // @ts-expect-error: `to` is required.
  await results.emails.send({ subject: "Hello" });
  // @ts-expect-error: there is no such field.
  await results.emails.send({ to: "a@example.com", sendAt: "now" });
  // @ts-expect-error: `to` is a string or strings.
  await results.emails.send({ to: 7 });
  // @ts-expect-error: an id is needed.
  await results.emails.get();
  // @ts-expect-error: `get` has no parameters.
  await results.emails.get("msg_1", { limit: 1 });
  // @ts-expect-error: there is no such option.
  await results.emails.get("msg_1", {}, { retry: 1 });

  // Enums are open.
  const status: EmailStatus = "teleported";
  await results.emails.list({ status: [status, "sent"], limit: 10, createdAfter: new Date() });

  for await (const one of results.emails.list()) isTrue<Equal<typeof one.subject, string>>();
  const page = await results.emails.list();
  if (page.data) isTrue<Equal<typeof page.data.next_cursor, string | null>>();
  const { emails } = await throwing.emails.list();
  isTrue<Equal<(typeof emails)[number]["id"], string>>();
  const raw = await throwing.emails.raw("msg_1");
  isTrue<Equal<typeof raw, Uint8Array>>();
  await throwing.automations.activate("aut_1");

  for await (const event of results.webhookEvents.stream({ types: ["email.bounced", "a.new_one"] })) {
    isTrue<Equal<typeof event.cursor, string>>();
    about(event);
  }
}

export function about(event: WebhookEvent): void {
  switch (event.type) {
    case "email.bounced":
      event.data.bounce?.smtp_code?.toFixed();
      // @ts-expect-error: a bounce has no click.
      event.data.click;
      break;
    case "email.clicked":
      event.data.click?.url?.trim();
      break;
    default:
      event.type.trim();
  }
}

export const POST = webhookHandler(process.env.SECRET, about);
export const middleware = webhookMiddleware(["whsec_1", "whsec_2"], async (event) => about(event));
export const event: Promise<WebhookEvent> = constructEvent("{}", new Headers(), "whsec_…");
// @ts-expect-error: constructEvent is asynchronous.
event.type;

export async function mail(): Promise<void> {
  const transporter = nodemailer.createTransport(postriderTransport({ apiKey: "rnl_…", baseUrl: "https://mail.example.com" }));
  const message: SendMailOptions & PostriderMailOptions = { to: "a@example.com", tags: { flow: "welcome" }, idempotencyKey: "k", scheduledAt: new Date() };
  const info = await transporter.sendMail(message);
  isTrue<Equal<typeof info.messageId, string>>();
  isTrue<Equal<typeof info.accepted, string[]>>();
  await transporter.verify();
}
