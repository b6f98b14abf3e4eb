"""The outside of the page benchmark, in a process of its own: the mail host of all recipients, a webhook endpoint, and
a name server that knows no name.

A recipient's local part decides what happens:

    gone…     550 5.1.1 at RCPT
    busy…     451 4.2.1 at RCPT, at every attempt
    angry…    accepted; the recipient will complain
    reader…   accepted; the recipient will open the email
    clicker…  accepted; the recipient will open it and follow a link
    others    accepted

A queue of lists has the actions of the recipients: ("get", path) or ("complain", return path). page_fill.py does it
later, since a fetch within two seconds after the delivery counts as one by a machine.
"""

import asyncio
import multiprocessing
import re

END = b"\r\n.\r\n"
TRACKED = re.compile(rb"/[oc]/[A-Za-z0-9_.~-]+")
SENT_AT_ONCE = 200


class Receivers:
    """Starts the process. `intents` yields what recipients will do."""

    def __init__(self, sink, hooks, names):
        self.queue = multiprocessing.Queue()
        self.process = multiprocessing.Process(target=serve, args=(sink, hooks, names, self.queue), daemon=True)
        self.process.start()
        kind, _ = self.queue.get(timeout=30)[0]
        assert kind == "listening"

    def intents(self):
        """All that arrived so far."""
        found = []
        while not self.queue.empty():
            found += self.queue.get()
        return found

    def stop(self):
        self.process.terminate()
        self.process.join()


def serve(sink, hooks, names, queue):
    try:
        asyncio.run(listen(sink, hooks, names, queue))
    except KeyboardInterrupt:
        pass


async def listen(sink, hooks, names, queue):
    loop = asyncio.get_running_loop()
    intents = Intents(queue)
    await loop.create_server(lambda: MailSession(intents), *sink, backlog=1024)
    await loop.create_server(HookSession, *hooks, backlog=1024)
    await loop.create_datagram_endpoint(NoNames, names)
    queue.put([("listening", "")])
    while True:
        await asyncio.sleep(0.5)
        intents.flush()


class Intents:
    def __init__(self, queue):
        self.queue = queue
        self.waiting = []

    def add(self, kind, value):
        self.waiting.append((kind, value))
        if len(self.waiting) >= SENT_AT_ONCE:
            self.flush()

    def flush(self):
        if self.waiting:
            self.queue.put(self.waiting)
            self.waiting = []


class MailSession(asyncio.Protocol):
    """An SMTP session (RFC 5321) with PIPELINING."""

    def __init__(self, intents):
        self.intents = intents
        self.buffer = bytearray()
        self.in_data = False
        self.sender = self.recipient = b""

    def connection_made(self, transport):
        self.transport = transport
        transport.write(b"220 sink.bench.test ESMTP\r\n")

    def data_received(self, data):
        self.buffer += data
        replies = []
        while True:
            if self.in_data:
                end = self.buffer.find(END)
                if end < 0:
                    break
                self.take(bytes(self.buffer[:end]))
                del self.buffer[: end + len(END)]
                self.in_data = False
                replies.append(b"250 2.0.0 stored\r\n")
                continue
            end = self.buffer.find(b"\r\n")
            if end < 0:
                break
            line = bytes(self.buffer[:end])
            del self.buffer[: end + 2]
            replies.append(self.reply(line))
        if replies:
            self.transport.write(b"".join(replies))

    def reply(self, line):
        verb = line[:4].upper()
        if verb == b"EHLO":
            return b"250-sink.bench.test\r\n250-PIPELINING\r\n250-ENHANCEDSTATUSCODES\r\n250 8BITMIME\r\n"
        if verb == b"MAIL":
            self.sender, self.recipient = line[line.find(b"<") + 1 : line.find(b">")], b""
        elif verb == b"RCPT":
            recipient = line[line.find(b"<") + 1 : line.find(b">")]
            if recipient.startswith(b"gone"):
                return b"550 5.1.1 user unknown\r\n"
            if recipient.startswith(b"busy"):
                return b"451 4.2.1 mailbox busy, try again later\r\n"
            self.recipient = recipient
        elif verb == b"DATA":
            if not self.recipient:
                return b"554 5.5.1 no valid recipients\r\n"
            self.in_data = True
            return b"354 go on\r\n"
        elif verb == b"QUIT":
            self.transport.close()
            return b"221 2.0.0 bye\r\n"
        return b"250 2.0.0 OK\r\n"

    def take(self, message):
        if self.recipient.startswith(b"angry"):
            self.intents.add("complain", self.sender.decode())
        if self.recipient.startswith((b"reader", b"clicker")):
            # Quoted-printable (RFC 2045 6.7) breaks long lines.
            paths = dict.fromkeys(TRACKED.findall(message.replace(b"=\r\n", b"").replace(b"=3D", b"=")))
            wanted = b"/o/" if self.recipient.startswith(b"reader") else b"/"
            for path in paths:
                if path.startswith(wanted):
                    self.intents.add("get", path.decode())


class HookSession(asyncio.Protocol):
    """An HTTP server that answers 200 to every request."""

    def __init__(self):
        self.buffer = bytearray()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        while True:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            length = re.search(rb"(?i)content-length: *(\d+)", self.buffer[:end])
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self.buffer) < whole:
                return
            del self.buffer[:whole]
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok")


class NoNames(asyncio.DatagramProtocol):
    """Answers every question with NXDOMAIN (RFC 1035 4.1.1), so that no check of a sender waits."""

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        end = data.find(b"\0", 12) + 5
        if len(data) < 17 or end < 17:
            return
        response_with_recursion, name_error = 0x81, 0x83
        counts = b"\0\1" + bytes(6)
        self.transport.sendto(data[:2] + bytes([response_with_recursion, name_error]) + counts + data[12:end], address)
