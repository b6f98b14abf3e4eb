"""TLS reports (RFC 8460): domains that request reports by mail or at a web server, and the expected reports.

The first messages of the run are counted. When the day is over, each domain must have received one report, which is
unpacked here with Python's gzip and json.
"""

import base64
import email
import gzip
import json
import time
from dataclasses import dataclass

import egress_cases as cases
from check import Failed
from egress_cases import Case
from mailhosts import Host
from policyweb import Page, policy

PATH, LATER_PATH = "/tls-reports", "/tls-reports-later"
PATIENCE_S = 30
BY_MAIL = '_smtp._tls.{d} 1 TXT "v=TLSRPTv1; rua=mailto:tls@{D}"'
BY_WEB = '_smtp._tls.{d} 1 TXT "v=TLSRPTv1; rua=https://mta-sts.{D}:{w}' + PATH + '"'
BY_WEB_LATER = BY_WEB.replace(PATH, LATER_PATH)


class Later(Page):
    """Accepts the second POST only."""

    def send(self, stream):
        self.status = "201 Created"
        if self.asked == 1:
            self.status = "503 Later"
            self.posted.clear()
        super().send(stream)


# Pages to which reports are posted.
PAGES = {PATH: Page(status="201 Created"), LATER_PATH: Later()}


@dataclass
class Told:
    """A case, its expected policy and failure in the report, and the page for reports posted to a web server."""

    case: Case
    policy: str
    failure: str = ""
    page: str = ""


def asks(title, host, wanted, record=BY_MAIL, **more):
    return Case(f"TLS-RPT: {title}", [host], wanted, records=(record,), **more)


def enforced():
    return Page(policy("enforce", "{h}"))


NOT_A_POLICY = Page("mode: none\n")
TOLD = [
    Told(asks("3 1 1", Host("self", ("3 1 1 self",)), cases.goes("dane", True), zone=cases.SECURE), "tlsa"),
    # The report itself is delivered although the message is not.
    Told(
        asks("another key", Host("self", ("3 1 1 good",)), cases.MEANS_NONE, zone=cases.SECURE),
        "tlsa",
        "tlsa-invalid",
    ),
    Told(asks("MTA-STS", Host("good"), cases.goes("mta-sts", True), policy=enforced()), "sts"),
    Told(
        asks("MTA-STS, expired", Host("expired"), cases.waits("expired"), BY_WEB, policy=enforced()),
        "sts",
        "certificate-expired",
        PATH,
    ),
    Told(
        asks("MTA-STS, the second time", Host("good"), cases.goes("mta-sts", True), BY_WEB_LATER, policy=enforced()),
        "sts",
        page=LATER_PATH,
    ),
    Told(
        asks("MTA-STS testing, another name", Host("other"), cases.goes("mta-sts", False), policy=Page(policy("testing", "{h}"))),
        "sts",
        "certificate-host-mismatch",
    ),
    Told(
        asks("MTA-STS, no policy", Host("self"), cases.goes("opportunistic", False), policy=NOT_A_POLICY),
        "sts",
        "sts-policy-invalid",
    ),
    Told(
        asks("no STARTTLS", Host(offers=cases.NO_TLS), cases.in_clear(), is_open=True),
        "no-policy-found",
        "starttls-not-supported",
    ),
]


def of_mail(host, domain):
    """The reports that a mail host has received."""
    for message in host.taken:
        parsed = email.message_from_bytes(bytes(message))
        if parsed.get_content_type() != "multipart/report":
            continue
        if parsed.get_param("report-type") != "tlsrpt" or parsed["TLS-Required"] != "No" or not parsed["DKIM-Signature"]:
            raise Failed(f"its header is wrong: {parsed.items()}")
        if parsed["TLS-Report-Domain"] != domain or parsed["TLS-Report-Submitter"] != cases.USUAL:
            raise Failed(f"it has domain {parsed['TLS-Report-Domain']}, by {parsed['TLS-Report-Submitter']}")
        parts = [part for part in parsed.walk() if part.get_content_type() == "application/tlsrpt+gzip"]
        yield json.loads(gzip.decompress(base64.b64decode(parts[0].get_payload())))


def of_web(page, domain):
    """The reports about a domain that the web server has received."""
    for head, body in page.posted:
        if "content-type: application/tlsrpt+gzip" not in head.lower():
            raise Failed(f"it was posted as {head}")
        told = json.loads(gzip.decompress(body))
        if told["policies"][0]["policy"]["policy-domain"] == domain:
            yield told


def until(true, what):
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > deadline:
            raise Failed(f"timed out waiting for {what}")
        time.sleep(0.1)


def judge(sender, told):
    case = told.case
    domain = case.domain

    def booked():
        days = sender.admin("tls-reports", "--domain", domain)["days"]
        return days and (days[0]["report"] or {}).get("state") == "sent"

    until(booked, f"a report about {domain}")

    def reports():
        return list(of_web(PAGES[told.page], domain) if told.page else of_mail(case.hosts[0], domain))

    until(reports, f"the report about {domain}")
    # Retries on other days have reports of their own.
    first = min(reports(), key=lambda one: one["date-range"]["start-datetime"])
    alike = [one for one in reports() if one["report-id"] == first["report-id"]]
    found = first["policies"][0]
    summary, details = found["summary"], found.get("failure-details", [])
    failed, succeeded = summary["total-failure-session-count"], summary["total-successful-session-count"]
    wrong = []
    if len(alike) != 1:
        wrong.append(f"it came {len(alike)} times")
    if (found["policy"]["policy-type"], found["policy"]["policy-domain"]) != (told.policy, domain):
        wrong.append(f"it has the policy {found['policy']}")
    if bool(told.failure) != bool(failed) or bool(told.failure) == bool(succeeded):
        wrong.append(f"{succeeded} went well, {failed} failed")
    if [detail["result-type"] for detail in details] != [told.failure] * bool(told.failure):
        wrong.append(f"what failed: {details}")
    if details and (details[0]["receiving-mx-hostname"], details[0]["receiving-ip"]) != (case.hosts[0].name, case.hosts[0].address):
        wrong.append(f"at another host: {details[0]}")
    if sum(detail["failed-session-count"] for detail in details) != failed:
        wrong.append(f"the sums differ: {details}")
    if wrong:
        raise Failed("; ".join(wrong))


def judge_all(sender, report):
    # So that a run around midnight has all messages on one day.
    sender.advance(hours=1)
    for told in TOLD:
        report.case(f"{told.case.title}: reported", lambda told=told: judge(sender, told), told.case.known)
