#!/usr/bin/env python3
"""Thousands of hostile and malformed messages at the MX listener of a real server with DNS and authentication.

    POSTRIDER=target/release/postrider tests/drills/hostile.py                  10,000 messages
    POSTRIDER=target/debug/postrider tests/drills/hostile.py --messages 300     a short run

Flow: start a name server and a server with one receiving domain; generate messages from a seed (handwritten cases, and
mutations of well-formed messages and of test messages found on this machine); submit them over many connections by DATA
and by BDAT, some with false lengths or between nonsense commands; sample the server's memory meanwhile; then list the
received emails and read each (as JSON with attachments, raw, and each attachment). Exits with 1 if a message got no
reply or no SMTP reply, an accepted message is missing, unreadable or changed, the log contains a panic, memory exceeds
the limit, or the server does not exit with 0.
"""

import argparse
import collections
import concurrent.futures
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
from messages import Maker  # noqa: E402
from nameserver import NameServer  # noqa: E402
from receiving import DOMAIN, Server, Session  # noqa: E402

ZONE = {
    "good.example": [("TXT", "v=spf1 ip4:127.0.0.1 -all"), ("A", "127.0.0.1")],
    "_dmarc.good.example": [("TXT", "v=DMARC1; p=reject")],
    "hard.example": [("TXT", "v=spf1 -all exp=why.hard.example")],
    "why.hard.example": [("TXT", "%{i} may not send as %{s}\x07; see %{T}")],
    "_dmarc.hard.example": [("TXT", "v=DMARC1; p=quarantine")],
    "loop.example": [("TXT", "v=spf1 include:loop.example -all")],
    "broken.example": ["TROUBLE"],
    "_dmarc.broken.example": ["TROUBLE"],
    "two.example": [("TXT", "v=spf1 -all"), ("TXT", "v=spf1 +all")],
    "key._domainkey.good.example": [("TXT", "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")],
}


class Sender:
    """One worker with its own random generator and connections."""

    def __init__(self, server, maker, chance):
        self.server, self.maker, self.chance = server, maker, chance
        self.session = None

    def submit(self, number):
        """Returns (kind, reply code, id of the received email, message)."""
        kind, message = self.maker.make(self.chance)
        for _ in range(3):
            try:
                if self.session is None:
                    self.session = Session(self.server.mx)
                code, text = self.dialog(message)
                break
            except ConnectionError:
                # After too many errors the session ends with a reply to the last one.
                self.session = None
        else:
            return kind, None, None, message
        if code == 421 or code == 554 or code >= 600:
            self.session.close()
            self.session = None
        found = text.split()[-1] if code == 250 else None
        return kind, code, found, message

    def dialog(self, message):
        session, chance = self.session, self.chance
        if chance.random() < 0.05:
            session.send_command(self.maker.nonsense(chance))
            session.send_command("RSET")
        sender = chance.choice(self.maker.senders)
        code, text = session.send_command(f"MAIL FROM:<{sender}>" + (" BODY=8BITMIME" if chance.random() < 0.5 else ""))
        if code != 250:
            return code, text
        code, text = session.send_command(f"RCPT TO:<{chance.choice(['a', 'b+c', 'd'])}@{DOMAIN}>")
        if code != 250:
            session.send_command("RSET")
            return code, text
        if chance.random() < 0.3:
            return self.by_chunks(message)
        code, text = session.send_command("DATA")
        if code != 354:
            return code, text
        stuffed = (b"\r\n" + message).replace(b"\r\n.", b"\r\n..")[2:]
        session.socket.sendall(stuffed + (b"" if stuffed.endswith(b"\r\n") else b"\r\n") + b".\r\n")
        return session.reply()

    def by_chunks(self, message):
        session, size = self.session, self.chance.choice([1 << 20, 4096, 777])
        chunks = [message[at : at + size] for at in range(0, len(message), size)] or [b""]
        if len(chunks) > 200:
            chunks = [message]
        if self.chance.random() < 0.02:
            # A false length: the chunk announces more bytes than are sent before the connection closes.
            session.socket.sendall(b"BDAT %d LAST\r\n" % (len(message) + 10) + message)
            session.close()
            self.session = Session(self.server.mx)
            return self.session.send_command("NOOP")
        for at, chunk in enumerate(chunks):
            last = b" LAST" if at == len(chunks) - 1 else b""
            session.socket.sendall(b"BDAT %d%s\r\n" % (len(chunk), last) + chunk)
            code, text = session.reply()
            if code != 250:
                session.send_command("RSET")
                return code, text
        return code, text


class Count:
    """Results."""

    def __init__(self):
        self.lock = threading.Lock()
        self.codes, self.kinds = collections.Counter(), collections.defaultdict(collections.Counter)
        self.accepted, self.faults = {}, []

    def note(self, kind, code, found, message):
        with self.lock:
            self.codes[code] += 1
            self.kinds[kind][code] += 1
            if code is None:
                self.faults.append(f"{kind}: no answer")
            if found and found.startswith("inb_"):
                self.accepted[found] = (kind, message)

    def fault(self, text):
        with self.lock:
            self.faults.append(text)


def submit_all(args, server, maker, count):
    chance = random.Random(args.seed)
    local = threading.local()
    seeds = [chance.getrandbits(64) for _ in range(args.messages)]

    def one(number):
        if not hasattr(local, "sender"):
            local.sender = Sender(server, maker, random.Random())
        # The message depends on its number only, not on the worker.
        local.sender.chance = random.Random(seeds[number])
        try:
            count.note(*local.sender.submit(number))
        except (OSError, ValueError) as error:
            count.fault(f"message {number}: {error!r}")
            local.sender.session = None

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.connections) as pool:
        for done, _ in enumerate(pool.map(one, range(args.messages)), 1):
            if done % 1000 == 0:
                rate = done / (time.monotonic() - began)
                print(f"  {done} handed in, {rate:.0f}/s, {server.rss[-1]:.0f} MiB", flush=True)
    return time.monotonic() - began


def read(server, count, found):
    kind, message = count.accepted[found]
    try:
        email = server.call_api("GET", f"/received-emails/{found}")["received_email"]
        status, raw = server.fetch(f"/received-emails/{found}/raw")
        # Forged Authentication-Results fields are removed.
        whole_there = b"authentication-results" in message.lower() or raw.endswith((message, message + b"\r\n"))
        if status != 200:
            count.fault(f"{kind}: raw of {found} was answered {status}")
        # DATA always ends with a line end, so one may have been added.
        elif not whole_there:
            count.fault(f"{kind}: {found} differs from the sent message: {len(raw)} bytes, sent {len(message)} without trace fields")
        for file in email["attachments"]:
            path = f"/received-emails/{found}/attachments/{file['id']}"
            status, data = server.fetch(path)
            if status != 200 or len(data) != file["size"]:
                count.fault(f"{kind}: {path} was answered {status}, {len(data)} bytes of {file['size']}")
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        count.fault(f"{kind}: {found} is unreadable: {error!r}")


def drill(args, base):
    names = NameServer(ZONE)
    server, count = Server(os.environ["POSTRIDER"], base, names), Count()
    maker = Maker()
    print(f"  {len(maker.corpus)} seed messages, {len(maker.kinds)} kinds of mutation", flush=True)
    took = submit_all(args, server, maker, count)
    ids = [one["email_id"] for one in server.received()]
    missing = set(count.accepted) - set(ids)
    count.faults += [f"{found} was accepted but is not listed" for found in missing]
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda found: read(server, count, found), sorted(set(count.accepted) - missing)):
            pass
    reading = time.monotonic() - began
    rss, ended = server.rss, server.end()
    names.close()
    log = server.log.read_text(errors="replace")
    if "panic" in log:
        count.faults.append("the log contains a panic: " + log[log.index("panic") - 200 :][:600])
    if ended != 0:
        count.faults.append(f"the server exited with {ended}")
    if max(rss) > args.mib_max:
        count.faults.append(f"{max(rss):.0f} MiB of memory, limit {args.mib_max}")
    codes = ", ".join(f"{code}: {times}" for code, times in sorted(count.codes.items(), key=str))
    print(f"{args.messages} messages in {took:.1f} s, {args.messages / took:.0f}/s; answers {codes}")
    print(f"{len(count.accepted)} accepted, {len(ids)} listed, all read in {reading:.1f} s")
    print(f"in memory: {rss[0]:.0f} MiB at first, {max(rss):.0f} at most, {rss[-1]:.0f} at last")
    if args.verbose:
        for kind, codes in sorted(count.kinds.items()):
            print(f"  {kind:<28} {dict(codes)}")
    for fault in count.faults[:40]:
        print("FAULT", fault)
    return len(count.faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mib-max", type=int, default=600, help="limit for the server's memory")
    parser.add_argument("--verbose", action="store_true", help="print the results of each kind")
    args = parser.parse_args()
    if "POSTRIDER" not in os.environ:
        parser.error("set POSTRIDER to the binary")
    with tempfile.TemporaryDirectory() as base:
        faults = drill(args, Path(base))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
