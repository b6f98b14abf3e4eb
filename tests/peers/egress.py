#!/usr/bin/env python3
"""Delivery security against foreign peers: MTA-STS, DANE, and misbehaving mail hosts.

    tests/peers/egress.py --postrider target/debug/postrider
    tests/peers/egress.py --postrider … --known      known faults count as failures
    tests/peers/egress.py --postrider … --keep DIR   keep logs, zones and certificates there

Flow: Knot serves a signed root and zones below it: valid, unsigned and broken ones. Scripted mail hosts on many
loopback addresses and MTA-STS web servers belong to the names (egress_cases.py). One message is sent to each case; its
state, its error text and everything that was transmitted in clear text are compared with the expectation. Then policies
change, vanish and expire while time passes and postrider restarts. Skipped if Knot is not installed. No traffic leaves
loopback.
"""

import argparse
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import egress_cases as cases
import egress_reports as reports
from certificates import Certificates
from check import Failed, Skip, program, report_case
from egress_cases import Case
from knot import Knot, Zone
from mailhosts import Host, MailHosts
from nameserver import NameServer
from policyweb import Page, PolicyWeb, policy
from receiving import OWNER, Server, free_port, until

WEB, SILENT_WEB = "127.27.0.1", "127.27.0.2"
# More domains with silent MTA-STS web servers than are looked up concurrently.
SILENT, SILENT_AT_ONCE = 600, 40
PATIENCE_S = 120
SLOW_S = 150
QUICK_S = 10
SLOW_ANSWER_S = 0.05
HISTORY_ZONE = "life.test"


class Tlsa:
    """Formats TLSA data in a format string: `{t:3 1 1 self}`."""

    def __init__(self, certificates):
        self.certificates = certificates

    def __format__(self, spec):
        return self.certificates.tlsa(spec)


class Sender(Server):
    """A postrider that delivers to the mail hosts of the test."""

    def __init__(self, binary, place, names, network, dane="on", paused=False):
        place.mkdir()
        more = f"""trust_anchors = "{network.knot.anchors}"
[delivery]
port = {network.hosts.port}
dane = "{dane}"
paused = {str(paused).lower()}
roots = "{network.certificates.roots}"
allow_private_destinations = true
tls_report_contact = "postmaster@{cases.USUAL}"
[testing]
clock_offset = "0s"
mta_sts_port = {network.web_port}"""
        super().__init__(binary, place, names, more)
        self.admin("domain", "create", cases.STRICT, "--account", OWNER, "--verified")
        strict = next(domain for domain in self.call_api("GET", "/domains")["domains"] if domain["name"] == cases.STRICT)
        self.call_api("PATCH", f"/domains/{strict['id']}", {"tls_mode": "enforced"})

    def restart(self, dane):
        """Starts another process on the same data."""
        if self.end() != 0:
            raise Failed("the server did not exit with 0")
        text = re.sub('dane = ".*"', f'dane = "{dane}"', self.config.read_text())
        self.config.write_text(text.replace("paused = true", "paused = false"))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([self.binary, "serve", "--config", self.config], stdout=log, stderr=log)
        until(self.is_ready, f"the server ({self.log})")

    def send(self, case):
        content = {"subject": case.marker, "text": f"Hello,\n{case.marker}\n"}
        body = {"from": f"ada@{case.sender}", "to": f"someone@{case.to}"} | content
        return self.call_api("POST", "/emails", body)["id"]

    def advance(self, **span):
        seconds = int(sum(count * {"minutes": 60, "hours": 3600}[unit] for unit, count in span.items()))
        self.admin("clock", "advance", str(seconds))

    def find_result(self, email):
        """The recipient and its first attempt."""
        recipient = self.call_api("GET", f"/emails/{email}")["email"]["recipients"][0]
        attempts = self.call_api("GET", f"/emails/{email}/attempts")["attempts"]
        return recipient, attempts[-1] if attempts else None

    def is_attempted(self, email):
        return self.call_api("GET", f"/emails/{email}")["email"]["recipients"][0]["status"] != "queued"

    def close(self):
        if self.process.poll() is None:
            self.end()


class TestNetwork:
    """Names, certificates, mail hosts and web servers of all cases."""

    def __init__(self, base, all_cases):
        self.web_port = free_port()
        for number, case in enumerate(all_cases, 1):
            assign_names(case, number)
        hosts = [host for case in all_cases for host in case.hosts]
        (base / "certificates").mkdir()
        names = [host.name for host in hosts] + [f"mta-sts.{case.domain}" for case in all_cases if case.policy]
        names += [f"mta-sts.{history.label}.{HISTORY_ZONE}" for history in POLICY_HISTORIES]
        self.certificates = Certificates(base / "certificates", sorted({name.lower() for name in names}))
        self.hosts = MailHosts(free_port(), self.certificates.contexts)
        for host in dict.fromkeys(hosts):
            self.hosts.add(host)
        self.silent = socket.create_server((SILENT_WEB, self.web_port), backlog=4096)
        self.web = PolicyWeb(self.web_port, WEB, self.certificates.contexts)
        self.web.pages |= reports.PAGES
        self.web.pages["/moved"] = Page(policy("enforce", "elsewhere.example"))
        zones = {
            ".": Zone(),
            "test": Zone(["ns 1 A 127.0.0.1"], "nsec3"),
            cases.SECURE: Zone(),
            cases.HASHED: Zone([], "nsec3"),
            cases.PLAIN: Zone(list(silent_lines()), None),
            cases.OPTED_OUT: Zone([], None),
            cases.WRONG_KEY: Zone(ds_fits=False),
            cases.OVER: Zone([], "brief"),
            cases.FORGED: Zone(breaking=cases.forge),
            cases.LOST: Zone([], None, is_lost=True),
            HISTORY_ZONE: Zone([], None),
            f"_mta-sts.lost.{HISTORY_ZONE}": Zone(['@ 0 TXT "v=STSv1; id=1;"'], None),
        }
        for case in all_cases:
            for line in self.records(case):
                owner = line.split()[0].rstrip(".")
                zone = max((name for name in zones if owner == name or owner.endswith(f".{name}")), key=len)
                zones[zone].lines.append(line)
            if case.policy:
                self.web.pages[f"mta-sts.{case.domain}"] = render(case.policy, case)
        (base / "knot").mkdir()
        self.knot = Knot(base / "knot", zones)

    def records(self, case):
        domain, port = f"{case.domain}.", self.hosts.port
        texts = {"d": domain, "D": case.domain, "p": port, "w": self.web_port, "t": Tlsa(self.certificates)}
        if case.hosts:
            texts |= {"h": f"{case.hosts[0].name}.", "a": case.hosts[0].address}
        lines = [record.format(**texts) for record in case.records]
        for host in case.hosts:
            name = f"{host.name}."
            if not has_alias(name, lines):
                lines.append(f"{name} 1 A {host.address}")
            lines += [f"_{port}._tcp.{name} 1 TLSA {self.certificates.tlsa(spec)}" for spec in host.tlsa]
            if case.has_mx:
                lines.append(f"{domain} 1 MX {host.preference} {name}")
        announced = ("v=STSv1; id=1;",) if case.policy and case.announced is None else case.announced or ()
        lines += [f'_mta-sts.{domain} 0 TXT "{text}"' for text in announced]
        if case.policy and not has_alias(f"mta-sts.{domain}", lines):
            lines.append(f"mta-sts.{domain} 0 A {WEB}")
        return lines


def silent_lines():
    """Zone lines of many domains whose MTA-STS web servers accept connections and never respond."""
    for number in range(SILENT):
        domain = f"silent{number}.{cases.PLAIN}."
        yield f'_mta-sts.{domain} 60 TXT "v=STSv1; id=1;"'
        yield from (f"mta-sts.{domain} 60 A {SILENT_WEB}", f"{domain} 60 MX 0 .")


def has_alias(name, lines):
    return any(line.startswith(f"{name} 1 CNAME") for line in lines)


def assign_names(case, number):
    case.domain, case.marker = f"c{number}.{case.zone}", f"for-your-eyes-only-{number}x"
    case.email = None
    for at, host in enumerate(case.hosts, 1):
        usual = f"mx{at}.{case.domain}" if case.has_mx else case.domain
        host.name = (host.name or usual).replace("{d}", case.domain)
    case.to = case.to.replace("{d}", case.domain)


def render(page, case):
    """Inserts the case's names into its policy."""
    if isinstance(page.text, str):
        host = case.hosts[0].name if case.hosts else ""
        page.text = page.text.replace("{h}", host).replace("{d}", case.domain).replace("{D}", case.domain.upper())
    return page


# Checking


def check_result(sender, case):
    """Compares a case with its expectation. Raises `Failed` with all differences."""
    expected, marker = case.expected, case.marker.encode()
    recipient, attempt = sender.find_result(case.email)
    if attempt is None:
        raise Failed(f"there was no attempt: {recipient['status']}")
    faults, error_text = [], attempt["error"] or attempt["response"] or ""
    if recipient["status"] != expected.state and not (attempt["n"] == 1 and recipient["attempts"] > 1):
        faults.append(f"{recipient['status']}, not {expected.state}")
    if not re.search(expected.words, error_text):
        faults.append(f"the error does not match /{expected.words}/")
    if expected.phase and attempt["phase"] != expected.phase:
        faults.append(f"in phase {attempt['phase']}, not {expected.phase}")
    tls = attempt["tls"]
    applied_tls = (tls["policy"], tls["verified"]) if tls else cases.CLEAR
    if expected.state == "delivered" and applied_tls != expected.tls:
        faults.append(f"by {applied_tls}, not {expected.tls}")
    for at, host in enumerate(case.hosts):
        faults += find_leaks(case, at, host, marker)
    if faults:
        raise Failed(f"{'; '.join(faults)}. The error is {error_text!r}, {attempt['phase']}, {applied_tls}")


def find_leaks(case, at, host, marker):
    """Yields what a host received in error, or did not receive."""
    is_delivered = case.expected.state == "delivered"
    takes = is_delivered and at == case.expected.accepting_host
    if takes and marker not in (host.clear if case.expected.tls == cases.CLEAR else host.sealed):
        yield f"host {at + 1} did not receive it"
    if takes and (times := sum(marker in message for message in host.messages)) != 1:
        yield f"host {at + 1} accepted it {times} times"
    if case.is_open:
        return
    may_be_clear = takes and case.expected.tls == cases.CLEAR
    if not may_be_clear and (marker in host.clear or b"RCPT TO" in host.clear.upper()):
        yield f"IN CLEAR TEXT to host {at + 1}"
    if not takes and marker in host.sealed:
        yield f"host {at + 1} received it"


class Report:
    """Prints a line for each case and counts the failures."""

    def __init__(self, counts_known):
        self.counts_known, self.failures, self.known = counts_known, 0, 0

    def case(self, title, work, known=""):
        if not known or self.counts_known:
            self.failures += report_case(title, work)[1]
            return
        try:
            work()
            print(f"  {title:<34} ok, although listed as a known fault: {known}")
        except Failed as failure:
            self.known += 1
            print(f"  {title:<34} known fault: {known} ({failure})")


def send_all(sender, batch):
    for case in batch:
        case.email = sender.send(case)


def check_results(sender, batch, report, patience_s=PATIENCE_S):
    deadline = time.monotonic() + patience_s
    for case in batch:
        while not sender.is_attempted(case.email) and time.monotonic() < deadline:
            time.sleep(0.05)
        report.case(case.title, lambda case=case: check_result(sender, case), case.known)


# Policies that change, vanish and expire


HELD, FREE = cases.deferred("TLS failed"), cases.delivered_by("opportunistic", False)
TESTED = cases.delivered_by("mta-sts", False)
FIRST, SECOND = ("v=STSv1; id=1;",), ("v=STSv1; id=2;",)


@dataclass
class PolicyHistory:
    """A domain whose host has an invalid certificate: the TXT record and policy at first and after the change, and the
    expected results at first, after the change, after a restart without web servers, and a day later."""

    title: str
    pages: tuple
    announced: tuple
    expected: tuple
    label: str = ""

    def case(self, stage):
        """The case for a message of a stage, at the same host."""
        # The resolver caches NXDOMAIN for the negative TTL in real time, regardless of the moved clock.
        known = "negative answers are cached" if self.title == "announced later" and stage else ""
        case = Case(
            f"MTA-STS over time: {self.title}: {STAGES[stage]}", [self.host], self.expected[stage], HISTORY_ZONE, known=known
        )
        case.domain = case.to = f"{self.label}.{HISTORY_ZONE}"
        case.marker = f"{self.label}-in-stage-{stage}x"
        return case

    def lines(self, stage):
        domain, at = f"{self.label}.{HISTORY_ZONE}.", min(stage, 1)
        texts = [] if self.label == "lost" else self.announced[at]
        announced = [f'_mta-sts.{domain} 0 TXT "{text}"' for text in texts]
        mail = [f"{domain} 0 MX 10 {self.host.name}.", f"{self.host.name}. 0 A {self.host.address}"]
        return [*announced, *mail, f"mta-sts.{domain} 0 A {WEB}"]


STAGES = ("at first", "changed", "after a restart without web servers", "a day later")


def enforcing(**more):
    return Page(policy("enforce", "{h}"), **more)


def testing():
    return Page(policy("testing", "{h}"))


HELD_FOR_A_DAY = (HELD, HELD, HELD, FREE)
POLICY_HISTORIES = [
    PolicyHistory("nothing changes", (enforcing, enforcing), (FIRST, FIRST), (HELD, HELD, HELD, HELD)),
    PolicyHistory("no longer announced", (enforcing, enforcing), (FIRST, ()), HELD_FOR_A_DAY),
    PolicyHistory("SERVFAIL for the TXT record", (enforcing, enforcing), (FIRST, FIRST), HELD_FOR_A_DAY, "lost"),
    PolicyHistory("announced twice", (enforcing, enforcing), (FIRST, FIRST + SECOND), HELD_FOR_A_DAY),
    PolicyHistory("a new id, 404", (enforcing, lambda: Page(status="404 Not Found")), (FIRST, SECOND), HELD_FOR_A_DAY),
    PolicyHistory("a new id, a web server for another name", (enforcing, lambda: enforcing(certificate="other")), (FIRST, SECOND), HELD_FOR_A_DAY),
    PolicyHistory("a new id, no policy", (enforcing, lambda: Page("mode: none\n")), (FIRST, SECOND), HELD_FOR_A_DAY),
    PolicyHistory("the same id, 404", (enforcing, lambda: Page(status="404 Not Found")), (FIRST, FIRST), HELD_FOR_A_DAY),
    PolicyHistory("a new id, testing", (enforcing, testing), (FIRST, SECOND), (HELD, TESTED, TESTED, TESTED)),
    PolicyHistory("the same id, testing", (enforcing, testing), (FIRST, FIRST), (HELD, HELD, HELD, TESTED)),
    PolicyHistory("a new id, mode none", (enforcing, lambda: Page(policy("none"))), (FIRST, SECOND), (HELD, FREE, FREE, FREE)),
    PolicyHistory(
        "a new id, other hosts",
        (enforcing, lambda: Page(policy("enforce", "mx.elsewhere.example"))),
        (FIRST, SECOND),
        (HELD, cases.OUTSIDE, cases.OUTSIDE, cases.OUTSIDE),
    ),
    PolicyHistory("a new id, enforce after testing", (testing, enforcing), (FIRST, SECOND), (TESTED, HELD, HELD, HELD)),
    PolicyHistory("announced later", (enforcing, enforcing), ((), FIRST), (FREE, HELD, HELD, HELD)),
    PolicyHistory("had later", (lambda: Page(status="503 Later"), enforcing), (FIRST, FIRST), (FREE, HELD, HELD, HELD)),
]
for number, each in enumerate(POLICY_HISTORIES, 1):
    each.label = each.label or f"l{number}"


class PolicyHistories:
    """The domains whose policies change."""

    def __init__(self, network):
        self.network = network
        for history in POLICY_HISTORIES:
            history.host = network.hosts.add(Host("self", name=f"mx.{history.label}.{HISTORY_ZONE}"))

    def publish(self, stage):
        """Publishes the TXT records and policies of a stage."""
        for history in POLICY_HISTORIES:
            page = history.pages[min(stage, 1)]()
            page.text = page.text.replace("{h}", history.host.name)
            self.network.web.pages[f"mta-sts.{history.label}.{HISTORY_ZONE}"] = page
        self.network.knot.change(HISTORY_ZONE, [line for history in POLICY_HISTORIES for line in history.lines(stage)])

    def try_stage(self, stage, sender, report):
        """Sends one message to each domain and checks the results."""
        tried = [history.case(stage) for history in POLICY_HISTORIES]
        send_all(sender, tried)
        check_results(sender, tried, report)


# Running


def without_signatures(base, args, network, report):
    """With an unsigned name server, "auto" does not use DANE, and "on" defers all mail."""
    senders = []
    for dane, expected in {"auto": FREE, "on": cases.deferred("DNSSEC|did not answer", "dns")}.items():
        case = Case(f'DANE: no signatures, dane = "{dane}"', [Host("self")], expected, "unsigned.example")
        assign_names(case, f"-{dane}")
        host = network.hosts.add(case.hosts[0])
        names = NameServer({case.domain: [("MX", (10, host.name))], host.name: [("A", host.address)]})
        sender = Sender(args.postrider, base / f"unsigned-{dane}", names, network, dane)
        senders.append(sender)
        send_all(sender, [case])
        check_results(sender, [case], report)
    return senders


def over_time(sender, network, histories, again, report):
    """Policies change while time passes."""
    histories.publish(0)
    histories.try_stage(0, sender, report)
    histories.publish(1)
    network.knot.lose(f"_mta-sts.lost.{HISTORY_ZONE}")
    sender.advance(minutes=10)
    histories.try_stage(1, sender, report)
    network.web.is_closed = True
    sender.restart(dane="on")
    histories.try_stage(2, sender, report)
    send_all(sender, again)
    check_results(sender, again, report)
    network.web.is_closed = False
    sender.advance(hours=25)
    histories.try_stage(3, sender, report)


def check_given_up(sender, case, why):
    """Checks that mail which waited for two days has failed with the expected reason."""
    recipient, _ = sender.find_result(case.email)
    error_text = str(sender.call_api("GET", f"/emails/{case.email}/events"))
    if recipient["status"] != "failed" or why not in error_text:
        raise Failed(f"{recipient['status']}, not failed with {why}: {error_text}")


def check_all_given_up(sender, wave, report):
    """Checks that undelivered mail has failed after two days."""
    sender.advance(hours=24)
    waited = [case for case in wave if case.expected.state == "deferred" and not case.known]
    for phase, why in {"tls": "tls_required", "dns": "dns_error", "ehlo": "expired"}.items():
        batch = [case for case in waited if case.expected.phase == phase]
        report.case(f"given up, {phase}: {why}", lambda batch=batch, why=why: [check_given_up(sender, one, why) for one in batch])


class SlowNameServer:
    """A name server with a delay before each answer."""

    def __init__(self, knot):
        self.inner = ("127.0.0.1", knot.port)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            question, client = self.socket.recvfrom(65535)
            threading.Thread(target=self.call_api, args=(question, client), daemon=True).start()

    def call_api(self, question, client):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inner:
            inner.settimeout(5)
            inner.sendto(question, self.inner)
            answer = inner.recv(65535)
        time.sleep(SLOW_ANSWER_S)
        self.socket.sendto(answer, client)


def flood(base, args, network, case):
    """Sends mail to all domains with silent web servers, and then one message to another domain."""
    sender = Sender(args.postrider, base / "flood", network.knot, network)
    for first in range(0, SILENT, SILENT_AT_ONCE):
        to = [f"a@silent{number}.{cases.PLAIN}" for number in range(first, first + SILENT_AT_ONCE)]
        sender.call_api("POST", "/emails", {"from": f"ada@{cases.USUAL}", "to": to, "subject": "x", "text": "y"})
    send_all(sender, [case])
    return sender


def check_flood(sender, case):
    """Checks that a silent web server delays no other domain."""
    check_result(sender, case)
    email = sender.call_api("GET", f"/emails/{case.email}")["email"]
    sent, delivered = (datetime.fromisoformat(email[field]) for field in ("created_at", "delivered_at"))
    waited = (delivered - sent).total_seconds()
    if waited > QUICK_S:
        raise Failed(f"it waited for {waited:.1f} s")


def check_queue_at_start(base, args, network, waiting, report):
    """Mail that is queued when postrider starts: DANE must apply to the first message."""
    sender = Sender(args.postrider, base / "start", SlowNameServer(network.knot), network, paused=True)
    send_all(sender, waiting)
    sender.restart(dane="on")
    check_results(sender, waiting, report)
    return sender


def check_clean_exit(sender):
    ended = sender.end()
    if ended != 0:
        raise Failed(f"the server exited with {ended}")
    if "panic" in sender.log.read_text(errors="replace"):
        raise Failed("the log contains a panic")


def disconnect_dripping_hosts(rough, dripping, slow, since, report):
    """Hosts that send one byte at a time are disconnected; mail that ends with a local timeout is awaited."""
    for case in dripping:
        for host in case.hosts:
            host.close_connections()
    check_results(rough, dripping, report)
    check_results(rough, slow, report, max(since + SLOW_S - time.monotonic(), 1))


def check(args):
    report, started_at = Report(args.known), time.monotonic()
    wave = [*cases.tls_failure_cases(), *cases.DANE, *cases.STS, *(expectation.case for expectation in reports.REPORT_EXPECTATIONS)]
    slow, dripping, hostile = list(cases.slow()), list(cases.dripping()), list(cases.hostile())
    waiting = list(cases.after_a_start())
    again = [cases.dane_case("after a restart", "self", "3 1 1 self")]
    again.append(cases.dane_case("after a restart, another key", "self", "3 1 1 good", expected=cases.MEANS_NONE))
    again += cases.lenient_cases()
    quick = Case("slow: other domains are not delayed", [Host("good")], FREE)
    behind = Case(f"MTA-STS: behind {SILENT} silent web servers", [Host("good")], FREE, known=cases.CROWD)
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        base.chmod(0o755)
        network = TestNetwork(base, [*wave, *slow, *dripping, *hostile, *again, *waiting, quick, behind])
        senders = []
        try:
            histories = PolicyHistories(network)
            rough = Sender(args.postrider, base / "rough", network.knot, network)
            senders.append(rough)
            send_all(rough, [*slow, *dripping])
            since = time.monotonic()
            sender = Sender(args.postrider, base / "main", network.knot, network)
            senders.append(sender)
            senders.append(flooded := flood(base, args, network, behind))
            network.knot.signatures_are_over()
            send_all(sender, wave)
            check_results(sender, wave, report)
            send_all(rough, [*hostile, quick])
            check_results(rough, [quick], report, QUICK_S)
            check_results(rough, hostile, report)
            senders += without_signatures(base, args, network, report)
            senders.append(check_queue_at_start(base, args, network, waiting, report))
            over_time(sender, network, histories, again, report)
            # Reports that were not accepted are posted again.
            sender.advance(hours=1)
            check_all_given_up(sender, wave, report)
            reports.check_results(sender, report)
            report.case(behind.title, lambda: check_flood(flooded, behind), behind.known)
            disconnect_dripping_hosts(rough, dripping, slow, since, report)
            for each in senders:
                report.case("clean exit", lambda each=each: check_clean_exit(each))
        finally:
            for each in senders:
                each.close()
            network.knot.stop()
            if args.keep:
                shutil.copytree(base, args.keep, dirs_exist_ok=True)
    print(f"  {time.monotonic() - started_at:.0f} s")
    return report.failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postrider", required=True, help="the binary to start")
    parser.add_argument("--known", action="store_true", help="known faults count as failures")
    parser.add_argument("--keep", help="directory in which logs are kept")
    args = parser.parse_args()
    try:
        program("knotd")
        failures = check(args)
    except Skip as skip:
        print(f"  {'egress':<34} skipped: {skip}")
        return
    print(f"egress: {'ok' if not failures else f'{failures} failed'}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
