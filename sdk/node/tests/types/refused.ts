// Must not compile: the test counts the errors.
import { Postrider } from "postrider";

const client = new Postrider("rnl_…", { baseURL: "https://mail.example.com" });
await client.emails.send({ from: "a@example.com" });
await client.emails.cancel(7);
client.mails.send({ to: "a@example.com" });
