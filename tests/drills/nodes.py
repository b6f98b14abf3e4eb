#!/usr/bin/env python3
"""Three nodes on one PostgreSQL with a synchronous standby, under load, with all kinds of failures.

    tests/drills/nodes.py                 the whole drill: about two minutes
    tests/drills/nodes.py --seconds 5     shorter pauses between the failures
    POSTRIDER=target/release/postrider tests/drills/nodes.py

Flow: start a primary and a standby, three nodes, a sink and the load; command mail of other nodes; delete an API key
whose stream another node serves; kill a node (-9) and start it again; stop a node cleanly and start it again; restart
PostgreSQL; lose the primary for good and promote the standby; end the load and wait until the queue is empty. Then
compare three lists: the messages acknowledged to the clients, the messages that the sink received, and the stored
emails. Exits with 1 and the differences if mail is lost, stored twice, or stored without having been sent. Needs
Debian's postgresql; as root, the server runs as `postgres`.
"""

import argparse
import collections
import http.client
import json
import os
import pwd
import shutil
import signal
import smtplib
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OWNER = "owner@acme.example"
DOMAIN = "acme.example"
PATIENCE_S = 120
SESSIONS = 12
# Pause between the messages of a session: the drill tests failures, not speed, and the sink is in Python.
PAUSE_S = 0.02
DOMAINS = 40


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(true, what, patience_s=PATIENCE_S):
    deadline = time.monotonic() + patience_s
    while not true():
        if time.monotonic() > deadline:
            raise SystemExit(f"timed out waiting for {what}")
        time.sleep(0.02)


class Postgres:
    """A private PostgreSQL server in its own directory, run as an ordinary user."""

    def __init__(self, base, name):
        self.directory = base / name
        self.data = self.directory / "data"
        self.port = free_port()
        self.process = None
        newest = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not newest:
            raise SystemExit("PostgreSQL is missing: apt-get install postgresql")
        self.programs = newest[-1]
        self.user = "postgres" if os.geteuid() == 0 else None
        self.directory.mkdir()
        if self.user:
            shutil.chown(self.directory, self.user)

    def program(self, name, *arguments, **options):
        return subprocess.run(
            [self.programs / name, *map(str, arguments)],
            check=True, capture_output=True, text=True, user=self.user, cwd=self.directory, **options,
        ).stdout

    def init(self):
        self.program("initdb", "--no-sync", "-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8", "-D", self.data)
        (self.data / "pg_hba.conf").write_text("local all all trust\nhost all all all trust\nhost replication all all trust\n")
        return self

    def replicate(self, primary):
        self.program("pg_basebackup", "-h", "127.0.0.1", "-p", primary.port, "-U", "postgres", "-D", self.data,
                     "-R", "-X", "stream", "--checkpoint=fast")
        return self

    def start(self, *settings):
        log = (self.directory / "log").open("ab")
        command = [self.programs / "postgres", "-D", self.data, "-p", str(self.port), "-k", self.directory]
        for setting in ("listen_addresses=127.0.0.1", "max_connections=100", *settings):
            command += ["-c", setting]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, user=self.user, cwd=self.directory)
        ready = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        until(lambda: subprocess.run(ready).returncode == 0, "PostgreSQL")
        return self

    def end(self, sign=signal.SIGQUIT):
        if self.process:
            self.process.send_signal(sign)
            self.process.wait()
            self.process = None

    def sql(self, statement, database="mail"):
        return self.program("psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres",
                            "-d", database, "-v", "ON_ERROR_STOP=1", "-c", statement).strip()


class Node:
    """A postrider node of the cluster, run by `program`."""

    def __init__(self, base, name, url, sink, settings=""):
        self.name, self.directory = name, base / name
        self.program = os.environ["POSTRIDER"]
        self.directory.mkdir()
        self.relay, self.ops, self.api = free_port(), free_port(), free_port()
        self.config = self.directory / "postrider.toml"
        self.config.write_text(f"""
hostname = "{name}.postrider.example"
data_dir = "{self.directory / 'data'}"
[store]
engine = "postgres"
url = "{url}"
[[relay]]
listen = "127.0.0.1:{self.relay}"
networks = ["127.0.0.0/8"]
account = "{OWNER}"
[api]
listen = "127.0.0.1:{self.api}"
rate_limit = "off"
[ops]
listen = "127.0.0.1:{self.ops}"
[delivery]
smarthost = "127.0.0.1:{sink}"
retry = ["2s"]
{settings}
""")
        self.process = None

    def start(self, wait=True):
        log = (self.directory / "log").open("ab")
        self.process = subprocess.Popen([self.program, "serve", "--config", self.config], stdout=log, stderr=log)
        if wait:
            until(self.is_ready, f"{self.name} ({self.directory / 'log'})")
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"{self.name} ended: {(self.directory / 'log').read_text()[-2000:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.relay)) == 0

    def end(self, sign):
        self.process.send_signal(sign)
        return self.process.wait()

    def admin(self, *words):
        command = [self.program, "admin", "--config", self.config, *words, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout or "null")


class Sink(threading.Thread):
    """Accepts all mail and counts each message by its number."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.got = collections.Counter()
        self.times = {}
        self.lock = threading.Lock()
        self.start()

    def run(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.serve_connection, args=(connection,), daemon=True).start()

    def is_deferred(self, line):
        """Returns whether the recipient of this RCPT command is refused for now."""
        return b"@defer." in line

    def serve_connection(self, connection):
        try:
            # Replies to pipelined commands are written one by one; without this they would wait for ACKs.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            lines = connection.makefile("rb")
            connection.sendall(b"220 sink\r\n")
            named = False
            for line in lines:
                verb = line[:4].upper()
                if verb == b"DATA" and not named:
                    connection.sendall(b"554 5.5.1 no recipient\r\n")
                elif verb == b"DATA":
                    named = False
                    connection.sendall(b"354 go\r\n")
                    number = None
                    for text in lines:
                        if text == b".\r\n":
                            break
                        if text.startswith(b"Subject: number "):
                            number = int(text.split()[2])
                    else:
                        return  # connection closed before the final dot: not received
                    with self.lock:
                        self.got[number] += 1
                        self.times.setdefault(number, time.monotonic())
                    connection.sendall(b"250 2.0.0 taken\r\n")
                elif verb == b"RCPT" and self.is_deferred(line):
                    connection.sendall(b"451 4.3.0 later\r\n")
                elif verb == b"QUIT":
                    connection.sendall(b"221 bye\r\n")
                    return
                elif verb == b"EHLO":
                    connection.sendall(b"250-sink\r\n250 PIPELINING\r\n")
                else:
                    named = named or verb == b"RCPT"
                    connection.sendall(b"250 2.0.0 ok\r\n")
        except OSError:
            pass
        finally:
            connection.close()


class Load:
    """Sessions that send messages one after the other to any node that accepts them."""

    def __init__(self, nodes):
        self.nodes, self.running = nodes, True
        self.lock = threading.Lock()
        self.next = 0
        self.acknowledged, self.refused, self.unknown = {}, 0, set()
        self.threads = [threading.Thread(target=self.session, args=(n,), daemon=True) for n in range(SESSIONS)]
        for thread in self.threads:
            thread.start()

    def session(self, turn):
        connection, node = None, None
        while self.running:
            with self.lock:
                number, self.next = self.next, self.next + 1
            final = False
            try:
                if connection is None:
                    turn += 1
                    node = self.nodes[turn % len(self.nodes)]
                    connection = socket.create_connection(("127.0.0.1", node.relay), timeout=60)
                    lines = connection.makefile("rb")
                    self.expect(lines, b"220")
                    self.send_command(connection, lines, b"EHLO load.example\r\n", b"250")
                self.send_command(connection, lines, f"MAIL FROM:<app@{DOMAIN}>\r\n".encode(), b"250")
                self.send_command(connection, lines, f"RCPT TO:<u{number}@d{number % DOMAINS}.example>\r\n".encode(), b"250")
                self.send_command(connection, lines, b"DATA\r\n", b"354")
                text = f"From: app@{DOMAIN}\r\nTo: u@d.example\r\nSubject: number {number}\r\n\r\n" + "x" * 70 + "\r\n.\r\n"
                final = True
                self.send_command(connection, lines, text.encode(), b"250")
                with self.lock:
                    self.acknowledged[number] = (time.monotonic(), node.name)
                time.sleep(PAUSE_S)
            except Refused as refused:
                with self.lock:
                    self.refused += 1
                    if b"unknown" in refused.args[0].lower() or b"not known" in refused.args[0].lower():
                        self.unknown.add(number)
                connection.close()
                connection = None
                time.sleep(0.1)
            except OSError:
                # No reply: after the final dot the message may have been accepted.
                if final:
                    with self.lock:
                        self.unknown.add(number)
                if connection:
                    connection.close()
                connection = None
                time.sleep(0.1)

    def send_command(self, connection, lines, text, wanted):
        connection.sendall(text)
        self.expect(lines, wanted)

    def expect(self, lines, wanted):
        while True:
            line = lines.readline()
            if not line:
                raise OSError("closed")
            if line[3:4] != b"-":
                break
        if not line.startswith(wanted):
            raise Refused(line)

    def stop(self):
        self.running = False
        for thread in self.threads:
            thread.join()


class Refused(Exception):
    """An unexpected reply."""


def space(number):
    """SQL condition for the rows of one key space (store/src/key.rs)."""
    return f"k >= '\\x{number:02x}' AND k < '\\x{number + 1:02x}'"


EMAIL, RECIPIENT, ATTEMPT, TASK, NODE = 16, 17, 18, 24, 25


def start_cluster(nodes):
    """Starts the nodes with one key, account and domain. Returns the account with its API key."""
    nodes[0].start()
    account = nodes[0].admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
    nodes[0].admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")
    for node in nodes[1:]:
        (node.directory / "data").mkdir(mode=0o700)
        shutil.copy(nodes[0].directory / "data" / "secret.key", node.directory / "data" / "secret.key")
        node.start()
    return account


def drill(args, base):
    """Runs the drill. Returns the differences."""
    primary = Postgres(base, "primary").init().start()
    primary.sql("CREATE DATABASE mail", "postgres")
    # Commits wait for the standby. Without this setting it reconnects only every five seconds.
    standby = Postgres(base, "standby").replicate(primary).start("wal_retrieve_retry_interval=100ms")
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", "postgres")
    primary.sql("SELECT pg_reload_conf()", "postgres")
    until(lambda: primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "postgres") == "1", "the standby")
    url = f"postgres://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/mail?sslmode=disable"
    sink = Sink()
    nodes = [Node(base, f"node{n}", url, sink.port) for n in (1, 2, 3)]
    account = start_cluster(nodes)
    load = Load(nodes)
    began = time.monotonic()
    rates = []

    def log_progress(text):
        print(f"{time.monotonic() - began:6.1f} s  accepted {len(load.acknowledged):6}  received {len(sink.got):6}  {text}", flush=True)

    def measure_rate(what):
        before, at = len(load.acknowledged), time.monotonic()
        time.sleep(args.seconds)
        rates.append((what, (len(load.acknowledged) - before) / (time.monotonic() - at)))

    try:
        orders(nodes)
        log_progress("commands given to a node that does not own the task were executed")
        log_progress(f"a stream on a node ended {revoked(nodes, account['api_key']['secret']):.1f} s after its key was deleted on another node")
        measure_rate("three nodes")
        log_progress("kill -9 of a node")
        nodes[0].end(signal.SIGKILL)
        killed_at = time.monotonic()
        measure_rate("one node killed")
        nodes[0].start(wait=False)
        log_progress("the node starts again")
        until(nodes[0].is_ready, "node1")
        log_progress(f"the node owns its share of partitions {time.monotonic() - killed_at:.1f} s after the kill")
        measure_rate("three nodes again")
        log_progress("SIGTERM to another")
        status = nodes[1].end(signal.SIGTERM)
        log_progress(f"the node exited with {status}")
        measure_rate("one node stopped")
        nodes[1].start()
        log_progress("the node is back; restarting PostgreSQL")
        primary.end(signal.SIGINT)
        primary.start("synchronous_standby_names=*")
        back_at, before = time.monotonic(), len(load.acknowledged)
        log_progress("PostgreSQL is back")
        until(lambda: len(load.acknowledged) > before + 50, "intake after the restart")
        log_progress(f"intake resumed {time.monotonic() - back_at:.2f} s later")
        measure_rate("after the restart")
        log_progress("the primary is lost")
        primary.end(signal.SIGQUIT)
        lost_at = time.monotonic()
        # As a cluster manager does: writes must not wait for a standby that no longer exists.
        standby.program("pg_ctl", "promote", "-D", standby.data)
        standby.sql("ALTER SYSTEM SET synchronous_standby_names = ''", "postgres")
        standby.sql("SELECT pg_reload_conf()", "postgres")
        before = len(load.acknowledged)
        until(lambda: len(load.acknowledged) > before + 100, "intake after the fail-over")
        log_progress(f"the standby serves: intake resumed {time.monotonic() - lost_at:.1f} s after the loss")
        measure_rate("after the fail-over")
        load.stop()
        log_progress("the load has ended")
        until(lambda: standby.sql(f"SELECT count(*) FROM postrider_rows WHERE {space(TASK)}") == "0", "an empty queue")
        log_progress("the queue is empty")
        killed = [sink.times[n] - killed_at for n, (at, name) in load.acknowledged.items()
                  if name == "node1" and at < killed_at and sink.times.get(n, 0) > killed_at]
        if killed:
            print(f"mail of the killed node: {len(killed)} messages, the last one delivered {max(killed):.1f} s after the kill")
        for what, rate in rates:
            print(f"  {what:22} {rate:7.0f} messages/s accepted")
        return check_result(standby, load, sink)
    finally:
        load.running = False
        for node in nodes:
            if node.process and node.process.poll() is None:
                node.end(signal.SIGKILL)
        primary.end()
        standby.end()


def orders(nodes):
    """Defers one message on each node and drops it by a command to the next node."""
    for place, node in enumerate(nodes):
        with smtplib.SMTP("127.0.0.1", node.relay, timeout=60) as client:
            client.ehlo()
            client.mail(f"app@{DOMAIN}")
            client.rcpt("someone@defer.example")
            _, reply = client.data(f"From: app@{DOMAIN}\r\nSubject: wait\r\n\r\nwait\r\n")
        email = reply.decode().split()[-1]
        other = nodes[(place + 1) % len(nodes)]

        def trace_output():
            return json.dumps(other.admin("trace", email))

        until(lambda: "deferred" in trace_output(), f"a deferral of {email}")
        until(lambda: ordered(other, email), f"the command for {email}")
        until(lambda: '"cancelled"' in trace_output(), f"the cancellation of {email}")


def revoked(nodes, key):
    """Deletes an API key on one node while a stream is open on another. Returns the seconds until the stream ended."""

    def call(node, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", node.api, timeout=PATIENCE_S)
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text}")
        return json.loads(text)

    reader, writer = nodes[0], nodes[1]
    made = call(writer, "POST", "/api-keys", {"name": "stream", "scope": "full"})
    stream = http.client.HTTPConnection("127.0.0.1", reader.api, timeout=PATIENCE_S)
    stream.request("GET", "/webhook-events", headers={"authorization": f"Bearer {made['secret']}", "accept": "text/event-stream"})
    answer = stream.getresponse()
    if answer.status != 200:
        raise SystemExit(f"the stream: {answer.status} {answer.read()}")
    call(writer, "DELETE", f"/api-keys/{made['api_key']['id']}")
    deleted_at = time.monotonic()
    answer.read()
    return time.monotonic() - deleted_at


def ordered(node, email):
    """Returns whether the command was accepted; an email that is being attempted refuses it."""
    command = [os.environ["POSTRIDER"], "admin", "--config", node.config, "queue", "drop", email, "--json"]
    return subprocess.run(command, capture_output=True).returncode == 0


def check_result(database, load, sink):
    """Compares acknowledged, received and stored messages. Returns the differences."""
    found = []
    lost = [number for number in load.acknowledged if sink.got[number] == 0]
    if lost:
        found.append(f"{len(lost)} acknowledged messages were never received: {lost[:5]}")
    unknown_messages = [n for n in sink.got if n not in load.acknowledged and n not in load.unknown]
    if unknown_messages:
        found.append(f"{len(unknown_messages)} messages were received that were never acknowledged: {unknown_messages[:5]}")
    text = "convert_from(v, 'UTF8')"
    emails = int(database.sql(f"SELECT count(*) FROM postrider_rows WHERE {space(EMAIL)}"))
    dropped = int(database.sql(
        f"SELECT count(*) FROM postrider_rows WHERE {space(RECIPIENT)} AND {text} LIKE '%\"state\":\"cancelled\"%'"))
    emails -= dropped
    at_least, at_most = len(load.acknowledged), len(load.acknowledged) + len(load.unknown)
    if not at_least <= emails <= at_most:
        found.append(f"{emails} emails are stored; expected {at_least} to {at_most}")
    delivered = int(database.sql(
        f"SELECT count(*) FROM postrider_rows WHERE {space(RECIPIENT)} AND {text} LIKE '%\"state\":\"delivered\"%'"))
    if delivered != emails:
        found.append(f"{delivered} of {emails} recipients are delivered")
    deliveries = int(database.sql(
        f"SELECT count(*) FROM postrider_rows WHERE {space(ATTEMPT)} AND {text} LIKE '%\"code\":250%'"))
    if deliveries != emails:
        found.append(f"{deliveries} deliveries are stored for {emails} emails")
    twice = sum(count - 1 for count in sink.got.values())
    print(f"acknowledged {len(load.acknowledged)}, temporarily refused {load.refused}, unconfirmed {len(load.unknown)}; "
          f"stored {emails}, delivered {delivered}; received {len(sink.got)}, {twice} duplicates")
    return found


def main():
    parser = argparse.ArgumentParser(description="Three nodes on one PostgreSQL, with failures.")
    parser.add_argument("--seconds", type=float, default=12, help="seconds between the failures (12)")
    parser.add_argument("--keep", action="store_true", help="keep the directory")
    args = parser.parse_args()
    os.environ.setdefault("POSTRIDER", str(ROOT / "target/release/postrider"))
    os.environ["POSTRIDER"] = str(Path(os.environ["POSTRIDER"]).resolve())
    base = Path(tempfile.mkdtemp(prefix="postrider-drill-"))
    base.chmod(0o755)
    try:
        found = drill(args, base)
    finally:
        if not args.keep:
            shutil.rmtree(base, ignore_errors=True)
        else:
            print(base)
    for difference in found:
        print("FAILED:", difference)
    print("all lists agree" if not found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
