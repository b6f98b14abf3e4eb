#!/usr/bin/env python3
"""Sets up servers with `postrider setup`, as an operator does: in a terminal, by flags, and after an interruption.

    tests/peers/setup.py --postrider target/debug/postrider
    tests/peers/setup.py --postrider … --show      print what the operator sees

Flow: Knot serves the zones, Pebble issues certificates, and a scripted mail host has the owner's mailbox. Each case runs
`postrider setup`, starts the server with the command that it prints, and pastes the records that it prints into the zone,
literally. It must end with a delivered test email and a certificate by Pebble. The environment replaces ports and name
servers. Skipped if Knot or Pebble is not installed. No traffic leaves loopback.
"""

import argparse
import contextlib
import fcntl
import json
import os
import pty
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from acme import ANY_CERTIFICATE, answers, authority_certificate, running, wait_for
from behind_haproxy import free_ports
from certificates import Certificates
from check import NODE_CACHE, Failed, Skip, program, report_case, run
from knot import Knot, Zone
from mailhosts import Host, MailHosts

PATIENCE_S = 60
OWNER = "owner@inbox.test"
RECORD = re.compile(r"^\S+\. \d+ IN [A-Z]+ .+$")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# The name servers' check, and what the clock's and the blocklists' checks look up, ends here.
ROOT = ["gmail.com. 1 TXT x", "outlook.com. 1 TXT x", "iana.org. 1 TXT x"]
MAILBOX = ["inbox.test. 1 MX 10 mx.inbox.test."]


class Network:
    """Knot, Pebble and the owner's mail host."""

    def __init__(self, place, stack):
        self.place, self.lock, self.records = place, threading.Lock(), {"test": list(MAILBOX), "arpa": []}
        pebble = program("pebble")
        # A dot at the end: names outside of these zones do not exist.
        self.knot = Knot(place, {".": Zone(list(ROOT)), "test": Zone(signing=None), "arpa": Zone(signing=None)})
        stack.callback(self.knot.stop)
        (place / "tls").mkdir()
        self.directory, manage, self.http, self.mail_port = free_ports(4)
        hosts = MailHosts(self.mail_port, Certificates(place / "tls", ["mx.inbox.test"]).contexts)
        self.mailbox = hosts.add(Host())
        self.records["test"].append(f"mx.inbox.test. 1 A {self.mailbox.address}")
        self.publish([])
        authority_certificate(place)
        settings = {"listenAddress": f"127.0.0.1:{self.directory}", "managementListenAddress": f"127.0.0.1:{manage}"}
        settings |= {"certificate": "pebble.pem", "privateKey": "pebble.key", "httpPort": self.http, "tlsPort": self.http}
        (place / "pebble.json").write_text(json.dumps({"pebble": settings}))
        command = [pebble, "-config", "pebble.json", "-dnsserver", self.knot.address]
        stack.enter_context(running(command, place / "pebble.log", cwd=place))
        wait_for("Pebble", answers(self.directory))

    def publish(self, lines):
        """Adds lines of a zone file to the zones that they belong to."""
        with self.lock:
            for name, records in self.records.items():
                records += [line for line in lines if line.split(" ")[0].endswith(f".{name}.")]
                self.knot.change(name, list(records))


class Operator:
    """One installation: its environment, its server, and what its operator sees."""

    def __init__(self, binary, network, number, name, stack, show):
        self.binary, self.network, self.name, self.stack = binary, network, name, stack
        self.address, self.place, self.show = f"127.0.0.{number}", network.place / name, show
        self.place.mkdir()
        self.config, self.seen, self.read_to, self.output = self.place / "postrider.toml", "", 0, None
        mx, submission, self.submissions, api, ops = free_ports(5)
        # Ports that need no privileges, and the network of this test.
        self.environment = dict(
            os.environ,
            TERM="xterm",
            POSTRIDER_DNS_SERVERS=network.knot.address,
            POSTRIDER_DELIVERY_PORT=str(network.mail_port),
            POSTRIDER_DELIVERY_SOURCE_ADDRESSES=self.address,
            POSTRIDER_DELIVERY_ALLOW_PRIVATE_DESTINATIONS="true",
            POSTRIDER_TLS_ACME_HTTP_LISTEN=f"{self.address}:{network.http}",
            POSTRIDER_MX_LISTEN=f"{self.address}:{mx}",
            POSTRIDER_SUBMISSION_LISTEN=f"{self.address}:{submission}",
            POSTRIDER_SUBMISSION_IMPLICIT_TLS=f"127.0.0.1:{self.submissions}",
            POSTRIDER_API_LISTEN=f"{self.address}:{api}",
            POSTRIDER_OPS_LISTEN=f"127.0.0.1:{ops}",
        )

    def command(self, *words):
        place = [f"--config={self.config}", f"--data={self.place / 'data'}", f"--address={self.address}"]
        authority = [f"--acme-directory=https://127.0.0.1:{self.network.directory}/dir"]
        authority += [f"--acme-roots={self.network.place / 'ca.pem'}"]
        return [self.binary, "setup", *place, *authority, f"--out={self.network.mailbox.address}", *words]

    def flags(self, *words):
        return [f"--hostname=mx1.{self.name}.test", f"--domain={self.name}.test", f"--owner={OWNER}", *words]

    def start(self, *words, in_terminal):
        self.seen, self.read_to = "", 0
        if in_terminal:
            self.output, terminal = pty.openpty()

            def control():
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

            streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "preexec_fn": control}
        else:
            self.output, terminal = os.pipe()
            streams = {"stdin": subprocess.DEVNULL, "stdout": terminal, "stderr": terminal}
        self.process = subprocess.Popen(
            self.command(*words), start_new_session=True, env=self.environment, **streams
        )
        os.close(terminal)
        self.reader = threading.Thread(target=self.read, args=(self.output,), daemon=True)
        self.reader.start()

    def read(self, output):
        while True:
            try:
                data = os.read(output, 65536)
            except OSError:
                data = b""
            if not data:
                os.close(output)
                return
            text = ESCAPES.sub("", data.decode(errors="replace")).replace("\r", "")
            self.seen += text
            if self.show:
                sys.stdout.buffer.write(data)
                sys.stdout.flush()

    def expect(self, text):
        """Waits for a text after the last one, and returns what stands before it."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.seen.find(text, self.read_to)) < 0:
            if time.monotonic() > deadline or (self.process.poll() is not None and not self.reader.is_alive()):
                if self.seen.find(text, self.read_to) < 0:
                    raise Failed(f"{text!r} was not printed:\n{self.seen[-5000:]}\n{self.log()}")
            time.sleep(0.02)
        before, self.read_to = self.seen[self.read_to : found], found + len(text)
        return before

    def type(self, line):
        os.write(self.output, f"{line}\n".encode())

    def end(self, status):
        found = self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        if found != status:
            raise Failed(f"exit status {found} instead of {status}:\n{self.seen[-5000:]}\n{self.log()}")

    def start_server(self):
        """Runs the command that was printed."""
        self.expect("in another terminal:")
        self.expect("  postrider ")
        self.expect("\n")
        line = next(line for line in self.seen.splitlines() if line.startswith("  postrider serve"))
        words = shlex.split(line)
        log = (self.place / "log").open("ab")
        server = subprocess.Popen([self.binary, *words[1:]], stdout=log, stderr=log, env=self.environment)

        def stop():
            server.terminate()
            server.wait(PATIENCE_S)

        self.stack.callback(stop)

    def runs(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.place / "data/admin.sock"))
        return True

    def log(self):
        log = self.place / "log"
        return log.read_text(errors="replace")[-3000:] if log.exists() else ""

    def paste(self):
        """Publishes the records that were printed."""
        block = self.expect("Waiting until the records are published")
        lines = [line for line in block.splitlines() if RECORD.match(line)]
        if not lines:
            raise Failed(f"no records were printed:\n{block}")
        self.network.publish(lines)
        return lines

    def complete(self, names):
        """Checks what an operator has at the end."""
        self.expect("is valid until")
        transcript = self.expect("Delivered. Look for it")
        for part in ("TLS: TLSv1.3", "250 2.0.0 taken", "EHLO"):
            if part not in transcript:
                raise Failed(f"{part!r} is not in the transcript:\n{transcript}")
        self.expect("Setup is complete")
        self.end(0)
        sender = f"postrider@{self.name}.test".encode()
        if not any(sender in each and b"DKIM-Signature" in each for each in self.network.mailbox.messages):
            raise Failed("the mail host has not got the email")
        with socket.create_connection(("127.0.0.1", self.submissions), timeout=5) as plain:
            with ANY_CERTIFICATE.wrap_socket(plain, server_hostname=names[0]) as tls:
                der = tls.getpeercert(binary_form=True)
        shown = run([program("openssl"), "x509", "-inform", "DER", "-noout", "-issuer", "-ext", "subjectAltName"], given=der)
        missing = [name for name in names if f"DNS:{name}" not in shown]
        if "Pebble" not in shown or missing:
            raise Failed(f"the certificate is another one: {shown}")


def in_a_terminal(operator):
    """Questions, one of them answered wrongly; mail is received."""
    domain = f"{operator.name}.test"
    operator.start(in_terminal=True)
    operator.expect("Hostname")
    operator.type("mx1")
    operator.expect("mx1 has no domain")
    operator.type(f"mx1.{domain}")
    operator.expect(f"Sending domain [{domain}]:")
    operator.type("")
    operator.expect("Your email address:")
    operator.type(OWNER)
    operator.expect("Receive mail")
    operator.type("yes")
    operator.expect("Continue? yes or no [yes]:")
    operator.type("")
    operator.start_server()
    secrets = operator.expect("Added the domain")
    if "POSTRIDER_API_KEY=rnl_" not in secrets or "SIGN_IN_LINK=https://" not in secrets:
        raise Failed(f"the secrets were not printed:\n{secrets}")
    zone = operator.paste()
    if any(f" {domain}. " in f" {line}" and " MX " in line for line in zone):
        raise Failed(f"the MX record is printed before the domain is verified: {zone}")
    operator.expect(f"{domain} is verified")
    zone = operator.paste()
    if len(zone) != 1 or f"{domain}. 3600 IN MX 10 mx1.{domain}." != zone[0]:
        raise Failed(f"the last record is not the MX record: {zone}")
    operator.complete([f"mx1.{domain}", f"mta-sts.{domain}"])


def by_flags(operator):
    """No terminal: missing flags are named; without waiting, a second run goes on."""
    operator.start(in_terminal=False)
    operator.expect("add --hostname, --domain, --owner, --receive or --no-receive")
    operator.end(64)
    secrets = operator.place / "secrets"
    words = operator.flags("--no-receive", "--no-wait", f"--secrets={secrets}")
    operator.start(*words, in_terminal=False)
    operator.start_server()
    operator.expect("the server is not running yet")
    operator.expect(f"--secrets {secrets} --no-receive")
    operator.end(75)
    if secrets.exists():
        raise Failed("there is a file of secrets without an account")
    wait_for("the server", operator.runs)
    operator.start(*words, in_terminal=False)
    operator.expect("Without effect on it: --data, --acme-directory, --acme-roots")
    block = operator.expect("DNS is not complete yet")
    operator.end(75)
    if "rnl_" in operator.seen or "POSTRIDER_API_KEY=rnl_" not in secrets.read_text():
        raise Failed("the secrets are not in the file alone")
    if secrets.stat().st_mode & 0o777 != 0o600:
        raise Failed(f"the file of secrets has the mode {secrets.stat().st_mode:o}")
    operator.network.publish([line for line in block.splitlines() if RECORD.match(line)])
    operator.start(in_terminal=False)
    operator.complete([f"mx1.{operator.name}.test"])


def after_an_interruption(operator):
    """Ctrl-C while DNS is awaited; the same command goes on without questions."""
    operator.start(*operator.flags("--no-receive", "--yes"), in_terminal=True)
    operator.start_server()
    operator.paste()
    operator.type("\x03")
    operator.expect("Stopped. Run `postrider setup")
    operator.end(75)
    written = operator.config.read_text()
    operator.start(in_terminal=True)
    operator.expect("exists and is used as it is")
    operator.expect("If you do not have its secrets:")
    operator.expect("admin key create --config")
    operator.complete([f"mx1.{operator.name}.test"])
    if operator.config.read_text() != written:
        raise Failed("the configuration was changed")


CASES = {"in a terminal": in_a_terminal, "by flags": by_flags, "after an interruption": after_an_interruption}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--postrider", required=True)
    parser.add_argument("--show", action="store_true", help="print what the operator sees")
    parser.add_argument("cases", nargs="*", help="only these cases")
    options = parser.parse_args()
    binary = str(Path(options.postrider).resolve())
    print("Setting up servers:")
    # A directory on a disk: the setup refuses one in memory.
    NODE_CACHE.mkdir(parents=True, exist_ok=True)
    failures = []
    with tempfile.TemporaryDirectory(dir=NODE_CACHE) as scratch, contextlib.ExitStack() as stack:
        try:
            network = Network(Path(scratch), stack)
        except Skip as skip:
            print(f"  skipped: {skip}")
            return

        def work(number, title, case):
            name = title.replace(" ", "-")
            operator = Operator(binary, network, 45 + number, name, stack, options.show)
            failures.append(report_case(title, lambda: case(operator))[1])

        chosen = [(title, case) for title, case in CASES.items() if not options.cases or title in options.cases]
        threads = [threading.Thread(target=work, args=(number, *case)) for number, case in enumerate(chosen)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    sys.exit(1 if len(failures) < len(chosen) or any(failures) else 0)


if __name__ == "__main__":
    main()
