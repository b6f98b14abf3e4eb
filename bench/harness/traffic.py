"""The load, the sink and the name server, the same for both peers.

`smtp-source` and `smtp-sink` come with Postfix. `load` (bench/load) covers what smtp-source cannot do: STARTTLS with
AUTH, one message to each of many domains, signed messages, and emails over HTTP.
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
# Senders of authenticated mail: each domain has a DKIM key, SPF and DMARC. Not below .test, for which OpenDKIM's
# resolver (libunbound) returns NXDOMAIN.
JUDGED_SENDER = "sender@s{s}.bench.example"
JUDGED_SENDERS = 64
# An MX host limits the messages per session.
JUDGED_PER_CONNECTION = 500
RUN_S_MAX = 150


class Sink:
    """smtp-sink; its running counters (-c) are written to a file in memory, one write per event."""

    def __init__(self, base, address, capture=None):
        self.counters = Path(f"/dev/shm/postrider-bench-sink-{os.getpid()}")
        self.output = self.counters.open("wb")
        # -m: more connections than any peer opens, so that the sink never delays it.
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
                raise Failure(f"the sink received {self.received()} of {count} messages in {RUN_S_MAX} s")
            time.sleep(0.005)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.output.close()
        self.counters.unlink(missing_ok=True)


class Load:
    """The senders: smtp-source or `load`."""

    def __init__(self, binary, base):
        self.binary = binary
        self.signing_key = signing_key(base)

    def source(self, to, sessions, messages):
        """smtp-source with reused connections (-d), like a busy application."""
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
        """Signed messages of many domains, as from a host on the internet, over reused connections."""
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
        """Writes domains with keys into the store of a stopped server."""
        command = [self.binary, "fill", "--data-dir", data_directory, "--account", account, "--domains", str(domains)]
        self.run([*command, "--key", self.signing_key], RUN_S_MAX + domains / 100)

    def run(self, command, timeout=RUN_S_MAX):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"{command[0]} did not finish in {timeout:.0f} s") from None
        if done.returncode != 0 or "fatal" in done.stderr:
            raise Failure(f"{os.path.basename(command[0])}: {done.stderr.strip()[-500:]}")
        return done.stdout


class NameServer:
    """`load names`: each name below bench.test has an MX with its own address, and the records of a sender."""

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
        """Number of queries so far, by type."""
        query = b"\0\1\1\0\0\1\0\0\0\0\0\0\x08_queries\5bench\4test\0\0\x10\0\1"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(5)
            asker.sendto(query, self.address)
            reply = asker.recv(512)
        # The answer after the question: pointer, type, class, TTL, length, and one string with its length byte.
        text = reply[len(query) + 13 :].decode()
        return Counter({int(kind): int(count) for kind, count in re.findall(r"(\d+)=(\d+)", text)})

    def stop(self):
        self.process.kill()
        self.process.wait()


class IdleSessions:
    """Connections from many loopback addresses that have sent EHLO and stay idle."""

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
