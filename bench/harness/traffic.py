"""The load, the sink and the name server: the same for both peers.

`smtp-source` and `smtp-sink` come with Postfix; `load` (bench/load) does what smtp-source cannot:
STARTTLS with AUTH, one message each to many domains, messages that are signed, and emails over HTTP.
"""

import json
import os
import re
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

from machine import Failure, signing_key, wait_for_port

MESSAGE_BYTES = 10_240
SENDER = "sender@bench.test"
# Those whose mail is judged: each domain has a DKIM key, SPF and DMARC. Not below .test, which OpenDKIM's resolver
# (libunbound) knows not to exist.
JUDGED_SENDER = "sender@s{s}.bench.example"
JUDGED_SENDERS = 64
# A host that takes mail from strangers has a bound on messages of one session.
JUDGED_PER_CONNECTION = 500
RUN_S_MAX = 150


class Sink:
    """smtp-sink; its running counters (-c) go to a file in memory, which costs one write per event."""

    def __init__(self, base, address, capture=None):
        self.counters = Path(f"/dev/shm/postrider-bench-sink-{os.getpid()}")
        self.output = self.counters.open("wb")
        # -m: more than any peer keeps open, so that the sink never makes it wait.
        command = ["smtp-sink", "-c", "-m", "8000", "-u", "nobody"]
        if capture:
            command += ["-d", f"{capture}/message-"]
        self.process = subprocess.Popen([*command, address, "1000"], stdout=self.output, cwd="/")
        host, port = address.rsplit(":", 1)
        wait_for_port(host.replace("0.0.0.0", "127.0.0.1"), int(port), "smtp-sink")

    def received(self):
        with self.counters.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 200))
            counts = re.findall(rb"mesg=(\d+)", file.read())
        return int(counts[-1]) if counts else 0

    def wait(self, count):
        deadline = time.monotonic() + RUN_S_MAX
        while self.received() < count:
            if time.monotonic() > deadline:
                raise Failure(f"the sink got {self.received()} of {count} messages in {RUN_S_MAX} s")
            time.sleep(0.005)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.output.close()
        self.counters.unlink(missing_ok=True)


class Load:
    """Whoever sends: smtp-source, or our own `load`."""

    def __init__(self, binary, base):
        self.binary = binary
        self.signing_key = signing_key(base)

    def source(self, to, sessions, messages):
        """smtp-source, connections kept (-d), as a busy application would."""
        command = ["smtp-source", "-d", "-s", str(sessions), "-m", str(messages), "-l", str(MESSAGE_BYTES)]
        command += ["-f", SENDER, "-t", "someone@sink.test", "{}:{}".format(*to)]
        self.run(command)
        return {}

    def send(self, to, sessions, messages, rcpt, **options):
        command = [self.binary, "send", "--to", "{}:{}".format(*to), "--sessions", str(sessions)]
        command += ["--messages", str(messages), "--size-bytes", str(MESSAGE_BYTES), "--from", SENDER, "--rcpt", rcpt]
        if "login" in options:
            user, password = options["login"]
            command += ["--starttls", "--per-connection", "1", "--user", user, "--password", password]
        return json.loads(self.run(command))

    def send_signed(self, to, sessions, messages, rcpt, size_bytes=MESSAGE_BYTES, senders=JUDGED_SENDERS):
        """Messages of many domains, signed, as a host on the internet sends them; connections kept."""
        command = [self.binary, "send", "--to", "{}:{}".format(*to), "--sessions", str(sessions)]
        command += ["--messages", str(messages), "--size-bytes", str(size_bytes), "--rcpt", rcpt]
        command += ["--from", JUDGED_SENDER, "--senders", str(min(senders, messages))]
        command += ["--sign-with", self.signing_key, "--per-connection", str(JUDGED_PER_CONNECTION)]
        return json.loads(self.run(command))

    def post(self, to, key, connections, emails, batch, rcpt="someone{n}@sink.test", timeout=RUN_S_MAX, more=()):
        command = [self.binary, "post", "--to", "{}:{}".format(*to), "--key", key, "--connections", str(connections)]
        command += ["--emails", str(emails), "--batch", str(batch), "--from", SENDER, "--rcpt", rcpt, *more]
        return json.loads(self.run(command, timeout))

    def fill(self, data_directory, account, domains):
        """Writes domains with keys into the store of a server that is stopped."""
        command = [self.binary, "fill", "--data-dir", data_directory, "--account", account, "--domains", str(domains)]
        self.run([*command, "--key", self.signing_key], RUN_S_MAX + domains / 100)

    def run(self, command, timeout=RUN_S_MAX):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"{command[0]} was not done in {timeout:.0f} s") from None
        if done.returncode != 0 or "fatal" in done.stderr:
            raise Failure(f"{os.path.basename(command[0])}: {done.stderr.strip()[-500:]}")
        return done.stdout


class NameServer:
    """`load names`: every name below bench.test has an MX with an address of its own, and what a sender publishes."""

    def __init__(self, load, base, isolated):
        self.address = ("127.0.0.53", 53 if isolated else 5390)
        command = [load.binary, "names", "--listen", "{}:{}".format(*self.address), "--key", load.signing_key]
        self.process = subprocess.Popen(command)
        query = b"\0\1\1\0\0\1\0\0\0\0\0\0\5bench\4test\0\0\1\0\1"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(0.1)
            for _ in range(100):
                try:
                    asker.sendto(query, self.address)
                    asker.recv(512)
                    return
                except OSError:
                    time.sleep(0.05)
        raise SystemExit("bench: the name server does not answer")

    def queries(self):
        """How many came until now, by type."""
        query = b"\0\1\1\0\0\1\0\0\0\0\0\0\x08_queries\5bench\4test\0\0\x10\0\1"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(5)
            asker.sendto(query, self.address)
            reply = asker.recv(512)
        # One record behind the question: pointer, type, class, TTL, length, and a string with its length.
        text = reply[len(query) + 13 :].decode()
        return Counter({int(kind): int(count) for kind, count in re.findall(r"(\d+)=(\d+)", text)})

    def stop(self):
        self.process.kill()
        self.process.wait()


class IdleSessions:
    """Connections that have said EHLO and nothing more, from many loopback addresses."""

    PER_ADDRESS = 20

    def __init__(self, to):
        self.to = to
        self.open = []

    def add(self, count):
        first = len(self.open)
        for number in range(first, first + count):
            source = f"127.9.{number // self.PER_ADDRESS // 250}.{number // self.PER_ADDRESS % 250 + 1}"
            connection = socket.create_connection(self.to, timeout=30, source_address=(source, 0))
            self.open.append(connection)
            if not connection.recv(512).startswith(b"220"):
                raise Failure(f"idle session {number + 1} was refused")
            connection.sendall(b"EHLO idle.bench.test\r\n")
        for number, connection in enumerate(self.open[first:], first):
            if not connection.recv(2048).startswith(b"250"):
                raise Failure(f"idle session {number + 1} was refused at EHLO")

    def close(self):
        for connection in self.open:
            connection.close()
