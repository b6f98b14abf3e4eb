// Times of bare requests and of `emails.send`, in turns, as JSON.
import { Postrider } from "../../sdk/node/dist/esm/index.js";

const [baseUrl, key, count] = [process.env.POSTRIDER_BASE_URL, process.env.POSTRIDER_API_KEY, Number(process.env.COUNT)];
const email = { from: "ada@example.com", to: "grace@example.net", subject: "Hello", text: "Hello Grace" };
const postrider = new Postrider(key, { baseUrl, throwOnError: true });
const kinds = {
  bare: async () => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    await (await fetch(`${baseUrl}/emails`, { method: "POST", headers, body: JSON.stringify(email) })).json();
  },
  sdk: () => postrider.emails.send(email),
};
const times = { bare: [], sdk: [] };
for (let number = -500; number < count; number++) {
  for (const [kind, send] of Object.entries(kinds)) {
    const started = performance.now();
    await send();
    if (number >= 0) times[kind].push(performance.now() - started);
  }
}
console.log(JSON.stringify(times));
