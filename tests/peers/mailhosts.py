"""Scripted mail hosts, each on its own address in 127.0.0.0/8, all on one port.

    host = hosts.add(Host(certificate="good", at={"starttls": b"454 4.7.0 not now", "dot": DROP}))

`at` sets the behaviour at a step (`greeting`, `ehlo`, `starttls`, `handshake`, `ehlo-tls`, `mail`, `rcpt`, `data`,
`dot`): bytes replace the reply; a function is called with the conversation and ends it. `host.clear` and `host.sealed`
contain what was received in clear text and under TLS, `host.messages` the accepted messages.
"""

import contextlib
import itertools
import selectors
import socket
import ssl
import threading
from dataclasses import dataclass, field

USUAL = {
    "greeting": b"220 mx ready",
    "starttls": b"220 2.0.0 go ahead",
    "mail": b"250 2.1.0 ok",
    "rcpt": b"250 2.1.5 ok",
    "data": b"354 go ahead",
    "dot": b"250 2.0.0 taken",
}
IDLE_S = 120
DRIP_S = 1
OFFERS = ("8BITMIME", "STARTTLS")


@dataclass(eq=False)
class Host:
    """Behaviour of a host, and what it received."""

    certificate: str = "good"
    tlsa: tuple = ()
    at: dict = field(default_factory=dict)
    offers: tuple = OFFERS
    preference: int = 10
    # Its name, if it differs from the default.
    name: str | None = None
    has_address: bool = True

    def __post_init__(self):
        self.address, self.clear, self.sealed = None, bytearray(), bytearray()
        self.messages, self.open = [], set()

    def close_connections(self):
        """Closes all connections to the host."""
        for each in list(self.open):
            with contextlib.suppress(OSError):
                each.stream.shutdown(socket.SHUT_RDWR)


class Over(Exception):
    """The conversation has ended."""


# Behaviours at a step


def DROP(_):
    raise Over


def SILENCE(to):
    while to.receive():
        pass
    raise Over


def endless(line):
    """A reply that never ends, sent as fast as it is read."""

    def act(to):
        while True:
            to.send(line * 200)

    return act


def drip(data):
    """Sends one byte a second, repeatedly."""

    def act(to):
        for byte in itertools.cycle(data):
            to.send(bytes([byte]))
            to.pause(DRIP_S)

    return act


def and_go(data):
    """Sends these bytes and closes the connection."""

    def act(to):
        to.send(data)
        raise Over

    return act


def BREAK_OFF(to):
    """Reads the ClientHello and closes the connection."""
    to.receive()
    raise Over


def ALERT(to):
    """Sends the TLS alert handshake_failure."""
    to.receive()
    to.send(b"\x15\x03\x03\x00\x02\x02\x28")
    raise Over


def BABBLE(to):
    to.receive()
    to.send(b"500 5.5.1 what?\r\n")
    SILENCE(to)


class Conversation:
    """One connection to a host."""

    def __init__(self, host, stream, contexts):
        self.host, self.stream, self.contexts = host, stream, contexts
        self.is_sealed, self.rest = False, b""
        stream.settimeout(IDLE_S)

    def receive(self):
        data = self.stream.recv(65536)
        (self.host.sealed if self.is_sealed else self.host.clear).extend(data)
        return data

    def send(self, data):
        self.stream.sendall(data)

    def pause(self, seconds):
        """Waits, but notices if the client disconnects."""
        self.stream.settimeout(seconds)
        try:
            if not self.receive():
                raise Over
        except TimeoutError:
            pass
        finally:
            self.stream.settimeout(IDLE_S)

    def read_until(self, end):
        """Reads up to and including `end`."""
        while end not in self.rest:
            data = self.receive()
            if not data:
                raise Over
            self.rest += data
        found, end, self.rest = self.rest.partition(end)
        return found + end

    def exactly(self, count):
        while len(self.rest) < count:
            data = self.receive()
            if not data:
                raise Over
            self.rest += data
        found, self.rest = self.rest[:count], self.rest[count:]
        return found

    def reply(self, step, usual=None):
        """Sends the reply of a step. Returns whether it was the usual one or equivalent."""
        act = self.host.at.get(step, USUAL.get(step, b"250 ok") if usual is None else usual)
        if callable(act):
            act(self)
            raise Over
        self.send(act if act.endswith(b"\n") else act + b"\r\n")
        return act[:1] in (b"2", b"3")

    def run(self):
        self.reply("greeting")
        while True:
            line = self.read_until(b"\r\n").strip()
            verb = line.split(b" ", 1)[0].upper()
            if verb in (b"EHLO", b"HELO"):
                self.hello(verb)
            elif verb == b"STARTTLS":
                self.reply("starttls") and self.start_tls()
            elif verb == b"DATA":
                if self.reply("data"):
                    self.end_of_content(self.read_until(b"\r\n.\r\n"))
            elif verb == b"BDAT":
                self.end_of_content(self.exactly(int(line.split()[1])))
            elif verb == b"QUIT":
                self.reply("quit", b"221 bye")
                return
            else:
                self.reply({b"MAIL": "mail", b"RCPT": "rcpt"}.get(verb, "other"))

    def end_of_content(self, content):
        if self.reply("dot"):
            self.host.messages.append(content)

    def hello(self, verb):
        offers = [offer for offer in self.host.offers if not (self.is_sealed and offer == "STARTTLS")]
        lines = ["mx.postrider.test", *(offers if verb == b"EHLO" else [])]
        response = b"".join(b"250%c%s\r\n" % (b" -"[at < len(lines) - 1], text.encode()) for at, text in enumerate(lines))
        step = "ehlo" if verb == b"EHLO" else "helo"
        self.reply(step + ("-tls" if self.is_sealed else ""), response)

    def start_tls(self):
        if act := self.host.at.get("handshake"):
            act(self)
            raise Over
        self.stream = self.contexts[self.host.certificate].wrap_socket(self.stream, server_side=True)
        self.is_sealed, self.rest = True, b""


class MailHosts:
    def __init__(self, port, contexts):
        self.port, self.contexts, self.numbers = port, contexts, itertools.count(1)
        self.selector = selectors.DefaultSelector()
        self.all = []
        threading.Thread(target=self.accept, daemon=True).start()

    def add(self, host, address=None):
        number = next(self.numbers)
        host.address = address or f"127.25.{number // 250}.{number % 250 + 1}"
        listener = socket.create_server((host.address, self.port), backlog=64)
        self.all.append(host)
        self.selector.register(listener, selectors.EVENT_READ, host)
        return host

    def accept(self):
        while True:
            # Hosts added meanwhile are included the next time.
            for key, _ in self.selector.select(0.05):
                with contextlib.suppress(OSError):
                    stream, _ = key.fileobj.accept()
                    threading.Thread(target=self.serve, args=(key.data, stream), daemon=True).start()

    def serve(self, host, stream):
        conversation = Conversation(host, stream, self.contexts)
        host.open.add(conversation)
        try:
            conversation.run()
        except (Over, OSError, ssl.SSLError, ValueError):
            pass
        finally:
            host.open.discard(conversation)
            for each in {stream, conversation.stream}:
                with contextlib.suppress(OSError):
                    each.close()
