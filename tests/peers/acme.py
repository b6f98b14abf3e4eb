#!/usr/bin/env python3
"""Tests certificate issuance with Pebble, the ACME test CA of Let's Encrypt.

    tests/peers/acme.py --postrider target/debug/postrider

Flow, once for HTTP-01 and once for TLS-ALPN-01 (if 127.0.0.43:443 can be bound): start Pebble, which rejects some
nonces, its name server, and `postrider serve` with [tls.acme]. The certificate of the submission listener must be
issued by Pebble for all names, and a second start must use it again. Skipped if Pebble is not installed. No traffic
leaves loopback.
"""

import argparse
import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from behind_haproxy import free_ports
from check import START_S, Failed, Skip, program, report_case, run

ADDRESS = "127.0.0.43"
NAMES = ["mx.acme.test", "api.acme.test", "track.acme.test"]
ANY_CERTIFICATE = ssl._create_unverified_context()


def wait_for(what, found):
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if value := found():
                return value
        time.sleep(0.1)
    raise Failed(f"timed out waiting for {what}")


def answers(port, address="127.0.0.1"):
    return lambda: socket.create_connection((address, port), timeout=1).close() or True


@contextlib.contextmanager
def running(command, log, cwd=None):
    environment = dict(os.environ, PEBBLE_VA_NOSLEEP="1", PEBBLE_WFE_NONCEREJECT="5")
    with open(log, "ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=cwd, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(START_S)


def authority_certificate(place, name="IP:127.0.0.1"):
    """The CA of Pebble's own certificate, and that certificate."""
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl = program("openssl")
    run([openssl, "req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca"], cwd=place)
    run([openssl, "req", *ec, "-keyout", "pebble.key", "-out", "pebble.csr", "-subj", "/CN=pebble"], cwd=place)
    (place / "names").write_text(f"subjectAltName={name}\n")
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
    run([openssl, "x509", "-req", "-in", "pebble.csr", *signed, "-out", "pebble.pem"], cwd=place)


def issued_certificate(port):
    """Names of the submission listener's certificate if Pebble issued it."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        with ANY_CERTIFICATE.wrap_socket(plain, server_hostname=NAMES[0]) as tls:
            der = tls.getpeercert(binary_form=True)
    certificate_text = run([program("openssl"), "x509", "-inform", "DER", "-noout", "-issuer", "-ext", "subjectAltName"], given=der)
    return certificate_text if "Pebble" in certificate_text else None


def certificate(binary, way):
    pebble, names = program("pebble"), program("pebble-challtestsrv")
    directory, manage, dns, http, submission, ops, tls = free_ports(7)
    if way == "tls-alpn-01":
        tls = 443
        try:
            socket.create_server((ADDRESS, tls)).close()
        except OSError as error:
            raise Skip(f"{ADDRESS}:443 cannot be bound: {error}") from None
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        place = Path(scratch)
        authority_certificate(place)
        settings = {"listenAddress": f"127.0.0.1:{directory}", "managementListenAddress": f"127.0.0.1:{manage}"}
        settings |= {"certificate": "pebble.pem", "privateKey": "pebble.key", "httpPort": http, "tlsPort": tls}
        (place / "pebble.json").write_text(json.dumps({"pebble": settings}))
        off = [word for flag in ("http01", "https01", "tlsalpn01") for word in (f"-{flag}", "")]
        arguments = ["-dns01", f"127.0.0.1:{dns}", "-management", f"127.0.0.1:{free_ports(1)[0]}"]
        where = ["-defaultIPv4", ADDRESS, "-defaultIPv6", ""]
        stack.enter_context(running([names, *off, *arguments, *where], place / "names.log"))
        command = [pebble, "-config", "pebble.json", "-dnsserver", f"127.0.0.1:{dns}"]
        stack.enter_context(running(command, place / "pebble.log", cwd=place))
        wait_for("Pebble", answers(directory))
        wait_for("its name server", answers(dns))
        listen = f'http_listen = "{ADDRESS}:{http}"\n' if way == "http-01" else ""
        (place / "postrider.toml").write_text(
            f'hostname = "{NAMES[0]}"\ndata_dir = "{place}/data"\n'
            f'[tls.acme]\ndirectory = "https://127.0.0.1:{directory}/dir"\ncontact = "ops@acme.test"\n'
            f'names = "{NAMES[2]}"\nroots = "{place}/ca.pem"\n{listen}'
            f'[submission]\nimplicit_tls = "127.0.0.1:{submission}"\n'
            f'[api]\nlisten = "{ADDRESS}:{tls}"\nbase_url = "https://{NAMES[1]}"\ntls = true\n'
            f'[ops]\nlisten = "127.0.0.1:{ops}"\n'
        )
        serve = [binary, "serve", "--config", str(place / "postrider.toml")]
        log = place / "postrider.log"
        try:
            with running(serve, log):
                certificate_text = wait_for("Pebble's certificate", lambda: issued_certificate(submission))
            missing = [name for name in NAMES if f"DNS:{name}" not in certificate_text]
            if missing:
                raise Failed(f"not for {missing}: {certificate_text}")
            with running(serve, log):
                wait_for("the second start", answers(submission))
                if not issued_certificate(submission):
                    raise Failed("the second start does not use the certificate of the first one")
        except Failed as failed:
            raise Failed(f"{failed}\n{log.read_text()[-3000:]}") from None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--postrider", required=True)
    binary = str(Path(parser.parse_args().postrider).resolve())
    print("Certificates from Pebble:")
    ways = ["http-01", "tls-alpn-01"]
    failed = [way for way in ways if report_case(way, lambda way=way: certificate(binary, way))[1]]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
