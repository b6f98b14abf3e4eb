#!/usr/bin/env python3
"""Foreign clients submit mail to `postrider dev`, and foreign verifiers check its signatures.

    tests/peers/check.py --postrider target/debug/postrider
    tests/peers/check.py --line '{"submission": …}'       use a running `postrider dev --json`

Flow: start `postrider dev --json` and read its line. Each client (swaks, smtplib, msmtp, Nodemailer) sends one message
with STARTTLS and AUTH; the inbox must show it with subject, sender and recipient. Then each verifier (dkimpy, OpenDKIM)
verifies both signatures of every raw message with the public keys that the inbox publishes. Clients that are not
installed are skipped with a note. No traffic leaves loopback, except that npm fetches Nodemailer.
"""

import argparse
import json
import re
import shutil
import smtplib
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from email.message import EmailMessage
from pathlib import Path

HERE = Path(__file__).resolve().parent
NODE_CACHE = HERE.parent.parent / "target" / "peers"
START_S = 120
ARRIVE_S = 120
CLIENT_S = 60
RECIPIENT = "someone@peers.example"
ALGORITHMS = ["ed25519-sha256", "rsa-sha256"]
BODY = "A line.\n.a line that begins with a dot\n\nUmlauts: \u00e4\u00f6\u00fc\n"


class Skip(Exception):
    """Something is not installed: the check is skipped."""


class Failed(Exception):
    """The check found a fault."""


# The server


class Dev:
    """A running `postrider dev`, from its JSON line."""

    def __init__(self, line):
        self.line = line
        self.host, self.port = split_address(line["submission"])
        self.user, self.password = line["smtp_username"], line["smtp_password"]
        self.sender = "sender@" + line["domain"]
        inbox = line["inbox"].rstrip("/")
        self.inbox = inbox if inbox.startswith("http") else "http://" + inbox

    def get(self, path):
        with urllib.request.urlopen(self.inbox + path, timeout=10) as answer:
            return answer.read()

    def wait_for(self, subject):
        """Waits for a captured message with this subject and returns it."""
        deadline = time.monotonic() + ARRIVE_S
        while time.monotonic() < deadline:
            for message in json.loads(self.get("/messages"))["messages"]:
                if message["subject"] == subject:
                    return message
            time.sleep(0.1)
        raise Failed(f"no message with the subject {subject!r} in the inbox after {ARRIVE_S} s")


def split_address(text):
    host, port = text.rsplit("/", 1)[-1].rsplit(":", 1)
    return host.strip("[]"), int(port)


def start(binary, directory):
    """Starts the server on free ports; (process, Dev)."""
    command = [binary, "dev", "--json", "--data-dir", directory]
    for listener in ("--api", "--submission", "--mx"):
        command += [listener, "127.0.0.1:0"]
    log = Path(directory, "..", "log").resolve().open("wb")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    deadline = time.monotonic() + START_S
    for text in process.stdout:
        if text.lstrip().startswith("{"):
            return process, Dev(json.loads(text))
        if time.monotonic() > deadline:
            break
    process.kill()
    raise Failed("postrider dev printed no JSON line:\n" + Path(log.name).read_text(errors="replace")[-3000:])


# Clients: each sends one message


def message(dev, subject):
    email = EmailMessage()
    email["From"] = f"Sender <{dev.sender}>"
    email["To"] = RECIPIENT
    email["Subject"] = subject
    email.set_content(BODY)
    return email


def with_smtplib(dev, subject):
    with smtplib.SMTP(dev.host, dev.port, timeout=CLIENT_S) as client:
        client.starttls(context=ssl._create_unverified_context())
        client.login(dev.user, dev.password)
        client.send_message(message(dev, subject))


def with_swaks(dev, subject):
    command = [program("swaks"), "--server", dev.host, "--port", str(dev.port), "--tls", "--auth", "PLAIN"]
    command += ["--auth-user", dev.user, "--auth-password", dev.password, "--from", dev.sender, "--to", RECIPIENT]
    run([*command, "--header", f"Subject: {subject}", "--body", BODY])


def with_msmtp(dev, subject):
    msmtp = program("msmtp")
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory, "msmtprc")
        config.touch(0o600)
        config.write_text(
            f"account default\nhost {dev.host}\nport {dev.port}\nfrom {dev.sender}\nauth plain\nuser {dev.user}\n"
            f"password {dev.password}\ntls on\ntls_starttls on\ntls_certcheck off\n"
        )
        run([msmtp, "-C", str(config), RECIPIENT], message(dev, subject).as_bytes())


NODE = """
const mail = JSON.parse(process.argv[1]);
require("nodemailer").createTransport(mail.transport).sendMail(mail.message)
  .then(() => process.exit(0), (error) => { console.error(error.message); process.exit(1); });
"""


def with_nodemailer(dev, subject):
    node = program("node")
    if not (NODE_CACHE / "node_modules" / "nodemailer").exists():
        NODE_CACHE.mkdir(parents=True, exist_ok=True)
        fetch = [program("npm"), "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(NODE_CACHE), "nodemailer@7"]
        try:
            subprocess.run(fetch, capture_output=True, timeout=CLIENT_S, check=True, cwd=NODE_CACHE)
        except (subprocess.SubprocessError, OSError):
            raise Skip("npm cannot fetch nodemailer") from None
    mail = {
        "transport": {
            "host": dev.host,
            "port": dev.port,
            "requireTLS": True,
            "tls": {"rejectUnauthorized": False},
            "auth": {"user": dev.user, "pass": dev.password},
        },
        "message": {"from": dev.sender, "to": RECIPIENT, "subject": subject, "text": BODY, "html": "<p>A line.</p>"},
    }
    run([node, "-e", NODE, json.dumps(mail)], cwd=NODE_CACHE)


CLIENTS = {"swaks": with_swaks, "smtplib": with_smtplib, "msmtp": with_msmtp, "nodemailer": with_nodemailer}


def sent_with(name, dev):
    """Sends one message with this client and checks the captured message."""
    subject = f"peer {name} {time.time_ns()}"
    CLIENTS[name](dev, subject)
    found = dev.wait_for(subject)
    if not any(RECIPIENT in to for to in found["to"]):
        raise Failed(f"captured for {found['to']}, not for {RECIPIENT}")
    raw = dev.get(f"/messages/{found['id']}/raw")
    for expected in (b"\n.a line that begins with a dot", b"\nMessage-ID:", b"\nDate:"):
        if expected.lower() not in raw.lower():
            raise Failed(f"the captured message lacks {expected.decode().strip()!r}")
    for signature in found["dkim"]:
        if signature["result"] != "pass":
            raise Failed(f"the inbox's own DKIM verdict: {signature}")
    return raw


# Verifiers: each checks one raw message


def by_dkimpy(raw, records):
    try:
        import dkim
    except ImportError:
        raise Skip("python3-dkim is not installed") from None

    def answer(name, timeout=5):
        return records.get(name.decode().rstrip(".").lower(), "").encode() or None

    algorithms = []
    verifier = dkim.DKIM(raw, minkey=2048)
    count = sum(1 for name, _ in verifier.headers if name.lower() == b"dkim-signature")
    for index in range(count):
        try:
            good = verifier.verify(idx=index, dnsfunc=answer)
        except dkim.DKIMException as problem:
            raise Failed(f"signature {index + 1}: {problem}") from None
        if not good:
            raise Failed(f"signature {index + 1} does not verify")
        algorithms.append(verifier.signature_fields[b"a"].decode())
        if b"l" in verifier.signature_fields:
            raise Failed("a signature covers only a part of the body (l=)")
    if sorted(algorithms) != ALGORITHMS:
        raise Failed(f"signed with {sorted(algorithms)}, not with {ALGORITHMS}")


def by_opendkim(raw, records):
    """OpenDKIM's test mode with keys from a file. It stops at the first valid signature, so pass one at a time."""
    opendkim = program("opendkim")
    head, separator, body = raw.partition(b"\r\n\r\n")
    fields = re.split(rb"\r\n(?![ \t])", head)
    signatures = [field for field in fields if field.lower().startswith(b"dkim-signature:")]
    others = [field for field in fields if field not in signatures]
    if len(signatures) != len(ALGORITHMS):
        raise Failed(f"{len(signatures)} signatures, not {len(ALGORITHMS)}")
    for signature in signatures:
        verify_with_opendkim(opendkim, b"\r\n".join([signature, *others]) + separator + body, records)


def verify_with_opendkim(opendkim, raw, records):
    with tempfile.TemporaryDirectory() as directory:
        keys, config, mail = (Path(directory, name) for name in ("keys", "conf", "mail"))
        keys.write_text("".join(f"{name} {value}\n" for name, value in records.items()))
        config.write_text(f"Mode v\nTestPublicKeys {keys}\nSyslog no\n")
        mail.write_bytes(raw)
        output = run([opendkim, "-x", str(config), "-t", str(mail)])
        if "succeeded" not in output:
            raise Failed(output.strip())


VERIFIERS = {"dkimpy": by_dkimpy, "opendkim": by_opendkim}


# Running


def program(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not found:
        raise Skip(f"{name} is not installed")
    return found


def run(command, given=None, cwd=None):
    done = subprocess.run(command, input=given, capture_output=True, timeout=CLIENT_S, cwd=cwd)
    output = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode != 0:
        raise Failed(f"{Path(command[0]).name}: exit {done.returncode}: {output.strip()[-1500:]}")
    return output


def report_case(name, work):
    """Runs a check and prints the result. Returns its value or `None`, and whether it failed."""
    try:
        value = work()
    except Skip as skip:
        print(f"  {name:<34} skipped: {skip}")
        return None, False
    except (Failed, OSError, smtplib.SMTPException, subprocess.SubprocessError, KeyError) as failure:
        print(f"  {name:<34} FAILED: {failure!r}" if not str(failure) else f"  {name:<34} FAILED: {failure}")
        return None, True
    print(f"  {name:<34} ok")
    return value, False


def check(dev):
    captured, failures = {}, 0
    for name in CLIENTS:
        raw, failed = report_case(f"sent by {name}", lambda: sent_with(name, dev))
        failures += failed
        if raw:
            captured[name] = raw
    records = {entry["name"].rstrip(".").lower(): entry["value"] for entry in json.loads(dev.get("/dkim-records"))}
    for name, raw in captured.items():
        for judge, verify in VERIFIERS.items():
            failures += report_case(f"{name}'s, verified by {judge}", lambda: verify(raw, records))[1]
    return failures


def main():
    parser = argparse.ArgumentParser(description="Foreign clients and verifiers against postrider dev.")
    parser.add_argument("--postrider", help="the binary to start")
    parser.add_argument("--line", help="the JSON line of a running postrider dev")
    args = parser.parse_args()
    if args.line:
        sys.exit(1 if check(Dev(json.loads(args.line))) else 0)
    if not args.postrider:
        parser.error("--postrider or --line")
    process = None
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory, "data")
        data.mkdir()
        try:
            process, dev = start(args.postrider, str(data))
            failures = check(dev)
            if failures:
                print(Path(directory, "log").read_text(errors="replace")[-3000:])
        except Failed as failure:
            print(f"  FAILED: {failure}")
            failures = 1
        finally:
            if process:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    print("  postrider dev does not exit on SIGTERM")
                    failures = 1
                    process.kill()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
