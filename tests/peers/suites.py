#!/usr/bin/env python3
"""The public test suites of SPF, DKIM, ARC and MIME against the authentication of inbound mail.

    tests/peers/suites.py --postrider target/debug/postrider

Flow: a Python environment (PyYAML, PyNaCl, dkimpy) and the source package of pyspf, which contains the suite of RFC
7208, are fetched from PyPI into target/peers/suites once (all is skipped with a note if that fails).
  1. SPF: each scenario's zone is served by a name server; each case is a session at the MX listener of a real server,
     from the case's address, given in a PROXY header.
  2. DKIM, DMARC: messages signed by dkimpy, each damaged in one way, submitted to the same listener.
  3. ARC: valid and broken chains as in ValiMail's suite (which is in no package), built anew.
  4. MIME: the test messages of Python and of the crate mail-parser, if present: each must be accepted, be readable in
     the API, and be returned byte for byte; its subject must equal the one that Python reads.
DIFFERENCES lists permanent deviations from the suites with reasons. Exits with 1 on any other deviation, and on a
listed one that no longer exists. No traffic leaves loopback except pip's.
"""

import argparse
import base64
import concurrent.futures
import email
import email.policy
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from check import NODE_CACHE, Failed, Skip, report_case  # noqa: E402
from nameserver import NameServer  # noqa: E402
from openapi import environment  # noqa: E402
from receiving import BALANCER  # noqa: E402

HOME = NODE_CACHE / "suites"
PACKAGES = ["PyYAML==6.0.3", "PyNaCl==1.6.0", "authres==1.2.0"]
SOURCES = ["pyspf==2.0.14", "dkimpy==1.1.8"]
FETCH_S = 120
# Cases with another result than in the suite, and why that is correct.
SYNTAX = "the server refuses the command: invalid address or name by RFC 5321 4.1.2"
DIFFERENCES = {
    "spf/toolonglabel": SYNTAX,
    "spf/emptylabel": SYNTAX,
    "spf/nolocalpart": SYNTAX,
    "spf/domain-literal": "the server refuses address literals",
    "spf/dorky-sentinel": SYNTAX,
    "spf/invalid-hello-macro": SYNTAX,
}


def fetched():
    """Fetches and unpacks the source packages. Returns their directory."""
    environment(HOME / "python", PACKAGES)
    for source in SOURCES:
        folder = HOME / source.replace("==", "-")
        if folder.is_dir():
            continue
        pip = [str(HOME / "python" / "bin" / "pip"), "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        try:
            command = [*pip, "--retries", "1", "--timeout", "10", "-d", str(HOME), source]
            subprocess.run(command, capture_output=True, timeout=FETCH_S, check=True)
        except (subprocess.SubprocessError, OSError):
            raise Skip(f"{source} could not be fetched (is PyPI reachable?)") from None
        with tarfile.open(f"{folder}.tar.gz") as packed:
            packed.extractall(HOME, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return HOME


class Table:
    """Results of one suite."""

    def __init__(self, suite):
        self.suite, self.cases, self.differences, self.started_at = suite, 0, [], time.monotonic()

    def note(self, case, expected, found):
        self.cases += 1
        expected = expected if isinstance(expected, list) else [expected]
        name = f"{self.suite}/{case}"
        if (found in expected) == (name not in DIFFERENCES):
            return
        self.differences.append(f"{name}: {found!r}, not {expected}" if found not in expected else f"{name} no longer differs")

    def close(self):
        if self.differences:
            raise Failed(f"{len(self.differences)} of {self.cases} cases:\n      " + "\n      ".join(self.differences[:40]))
        if not self.cases:
            raise Skip("no test messages are present")
        excused = sum(name.startswith(self.suite + "/") for name in DIFFERENCES)
        print(f"    {self.suite}: {self.cases} cases, {excused} documented differences, {time.monotonic() - self.started_at:.1f} s")


# SPF


def spf_zone(data):
    """A zone of the suite: a record of type SPF also becomes a TXT record, unless the name has one."""
    zone = {}
    for name, entries in data.items():
        records = []
        has_text = any(isinstance(one, dict) and "TXT" in one for one in entries)
        for entry in entries:
            if entry == "TIMEOUT":
                records.append("TROUBLE")
                continue
            ((kind, value),) = entry.items()
            if value == "TIMEOUT" or value == "NONE":
                records += ["TROUBLE"] if value == "TIMEOUT" else []
                continue
            if kind in ("SPF", "TXT"):
                value = [text.encode("latin-1") for text in ([value] if isinstance(value, str) else value)]
                if kind == "SPF":
                    records.append(("SPF", value))
                    if has_text:
                        continue
                records.append(("TXT", value))
            else:
                records.append((kind, value))
        zone[str(name)] = records
    return zone


def spf_case(client, test):
    """The SPF result of a case and its explanation, or that the server refuses the command."""
    connection = socket.create_connection(("127.0.0.1", client.server.mx), timeout=60, source_address=(BALANCER, 0))
    with connection, connection.makefile("rb") as lines:
        is_ipv6 = ":" in test["host"]
        family, local_address = ("TCP6", "::1") if is_ipv6 else ("TCP4", "127.0.0.1")
        connection.sendall(f"PROXY {family} {test['host']} {local_address} 1 25\r\n".encode())

        def reply():
            line = lines.readline()
            while line[3:4] == b"-":
                line = lines.readline()
            return line.decode(errors="replace").strip()

        def send_command(text):
            connection.sendall(text.encode() + b"\r\n")
            return reply()

        reply()
        for command in (f"EHLO {test['helo']}", f"MAIL FROM:<{test['mailfrom']}>", f"RCPT TO:<{client.recipient}>"):
            response = send_command(command)
            if not response.startswith("250"):
                return "refused: " + response, None
        connection.sendall(b"BDAT %d LAST\r\n" % len(PLAIN) + PLAIN)
        found = reply().split()[-1]
    email = client.server.call_api("GET", f"/received-emails/{found}")["received_email"]
    field = next(header["value"] for header in email["headers"] if header["name"].lower() == "authentication-results")
    explanation = re.search(r"spf=fail \(([^()]*)\)", field)
    return email["auth"]["spf"], explanation and explanation[1]


def in_comment(text):
    """An explanation as it appears in Authentication-Results: at most 80 plain characters, names in lower case."""
    return re.sub(r"[^A-Za-z0-9 .,_=:/-]", " ", text)[:80].lower().strip()


def spf(home, client):
    import yaml

    table = Table("spf")
    text = (home / "pyspf-2.0.14" / "test" / "rfc7208-tests.yml").read_text()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for scenario in yaml.safe_load_all(text):
            client.names.set(spf_zone(scenario["zonedata"]))
            tests = scenario["tests"]
            for case, (found, why) in zip(tests, pool.map(lambda test: spf_case(client, test), tests.values())):
                table.note(case, tests[case]["result"], found)
                if "explanation" in tests[case] and not found.startswith("refused"):
                    expected = tests[case]["explanation"]
                    expected = None if expected == "DEFAULT" else in_comment(expected)
                    table.note(case + " (explanation)", expected, why and in_comment(why))
    client.names.set(client.zone)
    table.close()


# Submitting to the MX listener

PLAIN = b"From: Ada <ada@example.org>\r\nTo: b@acme.example\r\nSubject: hello\r\nDate: Thu, 1 Jan 2026 00:00:00 +0000\r\nMessage-ID: <1@example.org>\r\n\r\nHey gang,\r\nThis is a  test \r\n--J.\r\n\r\n"


class SmtpClient:
    """Submits messages and returns their results in the API."""

    def __init__(self, binary, base, zone):
        from receiving import DOMAIN, Server, Session

        self.zone, self.names = zone, NameServer(zone)
        self.server = Server(binary, base, self.names, f'[proxy]\nnetworks = ["{BALANCER}/32"]')
        self.session, self.recipient = Session(self.server.mx), f"b@{DOMAIN}"
        self.again = lambda: Session(self.server.mx)

    def submit(self, message, sender="x@nothing.example"):
        """Submits a message. Returns the id of the received email."""
        self.session.send_command(f"MAIL FROM:<{sender}> BODY=8BITMIME")
        self.session.send_command(f"RCPT TO:<{self.recipient}>")
        self.session.socket.sendall(b"BDAT %d LAST\r\n" % len(message) + message)
        code, text = self.session.reply()
        if code != 250:
            self.session.close()
            self.session = self.again()
            return None, code
        return text.split()[-1], code

    def auth(self, message, sender="x@nothing.example"):
        """Authentication results of a message; the API and the Authentication-Results field must agree."""
        found, code = self.submit(message, sender)
        if found is None:
            return {"spf": code, "dkim": code, "dmarc": code, "arc": code}
        whole = self.server.call_api("GET", f"/received-emails/{found}")["received_email"]
        field = next(one["value"] for one in whole["headers"] if one["name"].lower() == "authentication-results")
        results = dict(whole["auth"])
        for name in results:
            words = re.findall(rf"[;\s]{name}=(\w+)", field) or ["none"]
            if results[name] not in words:
                results[name] = f"{results[name]} in the API, {words} in the field"
        return results

    def close(self):
        self.session.close()
        ended = self.server.end()
        self.names.close()
        if ended != 0:
            raise Failed(f"the server exited with {ended}")


class Key:
    """dkimpy's test keys, and signing with arbitrary parameters."""

    def __init__(self, home):
        folder = home / "dkimpy-1.1.8"
        sys.path.insert(0, str(folder))
        data = folder / "dkim" / "tests" / "data"
        self.rsa, self.record = (data / "test.private").read_bytes(), (data / "test.txt").read_text().strip()
        self.ed25519 = (data / "ed25519test.key").read_bytes().strip()
        self.ed25519_record = (data / "ed25519test.dns").read_text().strip()
        self.broken = {name: (data / name).read_text().strip() for name in ("badk.txt", "badversion.txt", "test_bad.txt", "test_tlsrpt.txt")}
        self.example = (data / "rfc6376.signed.rsa.msg").read_bytes() if (data / "rfc6376.signed.rsa.msg").is_file() else None

    def sign(self, message, selector=b"s", domain=b"example.org", **more):
        import dkim

        key = self.ed25519 if more.get("signature_algorithm") == b"ed25519-sha256" else self.rsa
        return dkim.sign(message, selector, domain, key, **more) + message

    def raw(self, data, algorithm):
        from dkim.crypto import RSASSA_PKCS1_v1_5_sign, parse_pem_private_key

        hasher = hashlib.sha1(data) if algorithm == "rsa-sha1" else hashlib.sha256(data)
        return base64.b64encode(RSASSA_PKCS1_v1_5_sign(hasher, parse_pem_private_key(self.rsa))).decode()


def relaxed(name, value):
    value = re.sub(r"[ \t]+", " ", value.replace("\r\n", "")).strip()
    return f"{name.lower()}:{value}\r\n"


def relaxed_body(body):
    lines = [re.sub(rb"[ \t]+", b" ", line).rstrip() for line in body.split(b"\r\n")]
    while lines and not lines[-1]:
        lines.pop()
    return b"".join(line + b"\r\n" for line in lines)


def fields_of(message):
    head, _, body = message.partition(b"\r\n\r\n")
    return [tuple(line.decode().split(":", 1)) for line in re.split(rb"\r\n(?![ \t])", head)], body


def own_signature(key, tags, message, algorithm="rsa-sha256", name="DKIM-Signature"):
    """A signature with arbitrary tags: `bh=` and `b=` are computed with relaxed canonicalization."""
    fields, body = fields_of(message)
    hasher = hashlib.sha1 if algorithm == "rsa-sha1" else hashlib.sha256
    tags = tags.replace("{bh}", base64.b64encode(hasher(relaxed_body(body)).digest()).decode())
    covered = re.search(r"\bh=([^;]*)", tags)
    data = ""
    left = list(reversed(fields))
    for expected in covered[1].split(":") if covered else []:
        at = next((at for at, (field, _) in enumerate(left) if field.strip().lower() == expected.strip().lower()), None)
        if at is not None:
            field, value = left.pop(at)
            data += relaxed(field, value)
    data += relaxed(name, tags.replace("{b}", "")).removesuffix("\r\n")
    return f"{name}: " + tags.replace("{b}", key.raw(data.encode(), algorithm)) + "\r\n"


TAGS = "v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.org; s=s; h=from:to:subject:date; bh={bh}; b={b}"


def dkim_zone(key):
    texts = {
        "s": key.record, "ed": key.ed25519_record, "revoked": "v=DKIM1; p=", "sha1": key.record.replace("k=rsa", "k=rsa; h=sha1"),
        "both": key.record.replace("k=rsa", "k=rsa; h=sha1:sha256"), "any": key.record.replace("k=rsa", "k=rsa; s=*"),
        "mail": key.record.replace("k=rsa", "k=rsa; s=other:email"), "strict": key.record.replace("k=rsa", "k=rsa; t=s"),
        "testing": key.record.replace("k=rsa", "k=rsa; t=y"), "nonsense": "hello", "bad": key.broken["test_bad.txt"],
        "tlsrpt": key.broken["test_tlsrpt.txt"], "badk": key.broken["badk.txt"], "badversion": key.broken["badversion.txt"],
    }
    zone = {f"{name}._domainkey.example.org": [("TXT", text)] for name, text in texts.items()}
    zone["several._domainkey.example.org"] = [("TXT", key.broken["test_tlsrpt.txt"]), ("TXT", key.record)]
    zone["away._domainkey.example.org"] = ["TROUBLE"]
    zone["example.org"] = [("A", "192.0.2.1")]
    return zone


def dkim(key, client):
    table = Table("dkim")

    def case(name, expected, message):
        table.note(name, expected, client.auth(message)["dkim"])

    case("no signature", "none", PLAIN)
    for head in (b"simple", b"relaxed"):
        for body in (b"simple", b"relaxed"):
            case(f"rsa {head.decode()}/{body.decode()}", "pass", key.sign(PLAIN, canonicalize=(head, body)))
    case("ed25519", "pass", key.sign(PLAIN, b"ed", signature_algorithm=b"ed25519-sha256"))
    case("rsa-sha1", "permerror", own_signature(key, TAGS.replace("sha256", "sha1"), PLAIN, "rsa-sha1").encode() + PLAIN)
    good = key.sign(PLAIN)
    case("another body", "fail", good.replace(b"Hey gang", b"Hey game"))
    case("more body", "fail", good + b"more\r\n")
    case("another subject", "fail", good.replace(b"Subject: hello", b"Subject: hallo"))
    case("another author on top", "fail", b"From: Eve <eve@example.org>\r\n" + key.sign(PLAIN, include_headers=[b"from", b"from"]))
    case("a length", "neutral", key.sign(PLAIN, length=True) + b"more\r\n")
    for selector, expected in {
        "missing": "permerror", "away": "temperror", "revoked": "permerror", "sha1": "permerror", "both": "pass", "any": "pass", "mail": "pass",
        "strict": "pass", "testing": "pass", "nonsense": "permerror", "bad": ["permerror", "fail"], "tlsrpt": "permerror", "badk": "permerror",
        "badversion": "permerror", "several": "pass", "ed": "permerror",
    }.items():
        case(f"key {selector}", expected, key.sign(PLAIN, selector.encode()))
    case("two, one good", "pass", key.sign(key.sign(PLAIN), b"missing"))
    case("a key away and one missing", "temperror", key.sign(key.sign(PLAIN, b"missing"), b"away"))

    def own(name, expected, tags):
        case(name, expected, own_signature(key, tags, PLAIN).encode() + PLAIN)

    own("own signer", "pass", TAGS)
    own("for a name below", "pass", TAGS.replace("s=s;", "s=s; i=x@sub.example.org;"))
    own("for a name below, strictly", "permerror", TAGS.replace("s=s;", "s=strict; i=x@sub.example.org;"))
    own("for itself, strictly", "pass", TAGS.replace("s=s;", "s=strict; i=x@example.org;"))
    own("for another name", "permerror", TAGS.replace("s=s;", "s=s; i=x@example.net;"))
    own("for a name that ends alike", "permerror", TAGS.replace("s=s;", "s=s; i=x@anexample.org;"))
    own("expired", "neutral", TAGS.replace("s=s;", "s=s; t=1000; x=2000;"))
    own("not expired", "pass", TAGS.replace("s=s;", "s=s; t=1000; x=99999999999;"))
    own("expires before it was made", "neutral", TAGS.replace("s=s;", "s=s; t=99999999999; x=99999999998;"))
    own("without the author", "permerror", TAGS.replace("h=from:", "h="))
    own("version 2", "neutral", TAGS.replace("v=1", "v=2"))
    own("no version", "neutral", TAGS.replace("v=1; ", ""))
    own("a tag twice", "neutral", TAGS.replace("s=s;", "s=s; s=s;"))
    own("a tag that is none", "neutral", TAGS.replace("s=s;", "s=s; x;"))
    own("an unknown tag", "pass", TAGS.replace("s=s;", "s=s; zz=1;"))
    own("an unknown algorithm", "neutral", TAGS.replace("rsa-sha256", "rsa-md5"))
    own("an unknown canonicalization", "neutral", TAGS.replace("relaxed/relaxed", "nofws"))
    own("atps and reports asked for", "pass", TAGS.replace("s=s;", "s=s; r=y; atps=example.org; atpsh=none;"))
    case("nonsense", "neutral", b"DKIM-Signature: nonsense\r\n" + PLAIN)
    table.close()


def dmarc(key, client):
    table = Table("dmarc")
    zone = dkim_zone(key)
    records = {
        "one": ["v=DMARC1; p=quarantine"], "two": ["v=DMARC1; p=quarantine", "v=DMARC1; p=none"], "beside": ["v=DMARC1; p=none", "hello"],
        "none": [], "nonsense": ["v=DMARC1; p=perhaps"], "reports": ["v=DMARC1; rua=mailto:a@example.org"], "odd": ["v=DMARC1; p=none; pct=x; aspf=y; fo=z"],
        "upper": ["v=dmarc1; p=none"], "late": ["p=none; v=DMARC1"], "strict": ["v=DMARC1; p=none; aspf=s; adkim=s"], "away": None,
    }
    for name, texts in records.items():
        zone[f"{name}.example"] = [("TXT", "v=spf1 ip4:127.0.0.1 -all")]
        zone[f"bounce.{name}.example"] = [("TXT", "v=spf1 ip4:127.0.0.1 -all")]
        zone[f"_dmarc.{name}.example"] = ["TROUBLE"] if texts is None else [("TXT", text) for text in texts]
    client.names.set(zone)

    def case(name, expected, author, sender):
        table.note(name, expected, client.auth(PLAIN.replace(b"ada@example.org", author.encode()), sender)["dmarc"])

    for name in records:
        expected = {"two": "none", "none": "none", "nonsense": "none", "upper": "none", "late": "none", "away": "temperror"}.get(name, "pass")
        case(f"record {name}", expected, f"a@{name}.example", f"a@{name}.example")
        below = "fail" if name == "strict" else expected
        case(f"record {name}, of a name below", below, f"a@{name}.example", f"a@bounce.{name}.example")
        fails = "temperror" if name == "away" else "none" if expected == "none" else "fail"
        case(f"record {name}, of another", fails, f"a@{name}.example", "a@nothing.example")
        case(f"record {name}, author below", expected if name != "strict" else "fail", f"a@sub.{name}.example", f"a@{name}.example")
    client.names.set(dkim_zone(key))
    table.close()


# ARC


class Chain:
    """A message with ARC sets, built by arbitrary rules."""

    def __init__(self, key, message=PLAIN):
        self.key, self.message, self.sets = key, message, []

    def seal(self, number=None, cv=None, signature=str, seal=str, results=str, algorithm="rsa-sha256"):
        number = len(self.sets) + 1 if number is None else number
        cv = cv or ("none" if not self.sets else "pass")
        aar = results(f"i={number}; lists.example.org; spf=pass; dkim=pass")
        ams = signature(f"i={number}; a=rsa-sha256; c=relaxed/relaxed; d=example.org; s=s; t=12345; h=from:to:subject:date; bh={{bh}}; b={{b}}")
        ams = own_signature(self.key, ams, self.whole(), "rsa-sha1" if "rsa-sha1" in ams else algorithm, "ARC-Message-Signature")
        ams = ams.split(": ", 1)[1].removesuffix("\r\n")
        text = seal(f"i={number}; a=rsa-sha256; t=12345; cv={cv}; d=example.org; s=s; b={{b}}")
        data = "".join(relaxed(name, value) for one in self.sets for name, value in one)
        data += relaxed("ARC-Authentication-Results", aar) + relaxed("ARC-Message-Signature", ams)
        data += relaxed("ARC-Seal", text.replace("{b}", "")).removesuffix("\r\n")
        text = text.replace("{b}", self.key.raw(data.encode(), "rsa-sha1" if "rsa-sha1" in text else algorithm))
        self.sets.append([("ARC-Authentication-Results", aar), ("ARC-Message-Signature", ams), ("ARC-Seal", text)])
        return self

    def without(self, name, at=-1):
        self.sets[at] = [field for field in self.sets[at] if field[0] != name]
        return self

    def changed(self, old, new):
        self.message = self.message.replace(old, new)
        return self

    def whole(self):
        fields = "".join(f"{name}: {value}\r\n" for one in reversed(self.sets) for name, value in reversed(one))
        return fields.encode() + self.message


def arc(key, client):
    table = Table("arc")

    def new():
        return Chain(key)

    def swap(old, replacement):
        return lambda text: text.replace(old, replacement)

    cases = {"no chain": ("none", new())}
    for count in (1, 2, 3, 5, 20):
        chain = new()
        for _ in range(count):
            chain.seal()
        cases[f"{count} sets"] = ("pass", chain)
    cases["changed between"] = ("pass", new().seal().changed(b"hello", b"hallo").seal())
    cases["changed after"] = ("fail", new().seal().seal().changed(b"hello", b"hallo"))
    cases["another body after"] = ("fail", new().seal().changed(b"gang", b"game"))
    for cv in ("pass", "fail", "maybe", ""):
        cases[f"first says cv={cv}"] = ("fail", new().seal(seal=swap("cv=none", "cv=" + cv)))
    for cv in ("none", "fail", "maybe"):
        cases[f"second says cv={cv}"] = ("fail", new().seal().seal(cv=cv))
    for field in ("ARC-Seal", "ARC-Message-Signature", "ARC-Authentication-Results"):
        cases[f"first without {field}"] = ("fail", new().seal().seal().without(field, 0))
        cases[f"last without {field}"] = ("fail", new().seal().seal().without(field))
        cases[f"only set without {field}"] = ("fail", new().seal().without(field))
    cases["a gap"] = ("fail", new().seal().seal(number=3))
    cases["the same number twice"] = ("fail", new().seal().seal(number=1))
    for number in (0, 2, 51):
        cases[f"starts with {number}"] = ("fail", new().seal(number=number))
    for name, spoil in {
        "no i=": swap("i=1; ", ""), "no a=": swap("a=rsa-sha256; ", ""), "no d=": swap("d=example.org; ", ""), "no s=": swap("s=s; ", ""),
        "another i=": swap("i=1", "i=2"), "a tag twice": swap("s=s;", "s=s; s=s;"), "a capital tag": swap("s=s;", "S=s;"),
        "a tag that is none": swap("s=s;", "s=s; 1=1;"), "an unknown algorithm": swap("rsa-sha256", "rsa-md5"), "SHA-1": swap("rsa-sha256", "rsa-sha1"),
        "a key that is missing": swap("s=s", "s=missing"), "a key that is revoked": swap("s=s", "s=revoked"), "a key for another hash": swap("s=s", "s=sha1"),
        "a key for something else": swap("s=s", "s=tlsrpt"), "another domain": swap("d=example.org", "d=example.net"),
    }.items():
        cases[f"signature: {name}"] = ("fail", new().seal(signature=spoil))
        cases[f"seal: {name}"] = ("fail", new().seal(seal=spoil))
    for name, change in {
        "no t=": swap("t=12345; ", ""), "an unknown tag": swap("s=s;", "s=s; zz=1;"), "blanks": swap("; ", " ;  "), "no blanks": swap("; ", ";"),
        "a mark at the end": lambda text: text + ";", "folded": swap("; ", ";\r\n\t"), "big letters in a value": swap("d=example.org", "d=EXAMPLE.org"),
    }.items():
        cases[f"signature: {name}"] = ("pass", new().seal(signature=change))
        cases[f"seal: {name}"] = ("pass", new().seal(seal=change))
    cases["signature: a key that is away"] = ("temperror", new().seal(signature=swap("s=s", "s=away")))
    cases["signature: without the author"] = ("fail", new().seal(signature=swap("h=from:", "h=")))
    cases["signature: over a seal"] = ("fail", new().seal().seal(signature=swap("h=from:", "h=arc-seal:from:")))
    cases["signature: over another field"] = ("pass", new().seal(signature=swap("h=from:", "h=from:x-none:message-id:")))
    cases["seal: has h="] = ("fail", new().seal(seal=swap("s=s;", "s=s; h=from;")))
    cases["seal: forged"] = ("fail", new().seal(seal=swap("{b}", "AAAA")))
    cases["signature: forged"] = ("fail", new().seal(signature=swap("{b}", "AAAA")))
    cases["results: no i="] = ("fail", new().seal(results=swap("i=1; ", "")))
    cases["results: another i="] = ("fail", new().seal(results=swap("i=1", "i=2")))
    cases["results: changed after"] = ("fail", new().seal())
    cases["results: changed after"][1].sets[0][0] = ("ARC-Authentication-Results", "i=1; lists.example.org; spf=fail")
    for name, (expected, chain) in cases.items():
        table.note(name, expected, client.auth(chain.whole())["arc"])
    import dkim

    message = b"Authentication-Results: lists.example.org; arc=none; spf=pass\r\n" + PLAIN
    for count in (1, 2, 3):
        lines = dkim.arc_sign(message, b"s", b"example.org", key.rsa, b"lists.example.org")
        passed = message = b"".join(lines) + message
        table.note(f"dkimpy's, {count} sets", "pass", client.auth(passed)["arc"])
        field = b"\nAuthentication-Results: lists.example.org; arc="
        message = message.replace(field + b"none", field + b"pass")
    table.close()


# MIME


def mime_messages():
    """Test messages of other projects, if present."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry" / "src"
    python = Path(sysconfig.get_paths()["stdlib"], "test", "test_email", "data")
    for folder, pattern in [(python, "msg_*.txt"), (home, "*/mail-parser-*/resources/eml/**/*.eml")]:
        for file in sorted(folder.glob(pattern)) if folder.is_dir() else []:
            data = file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
            # Bare line ends and NUL are refused (RFC 5321 2.3.8), which is a valid result.
            yield f"{file.parent.name}/{file.name}", data if data.endswith(b"\r\n") else data + b"\r\n"


def subject_by_python(data):
    """Its subject as Python reads it; `None` if it is ambiguous."""
    head = re.split(rb"\r\n\r\n", data, maxsplit=1)[0]
    if len(re.findall(rb"(?mi)^subject:", head)) != 1 or re.search(rb"[^\x09\x0a\x0d\x20-\x7e]", head):
        return None
    try:
        subject = email.message_from_bytes(data, policy=email.policy.default)["subject"]
    except (ValueError, LookupError, AttributeError, IndexError, TypeError):
        return None
    if subject is None or "\ufffd" in subject or "=?" in subject:
        return None
    return " ".join(str(subject).split())


def mime(client):
    from receiving import call

    table = Table("mime")
    for name, data in mime_messages():
        found, code = client.submit(data)
        if found is None:
            bare = re.search(rb"\r(?!\n)|(?<!\r)\n|\0", data)
            table.note(f"{name}: answered", [550, 554] if bare else 250, code)
            continue
        whole = client.server.call_api("GET", f"/received-emails/{found}")["received_email"]
        status, raw = call(client.server.api, client.server.key, "GET", f"/received-emails/{found}/raw")
        table.note(f"{name}: raw", True, status == 200 and isinstance(raw, bytes) and raw.endswith(data))
        for file in whole["attachments"]:
            path = f"/received-emails/{found}/attachments/{file['id']}"
            status, got = call(client.server.api, client.server.key, "GET", path)
            table.note(f"{name}: {file['id']}", 200, status)
            if isinstance(got, bytes):
                table.note(f"{name}: {file['id']}, size", file["size"], len(got))
        subject = subject_by_python(data)
        if subject is not None:
            table.note(f"{name}: subject", subject, " ".join((whole["subject"] or "").split()))
    table.close()


def check(args):
    home, failures = fetched(), 0
    key = Key(home)
    with tempfile.TemporaryDirectory() as base:
        client = SmtpClient(args.postrider, Path(base), dkim_zone(key))
        for title, suite in {
            "SPF, the suite of RFC 7208": lambda: spf(home, client),
            "DKIM, by dkimpy": lambda: dkim(key, client),
            "DMARC": lambda: dmarc(key, client),
            "ARC, as ValiMail's suite": lambda: arc(key, client),
            "MIME, messages of others": lambda: mime(client),
        }.items():
            failures += report_case(title, suite)[1]
        failures += report_case("no panic, clean exit", lambda: end(client))[1]
    return failures


def end(client):
    client.close()
    if "panic" in client.server.log.read_text(errors="replace"):
        raise Failed("the log contains a panic")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postrider", required=True, help="the binary to start")
    args = parser.parse_args()
    if Path(sys.prefix).resolve() != (HOME / "python").resolve():
        try:
            fetched()
        except Skip as skip:
            print(f"  the public suites                  skipped: {skip}")
            return
        python = str(HOME / "python" / "bin" / "python")
        os.execv(python, [python, *sys.argv])
    sys.exit(1 if check(args) else 0)


if __name__ == "__main__":
    main()
