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
PATIENCE_S = 120
BY_MAIL = '_smtp._tls.{d} 1 TXT "v=TLSRPTv1; rua=mailto:tls@{D}"'
BY_WEB = '_smtp._tls.{d} 1 TXT "v=TLSRPTv1; rua=https://mta-sts.{D}:{w}' + PATH + '"'
BY_WEB_LATER = BY_WEB.replace(PATH, LATER_PATH)


class AcceptSecondPost(Page):
    """Accepts the second POST only."""

    def send(self, stream):
        self.status = "201 Created"
        if self.request_count == 1:
            self.status = "503 Later"
            self.posted.clear()
        super().send(stream)


# Pages to which reports are posted.
PAGES = {PATH: Page(status="201 Created"), LATER_PATH: AcceptSecondPost()}


@dataclass
class ReportExpectation:
    """A case, its expected policy and failure in the report, and the page for reports posted to a web server."""

    case: Case
    policy: str
    failure: str = ""
    page: str = ""


def report_case(title, host, expected, record=BY_MAIL, **more):
    return Case(f"TLS-RPT: {title}", [host], expected, records=(record,), **more)


def enforced_policy():
    return Page(policy("enforce", "{h}"))


NOT_A_POLICY = Page("mode: none\n")
REPORT_EXPECTATIONS = [
    ReportExpectation(report_case("3 1 1", Host("self", ("3 1 1 self",)), cases.delivered_by("dane", True), zone=cases.SECURE), "tlsa"),
    # The report itself is delivered although the message is not.
    ReportExpectation(
        report_case("another key", Host("self", ("3 1 1 good",)), cases.MEANS_NONE, zone=cases.SECURE),
        "tlsa",
        "tlsa-invalid",
    ),
    ReportExpectation(report_case("MTA-STS", Host("good"), cases.delivered_by("mta-sts", True), policy=enforced_policy()), "sts"),
    ReportExpectation(
        report_case("MTA-STS, expired", Host("expired"), cases.deferred("expired"), BY_WEB, policy=enforced_policy()),
        "sts",
        "certificate-expired",
        PATH,
    ),
    ReportExpectation(
        report_case("MTA-STS, the second time", Host("good"), cases.delivered_by("mta-sts", True), BY_WEB_LATER, policy=enforced_policy()),
        "sts",
        page=LATER_PATH,
    ),
    ReportExpectation(
        report_case("MTA-STS testing, another name", Host("other"), cases.delivered_by("mta-sts", False), policy=Page(policy("testing", "{h}"))),
        "sts",
        "certificate-host-mismatch",
    ),
    ReportExpectation(
        report_case("MTA-STS, no policy", Host("self"), cases.delivered_by("opportunistic", False), policy=NOT_A_POLICY),
        "sts",
        "sts-policy-invalid",
    ),
    ReportExpectation(
        report_case("no STARTTLS", Host(offers=cases.NO_TLS), cases.delivered_in_clear(), is_open=True),
        "no-policy-found",
        "starttls-not-supported",
    ),
]


def mailed_reports(host, domain):
    """The reports that a mail host has received."""
    for message in host.messages:
        parsed = email.message_from_bytes(bytes(message))
        if parsed.get_content_type() != "multipart/report":
            continue
        if parsed.get_param("report-type") != "tlsrpt" or parsed["TLS-Required"] != "No" or not parsed["DKIM-Signature"]:
            raise Failed(f"its header is wrong: {parsed.items()}")
        if parsed["TLS-Report-Domain"] != domain or parsed["TLS-Report-Submitter"] != cases.USUAL:
            raise Failed(f"it has domain {parsed['TLS-Report-Domain']}, by {parsed['TLS-Report-Submitter']}")
        parts = [part for part in parsed.walk() if part.get_content_type() == "application/tlsrpt+gzip"]
        yield json.loads(gzip.decompress(base64.b64decode(parts[0].get_payload())))


def posted_reports(page, domain):
    """The reports about a domain that the web server has received."""
    for head, body in page.posted:
        if "content-type: application/tlsrpt+gzip" not in head.lower():
            raise Failed(f"it was posted as {head}")
        report = json.loads(gzip.decompress(body))
        if report["policies"][0]["policy"]["policy-domain"] == domain:
            yield report


def until(true, what):
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > deadline:
            raise Failed(f"timed out waiting for {what}")
        time.sleep(0.1)


def check_result(sender, expectation):
    case = expectation.case
    domain = case.domain

    def is_report_sent():
        days = sender.admin("tls-reports", "--domain", domain)["days"]
        return days and (days[0]["report"] or {}).get("state") == "sent"

    until(is_report_sent, f"a report about {domain}")

    def reports():
        return list(posted_reports(PAGES[expectation.page], domain) if expectation.page else mailed_reports(case.hosts[0], domain))

    until(reports, f"the report about {domain}")
    # Retries on other days have reports of their own.
    first = min(reports(), key=lambda one: one["date-range"]["start-datetime"])
    alike = [one for one in reports() if one["report-id"] == first["report-id"]]
    found = first["policies"][0]
    summary, details = found["summary"], found.get("failure-details", [])
    failed, succeeded = summary["total-failure-session-count"], summary["total-successful-session-count"]
    faults = []
    if len(alike) != 1:
        faults.append(f"it came {len(alike)} times")
    if (found["policy"]["policy-type"], found["policy"]["policy-domain"]) != (expectation.policy, domain):
        faults.append(f"it has the policy {found['policy']}")
    if bool(expectation.failure) != bool(failed) or bool(expectation.failure) == bool(succeeded):
        faults.append(f"{succeeded} went well, {failed} failed")
    if [detail["result-type"] for detail in details] != [expectation.failure] * bool(expectation.failure):
        faults.append(f"what failed: {details}")
    if details and (details[0]["receiving-mx-hostname"], details[0]["receiving-ip"]) != (case.hosts[0].name, case.hosts[0].address):
        faults.append(f"at another host: {details[0]}")
    if sum(detail["failed-session-count"] for detail in details) != failed:
        faults.append(f"the sums differ: {details}")
    if faults:
        raise Failed("; ".join(faults))


def check_results(sender, report):
    # So that a run around midnight has all messages on one day.
    sender.advance(hours=1)
    for expectation in REPORT_EXPECTATIONS:
        report.case(f"{expectation.case.title}: reported", lambda expectation=expectation: check_result(sender, expectation), expectation.case.known)
