"""Knot with signed zones, all on one port, queried like a resolver.

    Knot(place, {".": Zone(["…"]), "test": Zone(["…"]), "plain.test": Zone(["…"], signing=None)})

Flow: a first Knot signs the zones and writes them to files; records are broken in these files; a second Knot serves the
files unchanged. Each zone is delegated to by its nearest parent zone, with a DS of its key. `anchors` is a file with
the root's key.
"""

import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from check import START_S, Failed, program, run
from receiving import free_port, until

SOA = "@ 1 SOA ns.test. hostmaster.test. {serial} 3600 600 86400 1\n@ 1 NS ns.test.\n"
SIGNING = {
    "nsec": [],
    "nsec3": ["nsec3: on", "nsec3-opt-out: on"],
    # Signatures that expire before they are queried.
    "brief": ["rrsig-lifetime: 3", "rrsig-refresh: 2", "rrsig-pre-refresh: 0", "propagation-delay: 0"],
}
BRIEF_S = 4


@dataclass
class Zone:
    """Lines of a zone file, how they are signed, and how they are changed afterwards."""

    lines: list = field(default_factory=list)
    signing: str | None = "nsec"
    ds_fits: bool = True
    breaking: Callable = lambda lines: lines
    # A zone without contents answers every query with SERVFAIL.
    is_lost: bool = False


class Knot:
    def __init__(self, place, zones, host="127.0.0.1", port=None):
        self.place, self.zones, self.host, self.port, self.serial = place, zones, host, port or free_port(), 1
        self.programs = {name: program(name) for name in ("knotd", "knotc", "keymgr")}
        self.address = f"{host}:{self.port}"
        self.process = None
        (place / "keys").mkdir()
        self.sign()
        self.started = time.monotonic()
        for name, zone in zones.items():
            if zone.signing:
                file = self.file(name)
                file.write_text("".join(zone.breaking(file.read_text().splitlines(keepends=True))))
        self.start(self.write_configuration(signs=False))
        until(self.answers, f"Knot ({self.place / 'knot.log'})", START_S)

    def sign(self):
        configuration = self.write_configuration(signs=True)
        signed = [name for name, zone in self.zones.items() if zone.signing]
        for name in signed:
            self.keymgr(name, "generate", "algorithm=ecdsap256sha256", "ksk=yes", "zsk=yes")
        for name in self.zones:
            if name != ".":
                above = max((other for other in self.zones if is_below(name, other)), key=len)
                self.zones[above].lines += self.delegation(name)
        self.anchors = self.place / "anchors"
        self.anchors.write_text(self.keymgr(".", "dnskey").replace(" DNSKEY", " 3600 IN DNSKEY"))
        for name in self.zones:
            self.write(name)
        self.start(configuration)
        until(lambda: all("RRSIG\tSOA" in self.file(name).read_text() for name in signed), "signatures", START_S)
        self.stop()

    def delegation(self, name):
        lines = [f"{name}. 1 NS ns.test."]
        if self.zones[name].signing:
            ds = next(line for line in self.keymgr(name, "ds").splitlines() if " 13 2 " in line)
            lines.append(ds.replace(" DS", " 1 DS") if self.zones[name].ds_fits else ds[:-8].replace(" DS", " 1 DS") + "00000000")
        return lines

    def write(self, name):
        if not self.zones[name].is_lost:
            lines = "\n".join(self.zones[name].lines)
            self.file(name).write_text(f"$ORIGIN {name.rstrip('.')}.\n{SOA.format(serial=self.serial)}{lines}\n")

    def change(self, name, lines):
        """Replaces the contents of an unsigned zone."""
        self.serial += 1
        self.zones[name].lines = lines
        self.write(name)
        self.knotc("-b", "zone-reload", name)

    def lose(self, name):
        """Makes the zone answer every query with SERVFAIL."""
        self.file(name).unlink()
        self.knotc("-b", "-f", "zone-purge", "+expire", name)

    def signatures_are_over(self):
        """Waits until the signatures of brief zones have expired."""
        until(lambda: time.monotonic() > self.started + BRIEF_S, "the expiry of signatures")

    def write_configuration(self, signs):
        policies = "".join(
            f"  - id: {name}\n    algorithm: ecdsap256sha256\n    single-type-signing: on\n    manual: on\n"
            + "".join(f"    {option}\n" for option in options)
            for name, options in SIGNING.items()
        )
        zones = "".join(
            f'  - domain: "{name}"\n    file: "{self.file(name)}"\n'
            + (f"    dnssec-signing: on\n    dnssec-policy: {zone.signing}\n" if signs and zone.signing else "")
            for name, zone in self.zones.items()
        )
        configuration = self.place / ("signing.conf" if signs else "serving.conf")
        configuration.write_text(
            f'server:\n    listen: {self.host}@{self.port}\n    rundir: "{self.place}"\n'
            f'    udp-workers: 1\n    tcp-workers: 1\n    background-workers: 1\n'
            f'database:\n    storage: "{self.place / "keys"}"\npolicy:\n{policies}'
            f"template:\n  - id: default\n    journal-content: none\nzone:\n{zones}"
        )
        return configuration

    def file(self, name):
        return self.place / f"zone.{name}"

    def keymgr(self, *words):
        return run([self.programs["keymgr"], "-c", self.place / "signing.conf", *words])

    def knotc(self, *words):
        return run([self.programs["knotc"], "-s", self.place / "knot.sock", *words])

    def start(self, configuration):
        with (self.place / "knot.log").open("ab") as log:
            self.process = subprocess.Popen([self.programs["knotd"], "-c", configuration], stdout=log, stderr=log)

    def answers(self):
        if self.process.poll() is not None:
            raise Failed(f"Knot ended: {(self.place / 'knot.log').read_text()[-1500:]}")
        try:
            return "serial" in self.knotc("zone-status", ".")
        except Failed:
            return False

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(START_S)
            self.process = None


def is_below(name, other):
    return other == "." or name.endswith("." + other)
