"""Cases of delivery security: hosts, records and policies, and the expected result of a message.

`WIRES` are ways in which TLS fails; each is tried without any policy and under each policy that requires TLS. `DANE`,
`STS` and `HOSTILE` are single cases. `SLOW` cases end with a timeout, or when the connection is closed.
"""

import dataclasses
from dataclasses import dataclass

from mailhosts import ALERT, BABBLE, BREAK_OFF, DROP, OFFERS, SILENCE, Host, and_go, drip, endless
from policyweb import Page, policy

SECURE, HASHED, PLAIN, OPTED_OUT = "secure.test", "hashed.test", "plain.test", "plain.hashed.test"
WRONG_KEY, OVER, FORGED = "wrongkey.test", "over.test", "forged.test"
# Queries about this name are answered SERVFAIL.
LOST = "_tcp.half.secure.test"
NO_TLS = ("8BITMIME",)
CLEAR = "in the clear"
# Senders; the domain of the second one has `tls_mode` enforced.
USUAL, STRICT = "acme.example", "strict.example"
CLOSED = "the host closed the connection"


@dataclass
class ExpectedResult:
    """Expected result: state, TLS, error text (regex), phase, and index of the host that accepts the message, or None if
    the host's own count is not compared."""

    state: str
    tls: object = None
    words: str = ""
    phase: str | None = None
    accepting_host: int | None = 0


@dataclass
class Case:
    title: str
    hosts: list
    expected: ExpectedResult
    zone: str = PLAIN
    # The policy at the well-known URL, and the TXT records if they differ from the default. In texts, `{d}` and `{h}`
    # are the domain and its first host; in records they end in a dot, and `{p}`, `{a}`, `{t:…}` are port, address and
    # TLSA.
    policy: Page | None = None
    announced: tuple | None = None
    records: tuple = ()
    has_mx: bool = True
    # Recipient domain, if it differs from the domain itself.
    to: str = "{d}"
    sender: str = USUAL
    # True if no policy requires TLS.
    is_open: bool = False
    # A known fault: it is printed and does not count as a failure.
    known: str = ""


def delivered_by(by, verified, accepting_host=0):
    return ExpectedResult("delivered", (by, verified), accepting_host=accepting_host)


def delivered_in_clear(accepting_host=0):
    return ExpectedResult("delivered", CLEAR, accepting_host=accepting_host)


def deferred(words, phase="tls"):
    return ExpectedResult("deferred", None, words, phase)


def enforced_policy(text=None, **more):
    return Page(policy("enforce", "{h}") if text is None else text, **more)


# Ways in which TLS fails: the host's behaviour, the error text and phase where TLS is required, and the result where no
# policy requires TLS.
WIRES = {
    "no STARTTLS": ({"offers": NO_TLS}, "does not offer TLS", "tls", delivered_in_clear()),
    "STARTTLS: 454": ({"at": {"starttls": b"454 4.7.0 no TLS now"}}, "no TLS now", "tls", delivered_in_clear()),
    "STARTTLS: 554": ({"at": {"starttls": b"554 5.7.0 no TLS ever"}}, "no TLS ever", "tls", delivered_in_clear()),
    "STARTTLS: 421": (
        {"at": {"starttls": b"421 4.3.2 shutting down"}},
        "shutting down",
        "tls",
        # Even without a policy: this is a host that closes the connection, not a host without TLS.
        deferred("^(?!.*required here).*shutting down", "ehlo"),
    ),
    "STARTTLS: hangs up": ({"at": {"starttls": DROP}}, f"TLS failed: {CLOSED}", "tls", delivered_in_clear()),
    "STARTTLS: 999": ({"at": {"starttls": b"999 what"}}, "a line that is not an SMTP reply", "tls", delivered_in_clear()),
    "STARTTLS: 354": ({"at": {"starttls": b"354 go on"}}, "go on|354", "tls", None),
    "STARTTLS: a megabyte": ({"at": {"starttls": b"220 " + b"x" * 2**20}}, "a reply that is too long", "tls", delivered_in_clear()),
    "plaintext behind STARTTLS": (
        {"at": {"starttls": b"220 go ahead\r\n250-mx.postrider.test\r\n250 AUTH PLAIN\r\n"}},
        "plaintext data after STARTTLS",
        "tls",
        delivered_in_clear(),
    ),
    "handshake: closed": ({"at": {"handshake": DROP}}, "TLS failed", "tls", delivered_in_clear()),
    "handshake: broken off": ({"at": {"handshake": BREAK_OFF}}, "TLS failed", "tls", delivered_in_clear()),
    "handshake: babble": ({"at": {"handshake": BABBLE}}, "TLS failed", "tls", delivered_in_clear()),
    "handshake: alert": ({"at": {"handshake": ALERT}}, "TLS failed", "tls", delivered_in_clear()),
    "a certificate of ours is asked for": ({"certificate": "demanding"}, "TLS failed", "tls", delivered_in_clear()),
    "EHLO by TLS: 502": (
        {"at": {"ehlo-tls": b"502 5.5.1 no EHLO", "helo-tls": b"502 5.5.1 no HELO"}},
        "no HELO",
        "ehlo",
        deferred("no HELO", "ehlo"),
    ),
    "EHLO by TLS: 421": ({"at": {"ehlo-tls": b"421 4.3.2 bye"}}, "bye", "ehlo", deferred("bye", "ehlo")),
    "EHLO by TLS: hangs up": ({"at": {"ehlo-tls": DROP}}, CLOSED, "ehlo", deferred(CLOSED, "ehlo")),
    "MAIL by TLS: hangs up": ({"at": {"mail": DROP}}, CLOSED, "mail", deferred(CLOSED, "mail")),
    "EHLO: 502, HELO taken": ({"at": {"ehlo": b"502 5.5.1 what"}}, "does not offer TLS", "tls", delivered_in_clear()),
    "EHLO: 421": ({"at": {"ehlo": b"421 4.3.2 later"}}, "later", "ehlo", deferred("later", "ehlo")),
    "greeting: 554": ({"at": {"greeting": b"554 5.7.1 not you"}}, "not you", "greeting", deferred("not you", "greeting")),
}


WILDCARD = "hickory-net 0.26.3 holds wildcards in zones with NSEC for forged (hickory-dns#3812)"

CROWD = "512 concurrent lookups, each up to 20 s for a policy (queue/src/scheduler/dispatch.rs: LOOKUPS_MAX; queue/src/routing/mta_sts.rs)"
LENIENT = "with dane=auto, forged answers count as unsigned if the name server passes them on (queue/src/routing.rs: mx, dane)"


def tls_failure_cases():
    """Each way in which TLS fails, without a policy and with each policy."""
    for title, (how, words, phase, free) in WIRES.items():
        host = {"certificate": "good"} | how
        if free:
            testing = Page(policy("testing", "{h}"))
            yield Case(f"no policy: {title}", [Host(**host)], free, is_open=True)
            yield Case(f"MTA-STS testing: {title}", [Host(**host)], free, policy=testing, is_open=True)
        yield Case(f"MTA-STS: {title}", [Host(**host)], deferred(words, phase), policy=enforced_policy())
        yield Case(f"DANE: {title}", [Host(**host, tlsa=("3 1 1 good",))], deferred(words, phase), SECURE)
        if free and free.tls == CLEAR:
            strict = Case(f"tls_mode enforced: {title}", [Host(**host)], deferred(words, phase))
            yield dataclasses.replace(strict, sender=STRICT)


def dane_case(title, certificate, *tlsa, expected=None, zone=SECURE, **more):
    """A case with one host with this certificate and these TLSA records."""
    return Case(f"DANE: {title}", [Host(certificate, tlsa)], expected or delivered_by("dane", True), zone, **more)


MEANS_NONE = deferred("no TLSA record matches the certificate")
BOGUS = deferred("DNSSEC signatures of .* are invalid", "dns")
BOGUS_HOST = deferred("DNSSEC signatures of .* are invalid", "tls")

DANE = [
    dane_case("3 1 1", "self", "3 1 1 self"),
    dane_case("3 0 1", "self", "3 0 1 self"),
    dane_case("3 1 0", "self", "3 1 0 self"),
    dane_case("3 0 0", "self", "3 0 0 self"),
    dane_case("3 1 2", "self", "3 1 2 self"),
    dane_case("3 0 2", "self", "3 0 2 self"),
    dane_case("3 1 1, expired", "expired", "3 1 1 expired"),
    dane_case("3 1 1, for another name", "other", "3 1 1 other"),
    dane_case("3 1 1, another key", "self", "3 1 1 good", expected=MEANS_NONE),
    dane_case("3 1 1, another key, the certificate is good", "good", "3 1 1 self", expected=MEANS_NONE),
    dane_case("3 0 1, another certificate", "self", "3 0 1 good", expected=MEANS_NONE),
    dane_case("3 1 1 of the authority", "whole", "3 1 1 ca", expected=MEANS_NONE),
    dane_case("3 1 1, TLS 1.2 alone", "elderly", "3 1 1 good"),
    dane_case("3 1 1, TLS 1.2 alone, another key", "elderly", "3 1 1 self", expected=MEANS_NONE),
    dane_case("roll-over", "good", "3 1 1 self", "3 1 1 good"),
    dane_case("2 0 1", "whole", "2 0 1 ca"),
    dane_case("2 1 1", "whole", "2 1 1 ca"),
    dane_case("2 1 2", "whole", "2 1 2 ca"),
    dane_case("2 0 1, an authority in between", "chain", "2 0 1 middle"),
    dane_case("2 1 1, an authority in between", "chain", "2 1 1 middle"),
    dane_case("2 0 0, shown in the record alone", "good", "2 0 0 ca"),
    dane_case("2 1 1, the authority is not shown", "good", "2 1 1 ca", expected=MEANS_NONE),
    dane_case("2 0 1, another authority", "whole", "2 0 1 self", expected=MEANS_NONE),
    dane_case("2 0 1, for another name", "other-whole", "2 0 1 ca", expected=deferred("for another name")),
    dane_case("2 0 1, expired", "expired-whole", "2 0 1 ca", expected=deferred("expired")),
    dane_case("2 0 1, shown but not signed by it", "stray", "2 0 1 ca", expected=deferred("not signed by|TLSA")),
    dane_case("1 1 1 alone: any certificate", "self", "1 1 1 good", expected=delivered_by("dane", False)),
    dane_case("0 0 1 alone: any certificate", "expired", "0 0 1 ca", expected=delivered_by("dane", False)),
    dane_case("a digest cut short, alone", "self", "3 1 1 =abcd", expected=delivered_by("dane", False)),
    dane_case("an unknown digest, alone", "self", "3 1 9 =abcd", expected=delivered_by("dane", False)),
    dane_case("an unknown selector, alone", "self", f"3 7 1 ={'ab' * 32}", expected=delivered_by("dane", False)),
    dane_case("1 1 1, and 3 1 1 of another key", "self", "1 1 1 self", "3 1 1 good", expected=MEANS_NONE),
    dane_case("none", "self", expected=delivered_by("opportunistic", False)),
    Case(
        "DANE: 1 1 1 alone, no STARTTLS",
        [Host(tlsa=("1 1 1 good",), offers=NO_TLS)],
        deferred("does not offer TLS"),
        SECURE,
    ),
    Case(
        "DANE: 1 1 1 alone, the handshake broken off",
        [Host(tlsa=("1 1 1 good",), at={"handshake": BREAK_OFF})],
        deferred("TLS failed"),
        SECURE,
    ),
    Case("DANE: none, no STARTTLS", [Host(offers=NO_TLS)], delivered_in_clear(), SECURE, is_open=True),
    Case(
        "DANE: the first host shows another key",
        [Host("self", ("3 1 1 good",)), Host("self", ("3 1 1 self",), preference=20)],
        delivered_by("dane", True, accepting_host=1),
        SECURE,
    ),
    Case(
        "DANE: the second host has no record, and no TLS",
        [Host("self", ("3 1 1 good",)), Host(offers=NO_TLS, preference=20)],
        delivered_in_clear(accepting_host=1),
        SECURE,
    ),
    # Origin of records.
    dane_case("at a wildcard", "self", records=("*._tcp.{h} 1 TLSA {t:3 1 1 self}",), known=WILDCARD),
    dane_case("at a wildcard, another key", "self", records=("*._tcp.{h} 1 TLSA {t:3 1 1 good}",), expected=MEANS_NONE, known=WILDCARD),
    dane_case("by an alias", "self", records=("_{p}._tcp.{h} 1 CNAME tlsa.{d}", "tlsa.{d} 1 TLSA {t:3 1 1 self}")),
    dane_case(
        "by an alias, another key",
        "self",
        records=("_{p}._tcp.{h} 1 CNAME tlsa.{d}", "tlsa.{d} 1 TLSA {t:3 1 1 good}"),
        expected=MEANS_NONE,
    ),
    dane_case(
        "by an alias into an unsigned zone: not usable",
        "self",
        records=("_{p}._tcp.{h} 1 CNAME another-key.plain.test.", "another-key.plain.test. 1 TLSA {t:3 1 1 good}"),
        expected=delivered_by("opportunistic", False),
    ),
    dane_case("without MX", "self", "3 1 1 self", has_mx=False),
    dane_case("without MX, another key", "self", "3 1 1 good", has_mx=False, expected=MEANS_NONE),
    dane_case("the domain is an alias", "self", "3 1 1 self", records=("to.{d} 1 CNAME {d}",), to="to.{d}"),
    dane_case(
        "the domain is an alias, another key",
        "self",
        "3 1 1 good",
        records=("to.{d} 1 CNAME {d}",),
        to="to.{d}",
        expected=MEANS_NONE,
    ),
    dane_case("MX at a wildcard", "self", "3 1 1 self", records=("*.w.{d} 1 MX 10 {h}",), to="any.w.{d}", known=WILDCARD),
    dane_case(
        "MX at a wildcard, another key",
        "self",
        "3 1 1 good",
        records=("*.w.{d} 1 MX 10 {h}",),
        to="any.w.{d}",
        expected=MEANS_NONE,
        known=WILDCARD,
    ),
    dane_case("MX at a wildcard, two labels deep", "self", "3 1 1 self", records=("*.w.{d} 1 MX 10 {h}",), to="any.one.w.{d}"),
    # RFC 7672 2.2.2: records at the end of the alias are used first, then those at its beginning.
    dane_case(
        "the host is an alias, records at its end",
        "self",
        records=("_{p}._tcp.end.{d} 1 TLSA {t:3 1 1 good}", "end.{d} 1 A {a}", "{h} 1 CNAME end.{d}"),
        expected=MEANS_NONE,
    ),
    dane_case(
        "the host is an alias, records at both: those at its end are used",
        "self",
        "3 1 1 good",
        records=("_{p}._tcp.end.{d} 1 TLSA {t:3 1 1 self}", "end.{d} 1 A {a}", "{h} 1 CNAME end.{d}"),
    ),
    dane_case(
        "the host is an alias, records at its beginning",
        "self",
        "3 1 1 good",
        records=("end.{d} 1 A {a}", "{h} 1 CNAME end.{d}"),
        expected=MEANS_NONE,
    ),
    dane_case(
        "the host is an alias into an unsigned zone, records at its beginning",
        "self",
        "3 1 1 good",
        records=("{h} 1 CNAME end.plain.test.", "end.plain.test. 1 A {a}"),
        expected=MEANS_NONE,
    ),
    # Partly signed.
    Case(
        "DANE: MX unsigned, the host signed, another key",
        [Host("self", name="foreign.secure.test")],
        delivered_by("opportunistic", False),
        records=("_{p}._tcp.{h} 1 TLSA {t:3 1 1 good}",),
    ),
    Case(
        "DANE: MX signed, the host unsigned, another key",
        [Host("self", name="foreign.plain.test")],
        delivered_by("opportunistic", False),
        SECURE,
        records=("_{p}._tcp.{h} 1 TLSA {t:3 1 1 good}",),
    ),
    Case("DANE: MX signed, the host in a zone whose DS fits no key", [Host("self", name="foreign.wrongkey.test")], BOGUS_HOST, SECURE),
    dane_case("an unsigned zone, another key", "self", "3 1 1 good", zone=PLAIN, expected=delivered_by("opportunistic", False)),
    # NSEC3.
    dane_case("NSEC3: 3 1 1", "self", "3 1 1 self", zone=HASHED),
    dane_case("NSEC3: another key", "self", "3 1 1 good", zone=HASHED, expected=MEANS_NONE),
    dane_case("NSEC3: none", "self", zone=HASHED, expected=delivered_by("opportunistic", False)),
    dane_case("NSEC3: without MX", "self", "3 1 1 self", zone=HASHED, has_mx=False),
    dane_case("NSEC3: MX at a wildcard", "self", "3 1 1 self", zone=HASHED, records=("*.w.{d} 1 MX 10 {h}",), to="any.w.{d}"),
    dane_case("NSEC3: opted out, unsigned", "self", "3 1 1 good", zone=OPTED_OUT, expected=delivered_by("opportunistic", False)),
    # Domains without mail.
    Case("DANE: signed NXDOMAIN", [], ExpectedResult("bounced", None, "does not exist"), SECURE, to="nobody.{d}"),
    Case("DANE: NXDOMAIN with NSEC3", [], ExpectedResult("bounced", None, "does not exist"), HASHED, to="nobody.{d}"),
    Case("DANE: a signed null MX", [], ExpectedResult("bounced", None, "accepts no mail"), SECURE, records=("{d} 1 MX 0 .",)),
    # Invalid signatures.
    dane_case("the DS fits no key", "self", "3 1 1 self", zone=WRONG_KEY, expected=BOGUS),
    dane_case("the DS fits no key, no MX", "self", zone=WRONG_KEY, has_mx=False, expected=BOGUS),
    Case("DANE: the DS fits no key, no such domain", [], BOGUS, WRONG_KEY, to="nobody.{d}"),
    dane_case("the signatures have expired", "self", "3 1 1 self", zone=OVER, expected=BOGUS),
    dane_case(
        "MX forged",
        "self",
        "3 1 1 self",
        zone=FORGED,
        to="mx-forged.{d}",
        records=("mx-forged.{d} 1 MX 10 {h}",),
        expected=BOGUS,
    ),
    dane_case(
        "MX without its signature",
        "self",
        "3 1 1 self",
        zone=FORGED,
        to="mx-bare.{d}",
        records=("mx-bare.{d} 1 MX 10 {h}",),
        expected=BOGUS,
    ),
    dane_case(
        "MX taken away",
        "self",
        "3 1 1 self",
        zone=FORGED,
        to="mx-gone.{d}",
        records=("mx-gone.{d} 1 MX 10 {h}", "mx-gone.{d} 1 A {a}"),
        expected=BOGUS,
    ),
    Case("DANE: the address forged", [Host("self", ("3 1 1 self",), name="a-forged.{d}")], BOGUS_HOST, FORGED),
    Case("DANE: the address without its signature", [Host("self", ("3 1 1 self",), name="a-bare.{d}")], BOGUS_HOST, FORGED),
    Case("DANE: TLSA forged", [Host("self", ("3 1 1 self",), name="tlsa-forged.{d}")], BOGUS_HOST, FORGED),
    Case("DANE: TLSA without its signature", [Host("self", ("3 1 1 self",), name="tlsa-bare.{d}")], BOGUS_HOST, FORGED),
    Case("DANE: TLSA taken away", [Host("self", ("3 1 1 self",), name="tlsa-gone.{d}")], BOGUS_HOST, FORGED),
    Case("DANE: NXDOMAIN for TLSA without its signature", [Host("self", name="no-bare.{d}")], BOGUS_HOST, FORGED),
    Case("DANE: in a forged zone intact records are valid", [Host("self", ("3 1 1 self",))], delivered_by("dane", True), FORGED),
    Case(
        "DANE: SERVFAIL for TLSA",
        [Host("self", name="half.secure.test")],
        deferred("did not answer", "tls"),
        SECURE,
    ),
    Case(
        "DANE: SERVFAIL for the first host's TLSA, the second has its key",
        [Host("self", name="half.secure.test"), Host("self", ("3 1 1 self",), preference=20)],
        delivered_by("dane", True, accepting_host=1),
        SECURE,
    ),
    # DANE and MTA-STS together.
    dane_case("with MTA-STS: the key is used", "self", "3 1 1 self", policy=enforced_policy()),
    dane_case("with MTA-STS: another key, the certificate is good", "good", "3 1 1 self", policy=enforced_policy(), expected=MEANS_NONE),
    dane_case("with MTA-STS: 1 1 1 alone, the certificate is good", "good", "1 1 1 self", policy=enforced_policy(), expected=delivered_by("mta-sts", True)),
    dane_case("with MTA-STS: 1 1 1 alone, the certificate is not", "self", "1 1 1 self", policy=enforced_policy(), expected=deferred("TLS failed")),
    dane_case("beside MTA-STS testing: another key", "good", "3 1 1 self", policy=Page(policy("testing", "{h}")), expected=MEANS_NONE),
    dane_case("signed, no TLSA, MTA-STS", "self", policy=enforced_policy(), expected=deferred("TLS failed")),
]


def enforce(title, expected, certificate="good", page=None, hosts=None, **more):
    return Case(f"MTA-STS: {title}", hosts or [Host(certificate)], expected, policy=page or enforced_policy(), **more)


def no_policy(title, page=None, announced=("v=STSv1; id=1;",), **more):
    """A TXT record without a usable policy: mail is sent as if there were no TXT record."""
    return Case(f"MTA-STS: {title}: none", [Host("self", offers=NO_TLS)], delivered_in_clear(), policy=page, announced=announced, is_open=True, **more)


GOOD, REFUSED = delivered_by("mta-sts", True), deferred("TLS failed")
# One host of two domains, one of which requires more: its mail must not use the other's connection.
SHARED = Host("self", name="shared.plain.test")
OUTSIDE = deferred("none of the mail hosts of .* is listed in its MTA-STS policy")

STS = [
    enforce("a good certificate", GOOD),
    enforce("a good certificate by an authority in between", GOOD, "chain"),
    enforce("expired", deferred("TLS failed.*(expired|Expired)"), "expired"),
    enforce("for another name", deferred("TLS failed.*(name|Name)"), "other"),
    enforce("self-signed", REFUSED, "self"),
    enforce("a wildcard", GOOD, page=enforced_policy(policy("enforce", "*.{d}"))),
    enforce("a wildcard matches one label", OUTSIDE, page=enforced_policy(policy("enforce", "*.plain.test"))),
    enforce("a wildcard matches at least one label", OUTSIDE, page=enforced_policy(policy("enforce", "*.{h}"))),
    enforce("another host", OUTSIDE, page=enforced_policy(policy("enforce", "mx.elsewhere.example"))),
    enforce("mixed case", GOOD, page=enforced_policy(policy("enforce", "MX1.{D}"))),
    enforce("LF alone, spaces, an unknown field", GOOD, page=enforced_policy("version: STSv1\nmode:enforce\n\nmx :  {h}  \nlater: x\nmax_age: 60\n")),
    enforce("a repeated field: the first is used", REFUSED, "self", enforced_policy(policy("enforce", "{h}") + "mode: none\r\n")),
    enforce("max_age 0", REFUSED, "self", enforced_policy(policy("enforce", "{h}", max_age=0))),
    enforce("64 KiB", REFUSED, "self", enforced_policy(policy("enforce", "{h}") + "later: x\r\n" * 6000)),
    enforce(
        "the preferred host is not in the policy",
        delivered_by("mta-sts", True, accepting_host=1),
        hosts=[Host("good"), Host("good", preference=20)],
        page=enforced_policy(policy("enforce", "mx2.{d}")),
    ),
    enforce(
        "the first host's certificate is bad",
        delivered_by("mta-sts", True, accepting_host=1),
        hosts=[Host("self"), Host("good", preference=20)],
        page=enforced_policy(policy("enforce", "*.{d}")),
    ),
    enforce(
        "no host has a valid certificate",
        REFUSED,
        hosts=[Host("self"), Host("expired", preference=20)],
        page=enforced_policy(policy("enforce", "*.{d}")),
    ),
    Case("MTA-STS: a shared host: mail of the other domain", [SHARED], delivered_by("opportunistic", False)),
    enforce("a shared host: mail of this domain", REFUSED, hosts=[SHARED]),
    enforce("without MX", GOOD, has_mx=False),
    enforce("without MX, self-signed", REFUSED, "self", has_mx=False),
    enforce("the web server is an alias", REFUSED, "self", records=("mta-sts.{d} 1 CNAME web.{d}", "web.{d} 1 A 127.27.0.1")),
    enforce(
        "the TXT record is an alias",
        REFUSED,
        "self",
        announced=(),
        records=("_mta-sts.{d} 1 CNAME id.{d}", 'id.{d} 1 TXT "v=STSv1; id=1"'),
    ),
    enforce("TLS 1.2 alone", GOOD, "elderly"),
    enforce("with other TXT records", REFUSED, "self", announced=("v=spf1 -all", "v=STSv1; id=7; later=x")),
    enforce("testing, good", GOOD, page=Page(policy("testing", "{h}"))),
    enforce("testing, self-signed", delivered_by("mta-sts", False), "self", Page(policy("testing", "{h}"))),
    enforce("testing, expired", delivered_by("mta-sts", False), "expired", Page(policy("testing", "{h}"))),
    enforce("testing, for another name", delivered_by("mta-sts", False), "other", Page(policy("testing", "{h}"))),
    enforce("testing, another host", delivered_by("mta-sts", True), page=Page(policy("testing", "mx.elsewhere.example"))),
    enforce("mode none", delivered_by("opportunistic", False), "self", Page(policy("none"))),
    no_policy("no version", Page(policy("enforce", "{h}", version=None))),
    no_policy("another version", Page(policy("enforce", "{h}", version="STSv2"))),
    no_policy("no mode", Page(policy(None, "{h}"))),
    no_policy("an unknown mode", Page(policy("strict", "{h}"))),
    no_policy("no max_age", Page(policy("enforce", "{h}", max_age=None))),
    no_policy("max_age is not a number", Page(policy("enforce", "{h}", max_age="1d"))),
    no_policy("negative max_age", Page(policy("enforce", "{h}", max_age=-1))),
    no_policy("max_age beyond a year", Page(policy("enforce", "{h}", max_age=31557601))),
    no_policy("max_age too large for any integer", Page(policy("enforce", "{h}", max_age="9" * 40))),
    no_policy("no mx", Page(policy("enforce"))),
    no_policy("mx is not a name", Page(policy("enforce", "a b"))),
    no_policy("mx is an address", Page(policy("enforce", "127.0.0.1"))),
    no_policy("a line without colon", Page(policy("enforce", "{h}") + "nonsense\r\n")),
    no_policy("not UTF-8", Page(policy("enforce", "mx").encode() + b"later: \xff\r\n")),
    no_policy("empty", Page("")),
    no_policy("HTML", Page("<html><body>Welcome</body></html>")),
    no_policy("too long", Page(policy("enforce", "{h}") + "later: x\r\n" * 8000)),
    no_policy("a web page", Page(policy("enforce", "{h}"), headers={"content-type": "text/html"})),
    no_policy("404", Page(policy("enforce", "{h}"), status="404 Not Found")),
    no_policy("500", Page(policy("enforce", "{h}"), status="500 Oops")),
    no_policy("204", Page("", status="204 No Content")),
    no_policy("301", Page("", status="301 Moved Permanently", headers={"location": "/moved"})),
    no_policy("302", Page("", status="302 Found", headers={"location": "/moved"})),
    no_policy("308", Page("", status="308 Permanent Redirect", headers={"location": "/moved"})),
    no_policy("cut", Page(policy("enforce", "{h}"), cut=5)),
    no_policy("web server: self-signed", Page(policy("enforce", "{h}"), certificate="self")),
    no_policy("web server: expired", Page(policy("enforce", "{h}"), certificate="expired")),
    no_policy("web server: for another name", Page(policy("enforce", "{h}"), certificate="other")),
    no_policy("no web server", None),
    no_policy("announced twice", Page(policy("enforce", "{h}")), announced=("v=STSv1; id=1", "v=STSv1; id=2")),
    no_policy("TXT record without id", Page(policy("enforce", "{h}")), announced=("v=STSv1;",)),
    no_policy("TXT record with an invalid id", Page(policy("enforce", "{h}")), announced=("v=STSv1; id=a-b;",)),
    no_policy("TXT record with another version", Page(policy("enforce", "{h}")), announced=("v=STSv2; id=1;",)),
    no_policy("not announced", Page(policy("enforce", "{h}")), announced=()),
]

# Misbehaving hosts: what they send, and the expected error text.
TOO_LONG = "a reply that is too long"
TROUBLES = {
    "endless lines": (lambda code: endless(b"%s-x\r\n" % code), TOO_LONG),
    "an endless line": (lambda code: endless(b"%s-xxxxxxxxxxxx" % code), TOO_LONG),
    "a megabyte": (lambda code: b"%s %s" % (code, b"x" * 2**20), TOO_LONG),
    "999": (lambda code: b"999 what", "a line that is not an SMTP reply"),
    "no code": (lambda code: b"what?", "a line that is not an SMTP reply"),
    "two codes": (lambda code: b"%s-a\r\n550 b" % code, "two different codes"),
    "421": (lambda code: b"421 4.3.2 overloaded", "overloaded"),
    "hangs up": (lambda code: DROP, CLOSED),
    "hangs up in a reply": (lambda code: and_go(b"%s-hm" % code), CLOSED),
}
STEPS = {"greeting": b"220", "ehlo": b"250", "mail": b"250", "rcpt": b"250", "data": b"354", "dot": b"250"}
WAYS = {"": NO_TLS, ", in groups": (*NO_TLS, "PIPELINING"), ", by BDAT": (*NO_TLS, "PIPELINING", "CHUNKING"), ", by TLS": OFFERS}


def hostile():
    for way, offers in WAYS.items():
        for step, code in STEPS.items():
            if way and step in ("greeting", "ehlo") or way == ", by BDAT" and step == "data":
                continue
            for trouble, (act, words) in TROUBLES.items():
                host = Host(at={step: act(code)}, offers=offers)
                phase = {"dot": "final"}.get(step, step if step in ("mail", "rcpt", "data") else None)
                # A failure in a group or flight affects everything that was sent before it.
                phase = None if way == ", by BDAT" or (way == ", in groups" and "hangs" in trouble) else phase
                expected = deferred(words, phase)
                if step == "dot" and words == TOO_LONG:
                    # Its code says that the host has the message: sending it again would deliver it twice. A host that
                    # never ends its reply counts no message.
                    tls = ("opportunistic", False) if offers is OFFERS else CLEAR
                    expected = ExpectedResult("delivered", tls, accepting_host=None)
                yield Case(f"hostile: {step}: {trouble}{way}", [host], expected, is_open=True)
    lf = {step: reply + b" ok\n" for step, reply in STEPS.items()} | {"ehlo": b"250-mx\n250 8BITMIME\n"}
    yield Case("hostile: LF alone", [Host(at=lf, offers=NO_TLS)], delivered_in_clear(), is_open=True)
    for title, at, words in [
        ("greeting: 354", {"greeting": b"354 go on"}, "unexpected reply: 354"),
        ("greeting: two at once", {"greeting": b"220 hello\r\n250 ok"}, "data before a command|unexpected reply"),
        ("mail: 354", {"mail": b"354 go on"}, "unexpected reply: 354"),
        ("data: 250", {"data": b"250 ok"}, "unexpected reply: 250"),
        ("dot: 354", {"dot": b"354 more"}, "unexpected reply: 354"),
        ("greeting: HTTP", {"greeting": b"HTTP/1.1 400 Bad Request"}, "a line that is not an SMTP reply"),
        ("greeting: TLS", {"greeting": b"\x16\x03\x01\x00\x05hello"}, "a line that is not an SMTP reply"),
    ]:
        yield Case(f"hostile: {title}", [Host(at=at, offers=NO_TLS)], deferred(words, None), is_open=True)


def slow():
    """Cases that end with a timeout of a minute, and cases that would take minutes and are disconnected."""
    silent = {"handshake": SILENCE}
    yield Case("slow: the handshake never ends: in the clear", [Host(at=silent)], delivered_in_clear(), is_open=True)
    yield Case("slow: the handshake never ends, MTA-STS", [Host(at=silent)], deferred("TLS failed.*in time"), policy=enforced_policy())
    yield Case("slow: the handshake never ends, DANE", [Host(tlsa=("3 1 1 good",), at=silent)], deferred("TLS failed.*in time"), SECURE)


    late = Page(policy("enforce", "{h}"), drips=True)
    yield Case("slow: the policy is sent byte by byte: none", [Host("self", offers=NO_TLS)], delivered_in_clear(), policy=late, is_open=True)
    silent = Page(is_silent=True)
    yield Case("slow: the policy's web server is silent: none", [Host("self", offers=NO_TLS)], delivered_in_clear(), policy=silent, is_open=True)


def after_a_start():
    """Mail that is queued when postrider starts."""
    for number in range(1, 11):
        title = f"at a start, another key, {number}"
        yield dane_case(title, "self", "3 1 1 good", expected=MEANS_NONE)
    yield dane_case("at a start, 3 1 1", "self", "3 1 1 self")


def lenient_cases():
    """With `dane = "auto"` and a name server that does not validate, forged answers must not remove the protection."""
    host = Host("self", ("3 1 1 good",), name="tlsa-bare.{d}")
    yield Case("DANE: dane=auto: TLSA without its signature", [host], deferred("", "tls"), FORGED, known=LENIENT)
    host = Host("self", ("3 1 1 good",), name="tlsa-gone.{d}")
    yield Case("DANE: by auto: TLSA taken away", [host], deferred("", "tls"), FORGED, known=LENIENT)
    records = ("mx-bare.{d} 1 MX 10 {h}",)
    bare = {"zone": FORGED, "to": "mx-bare.{d}", "records": records, "expected": deferred("", None), "known": LENIENT}
    yield dane_case("dane=auto: MX without its signature", "self", "3 1 1 good", **bare)
    deep = {"to": "any.w.{d}", "records": ("*.w.{d} 1 MX 10 {h}",), "expected": delivered_by("opportunistic", False)}
    yield dane_case("dane=auto: MX at a wildcard, no TLSA", "self", **deep, known=WILDCARD)
    record = "*._tcp.{h} 1 TLSA {t:3 1 1 good}"
    yield dane_case("dane=auto: TLSA at a wildcard, another key", "self", records=(record,), expected=MEANS_NONE, known=LENIENT)


def dripping():
    for step, code in STEPS.items():
        phase = {"dot": "final"}.get(step, step if step in ("mail", "rcpt", "data") else None)
        host = Host(at={step: drip(b"%s-x\r\n" % code)}, offers=NO_TLS)
        yield Case(f"slow: {step}: a byte a second", [host], deferred(CLOSED, phase), is_open=True)
    for step in ("greeting", "ehlo", "dot"):
        yield Case(f"slow: {step}: silence", [Host(at={step: SILENCE}, offers=NO_TLS)], deferred(CLOSED, None), is_open=True)


# Changes to the signed records of names in the forged zone: record type, and what remains of the records.
BREAKINGS = {
    "mx-forged": ("MX", lambda line: line.replace("\t10 ", "\t11 ")),
    "mx-bare": ("RRSIG MX", None),
    "mx-gone": ("MX", None),
    "a-forged": ("A", lambda line: line.replace("127.25.", "127.26.")),
    "a-bare": ("RRSIG A", None),
    "tlsa-forged": ("TLSA", lambda line: line.rstrip()[:-8] + "00000000\n"),
    "tlsa-bare": ("RRSIG TLSA", None),
    "tlsa-gone": ("TLSA", None),
    "no-bare": ("RRSIG NSEC", None),
}


def forge(lines):
    kept = []
    for line in lines:
        words = line.split()
        for label, (kind, change) in BREAKINGS.items():
            is_its = len(words) > 3 and label in words[0].split(".")
            if is_its and (words[2] == kind or f"{words[2]} {words[3]}" == kind):
                line = change(line) if change else ""
        kept.append(line)
    return kept
