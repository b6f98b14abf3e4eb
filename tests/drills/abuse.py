#!/usr/bin/env python3
"""Several abusers attack a server at once while a paying customer keeps sending; the customer's latency is measured.

    POSTRIDER=target/release/postrider tests/drills/abuse.py              one minute without and one minute with abuse
    POSTRIDER=target/debug/postrider tests/drills/abuse.py --seconds 8 --idle 1000    a short run
    tests/drills/abuse.py --only idle slow                                only these abusers

Flow: start a server with a name server, a customer and four tenants; measure the customer's sends by SMTP submission
and by the API without abuse; start the abusers, one process each; measure again; stop. The abusers:

    slow         16 addresses at the MX listener, each with an unfinished message of 24 MB
    idle         many idle sessions at the MX listener, 48 from an address
    guess        wrong SMTP logins from the customer's own address
    zone         mail to the MX listener whose SPF and DKIM names are in a zone with answers of maximum size
    processor    a tenant whose payment processor answers with the largest and most nested JSON
    import       a tenant on the free plan who keeps importing suppressions
    verify       a tenant who keeps verifying a domain whose name servers the tenant controls

Exits with 1 if a send of the customer fails, the server uses more memory than allowed, or its log contains a panic. The
latencies are printed: p99 under abuse should stay within twice the value without abuse.
"""

import argparse
import base64
import http.client
import json
import multiprocessing
import os
import smtplib
import socket
import ssl
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
from hostile_processor import attack  # noqa: E402
from nameserver import NameServer, on_wire  # noqa: E402
from nodes import free_port  # noqa: E402
from receiving import BALANCER, DOMAIN, Server  # noqa: E402

MB = 1 << 20
SLOW, SLOW_BYTES = 16, 24 * MB
SESSIONS_EACH = 48
# Actions per second of each abuser; limits the load that the abusers themselves put on a machine of two cores.
A_SECOND = {"zone": 10, "processor": 5, "import": 2, "verify": 50, "guess": 10}
# Connections that send the hostile processor's events.
PROCESSOR_EVENTS = 4
SENDS_A_SECOND = 20
HOSTILE = "hostile.net"


class HostileNames(NameServer):
    """Answers for a zone in which every name has as many addresses, or as long a text, as a message can hold."""

    def answer(self, question, room):
        name = question[12:].split(b"\0", 1)[0]
        if not name.endswith(b"\x07hostile\x03net"):
            return super().answer(question, room)
        at = 12 + len(name) + 1
        kind = struct.unpack("!H", question[at : at + 2])[0]
        header = struct.unpack("!H", question[:2])[0]
        question_bytes = question[12 : at + 4]
        if room < 65_000:
            # Truncated: the resolver repeats the query over TCP.
            return struct.pack("!6H", header, 0x8780, 1, 0, 0, 0) + question_bytes
        head = b"\xc0\x0c" + struct.pack("!HHI", kind, 1, 86_400)
        if kind == 16:
            text = b"v=spf1 include:a%d.hostile.net ~all" % (time.monotonic_ns() % 10**9)
            strings = bytes([len(text)]) + text + b"\0" * 60_000
            records = [head + struct.pack("!H", len(strings)) + strings]
        elif kind == 1:
            records = [head + struct.pack("!H", 4) + socket.inet_aton("192.0.2.1")] * 4_000
        elif kind == 15:
            host = struct.pack("!H", 10) + on_wire("mx.hostile.net")
            records = [head + struct.pack("!H", len(host)) + host] * 1_500
        else:
            records = []
        return struct.pack("!6H", header, 0x8580, 1, len(records), 0, 0) + question_bytes + b"".join(records)


def loopback(number):
    return f"127.10.{number // 250 % 240}.{number % 250 + 1}"


def connect(port, number):
    """Connects as a client with an address of its own, mostly in a /24 of its own, since limits also apply per /24. The
    address is given in a PROXY header, because loopback has more rights."""
    made = socket.create_connection(("127.0.0.1", port), 10, (BALANCER, 0))
    made.settimeout(10)
    made.sendall(b"PROXY TCP4 198.18.%d.%d 127.0.0.1 1 25\r\n" % (number % 250, number // 250 % 250 + 1))
    return made


def paced(name, once):
    """Repeats an action at the abuser's rate and ignores its errors."""
    while True:
        begun = time.monotonic()
        try:
            once()
        except (OSError, http.client.HTTPException, smtplib.SMTPException):
            pass
        time.sleep(max(0.0, 1 / A_SECOND[name] - (time.monotonic() - begun)))


def lines(made, *commands):
    for line in commands:
        made.sendall(line + b"\r\n")
        made.recv(4_096)


def slow(server):
    """Sends messages that never end; reconnects after each disconnect."""
    open_ones = {}
    chunk = b"x" * 76 + b"\r\n"
    while True:
        for number in range(SLOW):
            try:
                if number not in open_ones:
                    made = connect(server.mx, number)
                    made.recv(4_096)
                    lines(made, b"EHLO slow.example", b"MAIL FROM:<a@slow.example>", b"RCPT TO:<a@acme.example>", b"DATA")
                    made.sendall(b"Subject: x\r\n\r\n" + chunk * (SLOW_BYTES // len(chunk)))
                    open_ones[number] = made
                open_ones[number].sendall(b"x\r\n")
            except OSError:
                open_ones.pop(number, None)
        time.sleep(1)


def idle(server, sessions):
    """Opens idle sessions; reconnects after each disconnect."""
    open_ones = {}
    while True:
        for number in range(sessions):
            if number not in open_ones:
                try:
                    made = connect(server.mx, 1_000 + number // SESSIONS_EACH)
                    made.setblocking(False)
                    open_ones[number] = made
                except OSError:
                    continue
        for number, made in list(open_ones.items()):
            try:
                if made.recv(4_096) == b"":
                    open_ones.pop(number).close()
            except BlockingIOError:
                pass
            except OSError:
                open_ones.pop(number).close()
        time.sleep(1)


def guess(server):
    context = unchecked()

    def once():
        with smtplib.SMTP("127.0.0.1", server.submission, timeout=5) as client:
            client.starttls(context=context)
            client.login("postrider", "stxsmtp_" + base64.b32encode(os.urandom(20)).decode().lower())

    paced("guess", once)


def zone(server):
    count = 0

    def once():
        nonlocal count
        count += 1
        signature = (
            f"DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=d{count}.{HOSTILE}; s=s{count};\r\n"
            " h=from; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA\r\n"
        )
        message = f"{signature}From: a@d{count}.{HOSTILE}\r\nSubject: x\r\n\r\n"
        with smtplib.SMTP("127.0.0.1", server.mx, timeout=30, source_address=(loopback(count % 50), 0)) as client:
            client.sendmail(f"a@m{count}.{HOSTILE}", [f"a@{DOMAIN}"], message)

    paced("zone", once)


def request(server, key, method, path, body, kind="application/json"):
    connection = http.client.HTTPConnection("127.0.0.1", server.api, timeout=60)
    try:
        connection.request(method, path, body, {"authorization": f"Bearer {key}", "content-type": kind})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def import_(server, key):
    count = 0

    def once():
        nonlocal count
        count += 1
        rows = "".join(f"{count}-{number}@import.example\n" for number in range(100_000))
        request(server, key, "POST", "/suppressions/import", "email\n" + rows, "text/csv")

    paced("import", once)


def verify(server, key):
    _, made = request(server, key, "POST", "/domains", json.dumps({"name": f"shop.{HOSTILE}"}))
    found = json.loads(made)["domain"]["id"]
    paced("verify", lambda: request(server, key, "POST", f"/domains/{found}/verify", ""))


def processor(server, key):
    _, hostile = attack(server, key, "processor@tenant.example")
    hostile.pause_s = PROCESSOR_EVENTS / A_SECOND["processor"]
    hostile.run(3_600, PROCESSOR_EVENTS)


def unchecked():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def customer(server, seconds, results):
    """Sends by SMTP and by the API alternately and reports the latencies in milliseconds."""
    took = {"smtp": [], "api": []}
    failed = []
    message = f"From: shop@{DOMAIN}\r\nTo: a@dest.example\r\nSubject: receipt\r\n\r\n" + "Thank you.\r\n" * 200
    body = json.dumps({"from": f"shop@{DOMAIN}", "to": "a@dest.example", "subject": "receipt", "text": "Thank you. " * 200})

    def by_smtp():
        with smtplib.SMTP("127.0.0.1", server.submission, timeout=30) as client:
            client.starttls(context=unchecked())
            client.login("postrider", server.password)
            client.sendmail(f"shop@{DOMAIN}", ["a@dest.example"], message)

    def by_api():
        status, answer = request(server, server.key, "POST", "/emails", body)
        if status != 200:
            raise OSError(f"{status} {answer[:200]}")

    until, nth = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        way, send = (("smtp", by_smtp), ("api", by_api))[nth % 2]
        nth += 1
        begun = time.monotonic()
        try:
            send()
        except (OSError, http.client.HTTPException, smtplib.SMTPException) as error:
            failed.append(f"{way}: {error!r}")
        took[way].append((time.monotonic() - begun) * 1_000)
        time.sleep(max(0.0, 1 / SENDS_A_SECOND - (time.monotonic() - begun)))
    results.put((took, failed))


def measure(server, seconds):
    results = multiprocessing.Queue()
    sender = multiprocessing.Process(target=customer, args=(server, seconds, results))
    sender.start()
    took, failed = results.get()
    sender.join()
    return {way: quantiles(times) for way, times in took.items()}, failed


def quantiles(times):
    times = sorted(times)
    at = lambda part: times[min(len(times) - 1, int(len(times) * part))]  # noqa: E731
    return {"count": len(times), "p50": at(0.5), "p99": at(0.99), "max": times[-1]}


class AbuseTarget(Server):
    """A server with submission, a customer and hostile tenants."""

    def __init__(self, binary, base, names):
        self.submission = free_port()
        settings = (
            f'[submission]\nlisten = "127.0.0.1:{self.submission}"\n'
            f'[proxy]\nnetworks = ["{BALANCER}/32"]\n'
            "[delivery]\npaused = true\n"
            "[webhooks]\nallow_http = true\nallow_private_destinations = true\n"
        )
        super().__init__(binary, base, names, settings)
        # The customer owns the domain that receives mail.
        self.port = self.api
        self.password = self.credential()
        self.tenants = {
            name: self.admin("account", "create", "--email", f"{name}@tenant.example", "--plan", plan)
            for name, plan in (("import", "free"), ("verify", "pro"), ("processor", "scale"))
        }

    def credential(self):
        made = self.call_api("POST", "/smtp-credentials", {"name": "shop"})
        return made["password"]

    def api_key_of(self, tenant):
        return self.tenants[tenant]["api_key"]["secret"]


def abuse_loads(server, args):
    all_of_them = {
        "slow": (slow, (server,)),
        "idle": (idle, (server, args.idle)),
        "guess": (guess, (server,)),
        "zone": (zone, (server,)),
        "processor": (processor, (server, server.api_key_of("processor"))),
        "import": (import_, (server, server.api_key_of("import"))),
        "verify": (verify, (server, server.api_key_of("verify"))),
    }
    return {name: all_of_them[name] for name in args.only or all_of_them}


def drill(args, base):
    names = HostileNames({"dest.example": [("MX", "mx.dest.example")]})
    server = AbuseTarget(os.environ["POSTRIDER"], base, names)
    sampler, server.sampler = server.sampler, None
    before, failed = measure(server, args.seconds)
    at_work = []
    for name, (abuse, of) in abuse_loads(server, args).items():
        process = multiprocessing.Process(target=abuse, args=of, name=name, daemon=True)
        process.start()
        at_work.append(process)
    # Opening many sessions takes some time.
    time.sleep(args.warm_up)
    under, failed_under = measure(server, args.seconds)
    at_rest = [process.name for process in at_work if not process.is_alive()]
    for process in at_work:
        process.kill()
    server.sampler = sampler
    rss, ended = server.rss, server.end()
    names.close()
    faults = failed[:5] + failed_under[:20] + [f"the abuser {name} exited early" for name in at_rest]
    log = server.log.read_text(errors="replace")
    if "panic" in log:
        faults.append("the log contains a panic: " + log[log.index("panic") - 200 :][:600])
    if ended != 0:
        faults.append(f"the server exited with {ended}")
    if max(rss) > args.mib_max:
        faults.append(f"{max(rss):.0f} MiB of memory, limit {args.mib_max}")
    print(f"{'':<8}{'':>8}{'sends':>8}{'p50 ms':>10}{'p99 ms':>10}{'max ms':>10}{'p99 ratio':>12}")
    for way in ("smtp", "api"):
        for when, figures in (("before", before[way]), ("abuse", under[way])):
            ratio = f"{figures['p99'] / before[way]['p99']:.2f}"
            print(f"{way:<8}{when:>8}{figures['count']:>8}{figures['p50']:>10.1f}{figures['p99']:>10.1f}{figures['max']:>10.1f}{ratio:>12}")
    print(f"failed sends: {len(failed)} before the abuse, {len(failed_under)} under abuse")
    print(f"memory: {rss[0]:.0f} MiB at first, {max(rss):.0f} at most, {rss[-1]:.0f} at the end")
    for fault in faults:
        print("FAULT", fault)
    return len(faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="seconds per measurement")
    parser.add_argument("--warm-up", type=int, default=15, help="seconds between the abusers' start and the measurement")
    parser.add_argument("--idle", type=int, default=10_000, help="idle sessions at the MX listener")
    parser.add_argument("--mib-max", type=int, default=1_024, help="limit for the server's memory")
    parser.add_argument("--only", nargs="*", help="the abusers, by name")
    args = parser.parse_args()
    if "POSTRIDER" not in os.environ:
        parser.error("set POSTRIDER to the binary")
    multiprocessing.set_start_method("fork")
    with tempfile.TemporaryDirectory() as base:
        faults = drill(args, Path(base))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
