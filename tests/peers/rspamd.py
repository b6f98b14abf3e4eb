#!/usr/bin/env python3
"""Tests spam filtering with rspamd.

    tests/peers/rspamd.py --postrider target/debug/postrider

Flow: start rspamd with Debian's rules and the test's name server; start `postrider serve` with spam_filter = "rspamd",
once with rspamd's own actions and mail accepted while it is down, once with the operator's scores and mail deferred
while it is down. The API's spam_status must match rspamd's log. Skipped if rspamd is not installed. No traffic leaves
loopback.
"""

import argparse
import contextlib
import http.client
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check import START_S, Failed, Skip, program, report_case, run
from nameserver import NameServer
from receiving import BALANCER, DOMAIN, Server, Session, free_port, until

# Its forward and reverse DNS match, so that rspamd does not score the host.
PEER, HOST = "192.0.2.44", "host.good.example"
ZONE = {
    HOST: [("A", PEER), ("MX", (10, HOST))],
    "good.example": [("A", PEER), ("MX", (10, HOST)), ("TXT", f"v=spf1 ip4:{PEER} -all".encode())],
    ".".join(reversed(PEER.split("."))) + ".in-addr.arpa": [("PTR", HOST)],
}
# GTUBE, which every filter treats as spam; with another first letter rspamd only marks the message.
SPAM = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X"
MARKED = "Y" + SPAM[1:]
SENDER = "ada@good.example"
LOGGED = re.compile(r"id: <([^>]*)>, ip: (\S+), from: <([^>]*)>, \(default: \w \(([^)]*)\): \[(-?[\d.]+)/[^\]]*\].*rcpts: <([^>]*)>")
LARGE_BYTES = 8 * 1024 * 1024
MANY = 40

CONFIGURATION = """
.include "$CONFDIR/common.conf"
options {{
    filters = "chartable,dkim,regexp";
    url_tld = "${{SHAREDIR}}/effective_tld_names.dat";
    enable_test_patterns = true;
    dns {{ nameserver = ["{names}"]; timeout = 1s; retransmits = 2; }}
    cache_file = "$DBDIR/symbols.cache";
    hs_cache_dir = "$DBDIR/";
    control_socket = "$DBDIR/rspamd.sock mode=0600";
    map_watch_interval = 1h;
}}
logging {{ type = "file"; filename = "$LOGDIR/rspamd.log"; level = "notice"; log_re_cache = false; .include "$CONFDIR/logging.inc" }}
worker "normal" {{ bind_socket = "127.0.0.1:{port}"; count = 1; mime = true; }}
"""


class Rspamd:
    """An rspamd process and its log."""

    def __init__(self, place, names):
        self.place, self.port = place, free_port()
        self.log = place / "rspamd.log"
        configuration = place / "rspamd.conf"
        configuration.write_text(CONFIGURATION.format(names=names.address, port=self.port))
        place.chmod(0o777)
        user = ["-u", "_rspamd", "-g", "_rspamd"] if run(["id", "-u"]).strip() == "0" else []
        places = [f"--var={name}={place}" for name in ("DBDIR", "RUNDIR", "LOGDIR")]
        self.command = [program("rspamd"), "-f", *user, "-c", configuration, *places]
        self.process = None

    def start(self):
        with open(self.place / "out", "ab") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=out)
        until(self.answers, f"rspamd ({self.place})", START_S)

    def answers(self):
        if self.process.poll() is not None:
            raise Failed(f"rspamd ended: {(self.place / 'out').read_text(errors='replace')[-1500:]}")
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("GET", "/ping")
            return connection.getresponse().status == 200
        return False

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(START_S)
            self.process = None

    def judged(self, message_id):
        """What it logged about a message: address, sender, action, score, recipient."""
        found = []

        def logged():
            lines = self.log.read_text(errors="replace").splitlines()
            found[:] = [match.groups()[1:] for match in map(LOGGED.search, lines) if match and match[1] == message_id]
            return bool(found)

        until(logged, f"the log line of {message_id}", 20)
        return found[-1]


class SmtpClient:
    """Submits messages and returns their results."""

    def __init__(self, binary, place, names, rspamd, options):
        mx = "\n".join(['spam_filter = "rspamd"', f'rspamd_url = "http://127.0.0.1:{rspamd.port}"', *options])
        # The client is behind a load balancer, so that its address is not one that rspamd treats as local.
        self.server = Server(binary, place, names, f'[proxy]\nnetworks = ["{BALANCER}/32"]', mx)
        self.rspamd, self.count = rspamd, 0

    def submit(self, text):
        """Message-ID, reply, and the received email in the API if it was accepted."""
        self.count += 1
        name = f"{self.count}.{self.server.mx}@good.example"
        date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime())
        fields = [f"From: Ada <{SENDER}>", f"To: b@{DOMAIN}", f"Date: {date}", f"Message-ID: <{name}>", "Subject: Lunch"]
        mime = ["MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8"]
        message = "\r\n".join([*fields, *mime, "", text, ""]).encode()
        session = Session(self.server.mx, proxied=PEER)
        try:
            session.send_command(f"MAIL FROM:<{SENDER}>")
            session.send_command(f"RCPT TO:<b@{DOMAIN}>")
            session.socket.sendall(b"BDAT %d LAST\r\n" % len(message) + message)
            code, reply = session.reply()
        finally:
            session.close()
        email = None
        if code == 250:
            email = self.server.call_api("GET", f"/received-emails/{reply.split()[-1]}")["received_email"]
        return name, (code, reply), email

    def close(self):
        ended = self.server.end()
        if ended != 0:
            raise Failed(f"the server exited with {ended}")
        if "panic" in self.server.log.read_text(errors="replace"):
            raise Failed("the log contains a panic")


def expect(what, expected, found):
    if expected != found:
        raise Failed(f"{what}: {found!r} instead of {expected!r}")


def expect_accepted(client, text, status):
    """Submits a message that must be accepted. Returns rspamd's action, and checks what rspamd was sent."""
    name, (code, reply), email = client.submit(text)
    expect(f"the reply ({reply})", 250, code)
    address, sender, action, score, recipient = client.rspamd.judged(name)
    expect("what rspamd received", (PEER, SENDER, f"b@{DOMAIN}"), (address, sender, recipient))
    expect(f"spam_status after {action!r} with {score}", status, email["spam_status"])
    if abs(float(score) - email["spam_score"]) > 0.011:
        raise Failed(f"spam_score: {email['spam_score']} instead of {score}")
    return action


def expect_refused(client, text, code):
    _, (found, reply), _ = client.submit(text)
    expect(f"the reply ({reply})", code, found)


def as_rspamd_judges(client):
    expect("an ordinary message", "no action", expect_accepted(client, "Lunch at noon? — Ada", "not_spam"))
    expect("a message to be marked", "add header", expect_accepted(client, MARKED, "spam"))
    expect_refused(client, SPAM, 550)
    expect_accepted(client, "And a large one.\r\n" + ("x" * 76 + "\r\n") * (LARGE_BYTES // 78), "not_spam")
    for _ in range(MANY):
        expect_accepted(client, "Another.", "not_spam")


def by_the_scores_of_the_operator(client):
    # Every message scores above -50.
    expect("an ordinary message", "no action", expect_accepted(client, "Lunch at noon? — Ada", "spam"))
    expect_refused(client, SPAM, 550)


def without(client, failure):
    client.rspamd.stop()
    if failure == "closed":
        expect_refused(client, "Is anybody there?", 451)
    else:
        _, (code, reply), email = client.submit("Is anybody there?")
        expect(f"the reply ({reply})", 250, code)
        expect("spam_status", ("not_checked", None), (email["spam_status"], email["spam_score"]))
    client.rspamd.start()
    expect_accepted(client, "And now?", "spam" if failure == "closed" else "not_spam")


def check(args):
    failures = 0
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)
        names = NameServer(ZONE)
        place = Path(base, "rspamd")
        place.mkdir()
        rspamd = Rspamd(place, names)
        rspamd.start()
        cases = {
            "open": (as_rspamd_judges, []),
            "closed": (by_the_scores_of_the_operator, ["rspamd_mark_score = -50.0", "rspamd_reject_score = 14.5"]),
        }
        try:
            for failure, (judged, options) in cases.items():
                place = Path(base, failure)
                place.mkdir()
                client = SmtpClient(args.postrider, place, names, rspamd, [f'rspamd_failure = "{failure}"', *options])
                failures += report_case(judged.__name__.replace("_", " "), lambda: judged(client))[1]
                failures += report_case(f"without rspamd, {failure}", lambda: without(client, failure))[1]
                failures += report_case("clean exit", client.close)[1]
        finally:
            rspamd.stop()
            names.close()
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postrider", required=True, help="the binary to start")
    args = parser.parse_args()
    try:
        sys.exit(1 if check(args) else 0)
    except Skip as skip:
        print(f"  {'rspamd':<34} skipped: {skip}")


if __name__ == "__main__":
    main()
