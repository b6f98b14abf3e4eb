#!/usr/bin/env python3
"""Tests HAProxy in front of `postrider serve`, configured as in docs/PROXY.md.

    tests/peers/behind_haproxy.py --postrider target/debug/postrider

Flow: the code blocks of docs/PROXY.md become the two configurations, with loopback addresses; start both programs;
HAProxy's health checks must pass; a client at 127.0.0.9 submits over STARTTLS and over implicit TLS and reads both
messages back over HTTPS. Their Received fields must contain 127.0.0.9. Skipped if HAProxy is not installed. No traffic
leaves loopback.
"""

import argparse
import contextlib
import csv
import http.client
import io
import json
import os
import re
import smtplib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from email.message import EmailMessage
from pathlib import Path

from check import CLIENT_S, HERE, START_S, Failed, Skip, program, report_case, run

CLIENT = "127.0.0.9"
OWNER, DOMAIN = "owner@proxied.example", "proxied.example"
PORTS = ("587", "465", "443")
ANY_CERTIFICATE = ssl._create_unverified_context()


def blocks(language):
    """All code blocks of docs/PROXY.md in this language, joined."""
    text = (HERE.parent.parent / "docs" / "PROXY.md").read_text()
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S))


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def replace(text, changes):
    for old, new in changes:
        if old not in text:
            raise Failed(f"docs/PROXY.md no longer contains {old!r}")
        text = text.replace(old, new)
    return text


class Setup:
    """Both programs on loopback with the configurations of docs/PROXY.md."""

    def __init__(self, binary, directory):
        self.binary, self.directory = binary, directory
        ports = free_ports(2 * len(PORTS))
        self.inner = dict(zip(PORTS, ports))
        self.outer = dict(zip(PORTS, ports[len(PORTS) :]))
        self.config = directory / "postrider.toml"
        self.stats = directory / "haproxy.sock"
        self.processes = []

    def start_postrider(self):
        certificate, key = self.directory / "cert.pem", self.directory / "key.pem"
        openssl = [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        run([*openssl, "-nodes", "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"])
        documented = replace(
            blocks("toml"),
            [(f'"10.0.0.11:{port}"', f'"127.0.0.1:{inner}"') for port, inner in self.inner.items()]
            + [('"10.0.0.2", "10.0.0.3"', '"127.0.0.1"')],
        )
        self.config.write_text(
            f'hostname = "mx.{DOMAIN}"\ndata_dir = "{self.directory}/data"\n[delivery]\npaused = true\n[tls]\n'
            f'certificate = "{certificate}"\nprivate_key = "{key}"\n{documented}'
        )
        ready = self.directory / "ready"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as words:
            words.bind(str(ready))
            words.settimeout(START_S)
            self.spawn("postrider", [self.binary, "serve", "--config", str(self.config)], NOTIFY_SOCKET=str(ready))
            while b"READY=1" not in words.recv(256):
                pass
        account = self.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
        self.admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")
        self.key, self.login = account["api_key"]["secret"], account["smtp_credential"]

    def start_haproxy(self):
        documented = replace(
            blocks("haproxy"),
            [(f"10.0.0.11:{port} ", f"127.0.0.1:{self.inner[port]} ") for port in ("465", "443")]
            + [("10.0.0.11:587\n", f"127.0.0.1:{self.inner['587']}\n"), ("inter 5s", "inter 200ms")]
            + [(f"bind :::{port} v4v6", f"bind 127.0.0.1:{outer}") for port, outer in self.outer.items()],
        )
        config = self.directory / "haproxy.cfg"
        config.write_text(f"global\n    stats socket {self.stats}\n{documented}")
        run([program("haproxy"), "-c", "-f", str(config)])
        self.spawn("haproxy", [program("haproxy"), "-db", "-f", str(config)])

    def spawn(self, name, command, **environment):
        with (self.directory / f"{name}.log").open("wb") as log:
            environment = {**os.environ, **environment}
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()

    def admin(self, *words):
        return json.loads(run([self.binary, "admin", *words, "--config", str(self.config), "--json"]))

    def health(self):
        """HAProxy's health status of each server: `L7OK` is good."""
        with socket.socket(socket.AF_UNIX) as stats:
            stats.connect(str(self.stats))
            stats.sendall(b"show stat\n")
            statistics = b"".join(iter(lambda: stats.recv(65536), b"")).decode()
        rows = csv.DictReader(io.StringIO(statistics.removeprefix("# ")))
        return {row["pxname"]: row["check_status"].removeprefix("* ") for row in rows if row["svname"] == "postrider"}

    def get(self, path):
        client = http.client.HTTPSConnection(
            "127.0.0.1", self.outer["443"], timeout=CLIENT_S, context=ANY_CERTIFICATE, source_address=(CLIENT, 0)
        )
        with contextlib.closing(client):
            client.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
            answer = client.getresponse()
            if answer.status != 200:
                raise Failed(f"GET {path}: {answer.status}")
            return answer.read()


def is_well(setup):
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and all(process.poll() is None for process in setup.processes):
        with contextlib.suppress(OSError):
            found = setup.health()
            if len(found) == len(PORTS) and set(found.values()) == {"L7OK"}:
                return
        time.sleep(0.1)
    raise Failed(f"health checks: {setup.health()}")


def submit(setup, client):
    client.login(setup.login["username"], setup.login["password"])
    email = EmailMessage()
    email["From"], email["To"], email["Subject"] = f"sender@{DOMAIN}", "someone@peers.example", "proxied"
    email.set_content("A line.\n")
    client.send_message(email)


def over_starttls(setup):
    where = {"timeout": CLIENT_S, "source_address": (CLIENT, 0)}
    with smtplib.SMTP("127.0.0.1", setup.outer["587"], **where) as client:
        client.starttls(context=ANY_CERTIFICATE)
        submit(setup, client)


def over_implicit_tls(setup):
    where = {"timeout": CLIENT_S, "source_address": (CLIENT, 0), "context": ANY_CERTIFICATE}
    with smtplib.SMTP_SSL("127.0.0.1", setup.outer["465"], **where) as client:
        submit(setup, client)


def over_https(setup):
    emails = json.loads(setup.get("/emails"))["emails"]
    if len(emails) != 2:
        raise Failed(f"{len(emails)} emails, not 2")
    for email in emails:
        raw = setup.get(f"/emails/{email['id']}/raw").decode()
        if f"[{CLIENT}]" not in raw.split("\r\n\r\n")[0]:
            raise Failed(f"{CLIENT} is missing in Received:\n{raw[:500]}")


def main():
    parser = argparse.ArgumentParser(description="HAProxy in front of postrider, configured as in docs/PROXY.md.")
    parser.add_argument("--postrider", required=True, help="the binary to start")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        setup = Setup(args.postrider, Path(directory))
        checks = {
            "haproxy is here": lambda: program("haproxy"),
            "postrider behind haproxy": setup.start_postrider,
            "haproxy as documented": setup.start_haproxy,
            "haproxy's health checks": lambda: is_well(setup),
            "STARTTLS through haproxy": lambda: over_starttls(setup),
            "implicit TLS through haproxy": lambda: over_implicit_tls(setup),
            "HTTPS through haproxy": lambda: over_https(setup),
        }
        failed = False
        try:
            for name, check in checks.items():
                value, failed = report_case(name, check)
                if failed or name == "haproxy is here" and value is None:
                    break
            if failed:
                for log in Path(directory).glob("*.log"):
                    print(log.read_text(errors="replace")[-3000:])
        finally:
            setup.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
