#!/usr/bin/env python3
"""Follows the guide "Host it yourself" on a machine that has only been installed, booted by systemd in a container.

    tests/packages/boot.py --postrider target/dist/postrider
    tests/packages/boot.py --postrider … --reuse       with the packages of the last run
    tests/packages/boot.py --postrider … --show        print what the operator sees
    tests/packages/boot.py --postrider … --keep        leave the machine running until Enter is pressed

Flow: build the package in two versions, make a root of Debian's stable release, and boot it by `systemd-nspawn` in a
network of its own. There, the world is this process: Knot has the DNS, Pebble issues certificates, and a scripted mail
host has the owner's mailbox. Ports, addresses and names are those of the guide. The operator types the guide's commands
in a terminal: install, `postrider setup`, paste the records. Then the service is examined: its sandbox, reload,
watchdog, crash, backup and restore, reboot, upgrade, refused upgrade, removal and purge. Last, the guide's second half
is followed: the same by hand. Limits of memory are not tried: the machine has no controller for them.

It differs from the guide in one point: `setup` gets `--acme-directory` and `--acme-roots`, because the authority is not
the public one. It needs root, the tools in `TOOLS`, and the right to mount cgroup2; without one of them it is skipped.
Not part of `tests/run`: it takes some minutes.
"""

import argparse
import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request
from pathlib import Path

from run import PACKAGES, ROOT, SUITE, Failed, build_package, expect, run

sys.path.insert(0, str(ROOT / "tests" / "peers"))
from acme import answers, authority_certificate, running, wait_for  # noqa: E402
from certificates import Certificates  # noqa: E402
from check import Failed as PeerFailed  # noqa: E402
from knot import Knot, Zone  # noqa: E402
from mailhosts import Host, MailHosts  # noqa: E402

ARCHIVE = PACKAGES / f"boot-{SUITE}.tar"
TOOLS = ["cargo-deb", "mmdebstrap", "systemd-nspawn", "nsenter", "unshare", "ip", "pebble", "knotd", "swaks", "openssl"]
# Packages of a new machine, as providers install it.
INCLUDE = "systemd,systemd-sysv,dbus,iproute2,ca-certificates,sudo,curl,openssl,procps"
PATIENCE_S = 90
BOOT_S = 120
# Exit status of systemd-nspawn (EXIT_FORCE_RESTART).
REBOOT_STATUS = 133
# systemd-analyze security: 0 is a service without rights, 10 one with all of them.
EXPOSURE_MAX = 1.5
# The addresses of the guide. Those of the world must be public ones: mail is sent to no others.
MACHINE, GATEWAY = "192.0.2.2", "192.0.2.1"
NAME_SERVER, MAIL_HOST, AUTHORITY = "50.0.0.53", "50.0.0.25", "50.0.0.80"
AUTHORITY_NAME, MANAGEMENT = "acme.authority.org", 15000
DOMAIN, HOSTNAME, OWNER = "example.net", "mx1.example.net", "you@example.org"
ZONES = {
    ".": ["gmail.com. 1 TXT x", "outlook.com. 1 TXT x", "iana.org. 1 TXT x"]
    + [f"{domain}. 1 MX 10 mx.example.org." for domain in ("gmail.com", "outlook.com")],
    "net": [],
    "org": ["example.org. 1 MX 10 mx.example.org.", f"mx.example.org. 1 A {MAIL_HOST}", f"{AUTHORITY_NAME}. 1 A {AUTHORITY}"],
    "arpa": [],
}
RECORD = re.compile(r"^\S+\. \d+ IN [A-Z]+ .+$")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CGROUP = Path("/sys/fs/cgroup")
UNIT = "postrider.service"
VERSIONS = ("0.1.0", "0.1.1")


class World:
    """DNS, certificate authority and the owner's mail host."""

    def __init__(self, place, stack):
        self.place, self.records, self.lock = place, {name: list(lines) for name, lines in ZONES.items()}, threading.Lock()
        for address in (NAME_SERVER, MAIL_HOST, AUTHORITY):
            run("ip", "address", "add", f"{address}/32", "dev", "lo")
        zones = {name: Zone(list(lines), **({} if name == "." else {"signing": None})) for name, lines in ZONES.items()}
        self.knot = Knot(place, zones, NAME_SERVER, 53)
        stack.callback(self.knot.stop)
        (place / "tls").mkdir()
        hosts = MailHosts(25, Certificates(place / "tls", ["mx.example.org"]).contexts)
        self.mailbox = hosts.add(Host(), MAIL_HOST)
        authority_certificate(place, f"DNS:{AUTHORITY_NAME}")
        settings = {"listenAddress": f"{AUTHORITY}:443", "managementListenAddress": f"127.0.0.1:{MANAGEMENT}"}
        settings |= {"certificate": "pebble.pem", "privateKey": "pebble.key", "httpPort": 80, "tlsPort": 443}
        (place / "pebble.json").write_text(json.dumps({"pebble": settings}))
        command = [shutil.which("pebble"), "-config", "pebble.json", "-dnsserver", self.knot.address]
        stack.enter_context(running(command, place / "pebble.log", cwd=place))
        wait_for("Pebble", answers(443, AUTHORITY))

    def publish(self, lines):
        """Adds the lines that the operator pastes into the zone, or orders at the provider of the address."""
        with self.lock:
            for name, records in self.records.items():
                if name != ".":
                    records += [line for line in lines if line.split(" ")[0].endswith(f".{name}.")]
                    self.knot.change(name, list(records))

    def forget(self):
        """Removes what the operator has published."""
        self.records = {name: list(lines) for name, lines in ZONES.items()}

    def authority_root(self):
        """The root certificate that Pebble issues by."""
        local = ssl._create_unverified_context()
        with urllib.request.urlopen(f"https://127.0.0.1:{MANAGEMENT}/roots/0", context=local) as response:
            file = self.place / "issuer.pem"
            file.write_bytes(response.read())
        return file

    def wait_for_mail(self, text):
        wait_for(f"the mail with {text}", lambda: any(text.encode() in each for each in self.mailbox.messages))


class Terminal:
    """A command of the operator, in a terminal."""

    def __init__(self, command, show):
        self.show, self.seen, self.read_to = show, "", 0
        self.output, terminal = pty.openpty()

        def control():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "preexec_fn": control}
        self.process = subprocess.Popen(command, start_new_session=True, **streams)
        os.close(terminal)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while True:
            try:
                data = os.read(self.output, 65536)
            except OSError:
                data = b""
            if not data:
                return
            self.seen += ESCAPES.sub("", data.decode(errors="replace")).replace("\r", "")
            if self.show:
                sys.stdout.buffer.write(data)
                sys.stdout.flush()

    def expect(self, text):
        """Waits for a text after the last one, and returns what stands before it."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.seen.find(text, self.read_to)) < 0:
            if time.monotonic() > deadline or (self.process.poll() is not None and not self.reader.is_alive()):
                if self.seen.find(text, self.read_to) < 0:
                    raise Failed(f"{text!r} was not printed:\n{self.seen[-5000:]}")
            time.sleep(0.02)
        before, self.read_to = self.seen[self.read_to : found], found + len(text)
        return before

    def answer(self, line):
        os.write(self.output, f"{line}\n".encode())

    def end(self, status=0):
        found = self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        os.close(self.output)
        expect(found == status, f"exit status {found} instead of {status}:\n{self.seen[-5000:]}")
        return self.seen


class Machine:
    """A booted root. Its commands run as in a login of root."""

    def __init__(self, root, log, show):
        self.root, self.log_file, self.show, self.typed = root, log, show, 0
        self.start()

    def start(self):
        with self.log_file.open("ab") as out:
            command = ["systemd-nspawn", "--boot", "--register=no", "--keep-unit", "--network-veth", "--resolv-conf=off"]
            command += ["--timezone=off", "--console=pipe", "--machine=mx1", f"--directory={self.root}"]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        # The link is a new one at each boot.
        wait_for("the network", lambda: "ve-mx1" in run("ip", "-brief", "link"))
        run("ip", "address", "add", f"{GATEWAY}/24", "dev", "ve-mx1")
        run("ip", "link", "set", "ve-mx1", "up")
        self.wait_until_booted()

    def leader(self):
        """The process id of its systemd."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = children.read_text().split() if self.process.poll() is None else []
        expect(found, "the machine is not running")
        return found[0]

    def wait_until_booted(self):
        until = time.monotonic() + BOOT_S
        state = ""
        while state not in ("running", "degraded"):
            expect(time.monotonic() < until, f"the machine does not boot: {state}")
            time.sleep(0.2)
            with contextlib.suppress(Failed):
                state = self.output("systemctl is-system-running || true").strip()
        expect(state == "running", f"units have failed: {self.output('systemctl --failed')}")

    def enter(self, line):
        environment = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        environment += ["TERM=xterm", "LANG=C.UTF-8", "HOME=/root", "SYSTEMD_PAGER=cat"]
        spaces = ["nsenter", "--target", self.leader(), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"]
        return [*spaces, "--root", "--", *environment, "sh", "-c", f"cd /root && {line}"]

    def output(self, line, ok=True):
        """The output of a command of this test."""
        return run(*self.enter(line), ok=ok)

    def type(self, line):
        """Types a command of the guide."""
        self.typed += len(line) + 1
        if self.show:
            print(f"# {line}", flush=True)
        return Terminal(self.enter(line), self.show)

    def do(self, line, status=0):
        return self.type(line).end(status)

    def property(self, name):
        return self.output(f"systemctl show --property={name} --value {UNIT}").strip()

    def pid(self):
        return self.property("MainPID")

    def log(self):
        return self.output(f"journalctl --unit={UNIT} --no-pager --output=cat")

    def wait_for_service(self, other_than=None):
        """Waits until the service has started, with another process than that one, and returns its id."""

        def started():
            shown = self.output(f"systemctl show --property=ActiveState,MainPID {UNIT}")
            found = dict(line.split("=", 1) for line in shown.splitlines())
            return found["ActiveState"] == "active" and found["MainPID"] not in ("0", other_than) and found["MainPID"]

        return wait_for("the service", started)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(BOOT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Stage:
    """The machine, the world, the packages, and the secrets that the operator has got."""

    def __init__(self, machine, world, packages):
        self.machine, self.world, self.packages = machine, world, packages
        self.secrets, self.notes = {}, []

    def note(self, text):
        self.notes.append(text)
        print(f"    {text}", flush=True)

    def send(self, subject, port=587):
        """A program on another machine sends by SMTP, with a checked certificate."""
        root = self.world.authority_root()
        tls = ["--tlsc"] if port == 465 else ["--tls"]
        command = ["swaks", "--server", MACHINE, "--port", port, *tls, "--tls-verify", "--tls-ca-path", root]
        command += ["--tls-sni", HOSTNAME, "--auth", "PLAIN", "--auth-user", self.secrets["SMTP_USERNAME"]]
        command += ["--auth-password", self.secrets["SMTP_PASSWORD"], "--from", f"you@{DOMAIN}", "--to", OWNER]
        run(*command, "--header", f"Subject: {subject}", "--body", "Hello")
        self.world.wait_for_mail(subject)


def install(stage):
    """1. Install it."""
    machine = stage.machine
    text = machine.do(f"sudo apt install ./{stage.packages[0].name}")
    expect("postrider setup" in text, f"the installation does not say what to do next:\n{text}")
    expect(machine.output(f"systemctl is-enabled {UNIT}").strip() == "enabled", "the service does not start at boot")
    expect(machine.property("ActiveState") == "inactive", "the service runs without a configuration")
    machine.output(f"systemctl start {UNIT}")
    expect(machine.property("ActiveState") == "inactive", "without a configuration, the service is not skipped")


def set_up(stage):
    """2. Set it up."""
    machine, world, began = stage.machine, stage.world, time.monotonic()
    words = f"--acme-directory https://{AUTHORITY_NAME}/dir --acme-roots /etc/ssl/authority.pem"
    terminal = machine.type(f"sudo postrider setup {words}")
    machine.typed -= len(words)

    def reply(prompt, line):
        terminal.expect(prompt)
        terminal.answer(line)
        machine.typed += len(line) + 1

    reply("Hostname", HOSTNAME)
    reply(f"Sending domain [{DOMAIN}]:", "")
    reply("Your email address:", OWNER)
    reply("Receive mail", "no")
    reply("Continue? yes or no [yes]:", "")
    terminal.expect("Starting postrider.service")
    secrets = terminal.expect("Added the domain")
    stage.secrets = dict(re.findall(r"^\s*(?:POSTRIDER_)?([A-Z_]+)=(\S+)$", secrets, re.MULTILINE))
    block = terminal.expect("Waiting until the records are published")
    lines = [line for line in block.splitlines() if RECORD.match(line)]
    expect(lines, f"no records were printed:\n{block}")
    world.publish(lines)
    terminal.expect("is valid until")
    terminal.expect("Delivered. Look for it")
    terminal.expect("Setup is complete")
    terminal.end()
    stage.note(f"setup took {time.monotonic() - began:.0f} s; until here the operator typed {machine.typed} characters")
    sender = f"postrider@{DOMAIN}".encode()
    expect(any(sender in each and b"DKIM-Signature" in each for each in world.mailbox.messages), "the test email is not signed")


def send(stage):
    """Send a mail to yourself: by SMTP and by the API."""
    stage.send("by STARTTLS", 587)
    stage.send("by TLS", 465)
    machine = stage.machine
    shutil.copy(stage.world.authority_root(), machine.root / "etc/ssl/issuer.pem")
    body = json.dumps({"from": f"you@{DOMAIN}", "to": OWNER, "subject": "by the API", "text": "Sent by my own server"})
    headers = f"-H 'Authorization: Bearer {stage.secrets['API_KEY']}' -H 'Content-Type: application/json'"
    text = machine.do(f"curl -sS --cacert /etc/ssl/issuer.pem https://{HOSTNAME}/emails {headers} -d '{body}'")
    found = re.search(r"msg_\w+", text)
    expect(found, f"the API does not accept the email:\n{text}")
    stage.world.wait_for_mail("by the API")
    wait_for("the trace", lambda: "taken" in machine.do(f"sudo postrider admin trace {found[0]}"))


def sandbox(stage):
    """The service's rights."""
    machine = stage.machine
    text = machine.do("systemctl status postrider")
    expect("active (running)" in text and "enabled" in text, f"the status is:\n{text}")
    status = dict(line.split(":\t", 1) for line in machine.output(f"cat /proc/{machine.pid()}/status").splitlines() if ":\t" in line)
    expect("0" not in status["Uid"].split(), f"the service runs as root: {status['Uid']}")
    expect(int(status["CapEff"], 16) == 1 << 10, f"capabilities: {status['CapEff']}")
    expect((status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), "no filter of system calls")
    listening = machine.output("ss -Hltn")
    expect(all(f":{port} " in listening for port in (25, 465, 587, 443)), f"ports are missing:\n{listening}")
    inside = f"nsenter --target {machine.pid()} --mount"
    for path in ("/etc", "/usr", "/var/lib", "/var/log", "/home", "/root", "/srv"):
        text = machine.output(f"{inside} touch {path}/file", ok=False)
        expect("Read-only" in text, f"{path}: {text}")
    for path in ("/var/lib/postrider", "/run/postrider", "/tmp"):
        machine.output(f"{inside} touch {path}/file && {inside} rm {path}/file")
    level = float(machine.output(f"systemd-analyze security {UNIT}").split("Overall exposure level for ")[1].split()[1])
    expect(level <= EXPOSURE_MAX, f"systemd-analyze security: {level}")
    stage.note(f"exposure by systemd-analyze security: {level}")
    expect("0 failed" in machine.do("sudo postrider doctor"), "doctor finds something")


def reload(stage):
    """Reload, and a refused one."""
    machine, pid = stage.machine, stage.machine.pid()
    file = machine.root / "etc/postrider/postrider.toml"
    good = file.read_text()
    changed = good.replace("[submission]\n", "[submission]\nrecipients_max = 55\n")
    file.write_text(changed)
    machine.do("sudo systemctl reload postrider")
    wait_for("the reload", lambda: "applied=submission.recipients_max" in machine.log())
    file.write_text(changed + "[nonsense]\nkey = 1\n")
    machine.do("sudo systemctl reload postrider", status=1)
    expect("`nonsense` is not a key" in machine.log(), "the log does not name the problem")
    expect(machine.property("ActiveState") == "active", "a refused reload ends the service")
    file.write_text(good)
    machine.do("sudo systemctl reload postrider")
    wait_for("the second reload", lambda: machine.log().count("applied=submission.recipients_max") == 2)
    expect(machine.pid() == pid, "a reload restarts the server")


def recover(stage):
    """Hangs and crashes."""
    machine = stage.machine
    pid = machine.wait_for_service()
    machine.output(f"kill -STOP {pid}")
    pid = machine.wait_for_service(other_than=pid)
    expect("Watchdog timeout" in machine.log(), "the watchdog did nothing")
    machine.output(f"kill -KILL {pid}")
    machine.wait_for_service(other_than=pid)
    expect(machine.property("NRestarts") == "2", f"restarts: {machine.property('NRestarts')}")
    pid = machine.pid()
    machine.do("sudo systemctl restart postrider")
    expect(machine.pid() != pid, "the service was not restarted")
    machine.do("sudo postrider status")


def operator_commands(text, count):
    """The commands of a part of a guide."""
    commands = [line.strip() for line in text.splitlines() if line.strip().startswith("sudo ")]
    expect(len(commands) == count, f"the guide has other commands: {commands}")
    return commands


def back_up(stage):
    """Back up and restore (the guide)."""
    machine = stage.machine
    guide = (ROOT / "docs/user/backup.md").read_text()
    machine.do("sudo postrider admin backup ./postrider.backup")
    # The job for every night.
    job = re.search(r"```sh\n(#!/bin/sh\n.*?)```", guide, re.DOTALL)[1]
    (machine.root / "root/job").write_text(job)
    machine.output("sh ./job")
    found = machine.output("stat --format='%U %a' postrider.backup /var/backups/postrider-*.backup; ls -A /var/lib/postrider")
    expect(found.startswith("root 600\nroot 600\n") and "backup-" not in found, f"files of the backup: {found}")
    machine.do("sudo postrider admin --data-dir ./restored restore ./postrider.backup")
    machine.do("sudo postrider admin --data-dir ./restored store check")
    machine.output("cp /var/lib/postrider/secret.key .")
    commands = operator_commands(guide.split("## Restore")[1], 9)
    machine.output("cp postrider.backup /var/backups/postrider-2026-11-26.backup")
    for command in commands:
        machine.do(command)
    expect("ok" in machine.do("sudo postrider status"), "the restored server has problems")
    stage.send("after the restore")
    # A new machine has a key before it has a data directory.
    machine.do("sudo systemctl stop postrider")
    machine.output("rm -rf /var/lib/postrider /var/lib/private/postrider")
    for command in commands[2:]:
        machine.do(command)
    stage.send("on the new machine")


def reboot(stage):
    """Reboot."""
    machine = stage.machine
    machine.output("systemctl reboot")
    # With --keep-unit, systemd-nspawn leaves the second boot to whoever started it.
    expect(machine.process.wait(BOOT_S) == REBOOT_STATUS, f"systemd-nspawn ends with {machine.process.returncode}")
    machine.start()
    machine.wait_for_service()
    stage.send("after the reboot")


def upgrade(stage):
    """Upgrade, and a refused one."""
    machine, pid = stage.machine, stage.machine.pid()
    first, second = (package.name for package in stage.packages)
    started = time.monotonic()
    machine.do(f"sudo apt install ./{second}")
    stage.note(f"the upgrade took {time.monotonic() - started:.0f} s")
    version = lambda: machine.output("dpkg-query -W -f '${Version} ${Status}' postrider")
    expect(version() == "0.1.1-1 install ok installed", f"installed: {version()}")
    machine.wait_for_service(other_than=pid)
    stage.send("after the upgrade")

    pid, file = machine.pid(), machine.root / "etc/postrider/postrider.toml"
    good = file.read_text()
    file.write_text(good + "[nonsense]\nkey = 1\n")
    text = machine.do(f"sudo apt install --yes --allow-downgrades ./{first}", status=100)
    expect("nonsense" in text and "Nothing was changed" in text, f"the refusal gives no reason:\n{text}")
    expect(version() == "0.1.1-1 install ok installed", f"a refused upgrade leaves {version()}")
    expect(machine.pid() == pid, "a refused upgrade restarts the server")
    file.write_text(good)
    stage.send("after the refusal")


def remove(stage):
    """Removal, new installation, and purge."""
    machine = stage.machine
    machine.do("sudo apt remove --yes postrider")
    expect(machine.property("ActiveState") == "inactive", "the service runs after its removal")
    machine.do(f"sudo apt install ./{stage.packages[1].name}")
    machine.output(f"systemctl start {UNIT}")
    stage.send("after the new installation")
    machine.do("sudo apt purge --yes postrider")
    expect(not (machine.root / "etc/postrider").exists(), "purge leaves the configuration")
    expect((machine.root / "var/lib/private/postrider/store").exists(), "purge removes mail")
    expect(not machine.output("find /etc/systemd /var/lib/systemd -name '*postrider*'").strip(), "purge leaves the unit's state")
    expect(not machine.output("systemctl --failed --quiet").strip(), "a unit has failed")


def by_hand(stage):
    """By hand (the second half of the guide)."""
    machine, world = stage.machine, stage.world
    machine.output("rm -rf /var/lib/postrider /var/lib/private/postrider")
    machine.do(f"sudo apt install ./{stage.packages[1].name}")
    guide = (ROOT / "docs/user/self-hosting.md").read_text().split("### Name the machine")[1]
    block = re.search(r"```text\n(.*?)```", guide, re.DOTALL)[1]
    world.forget()
    world.publish([re.sub(r"^(\S+)\s+", r"\1 ", line) for line in block.splitlines()])
    world.publish([f"2.2.0.192.in-addr.arpa. PTR {HOSTNAME}."])
    configuration = (ROOT / "docs/user/configuration.md").read_text().split("## A small server")[1]
    block = re.search(r"```toml\n(.*?)```", configuration, re.DOTALL)[1]
    authority = f'directory = "https://{AUTHORITY_NAME}/dir"\nroots = "/etc/ssl/authority.pem"\n'
    directory = machine.root / "etc/postrider"
    directory.mkdir()
    (directory / "postrider.toml").write_text(block.replace("[tls.acme]\n", f"[tls.acme]\n{authority}"))
    machine.do("postrider check")
    text = machine.do("postrider doctor")
    expect("- port_25_in" in text, f"doctor tries port 25 before the start:\n{text}")
    machine.do("sudo systemctl enable --now postrider")
    text = machine.do(f"sudo postrider admin account create --email you@{DOMAIN} --production")
    stage.secrets = {"SMTP_USERNAME": "postrider", "SMTP_PASSWORD": re.search(r"stxsmtp_\w+", text)[0]}
    text = machine.do(f"sudo postrider admin domain create {DOMAIN} --account you@{DOMAIN}")
    records = re.findall(r"type: (\w+)\n\s+name: (\S+)\n\s+value: (.+)\n", text)
    expect(len(records) == 6, f"records of the domain:\n{text}")
    world.publish([f"{name}. {kind} {zone_data(kind, value)}" for kind, name, value in records])
    expect("status: verified" in machine.do(f"sudo postrider admin domain verify {DOMAIN}"), "the domain is not verified")
    machine.output("postrider admin certificate --order")
    wait_for("the certificate", lambda: "problem" not in machine.output("postrider status || true"))
    stage.send("set up by hand")


def zone_data(kind, value):
    """The data of a record in a zone file. A string of a TXT record has at most 255 bytes."""
    if kind != "TXT":
        return f"{value}."
    return " ".join(f'"{value[at : at + 255]}"' for at in range(0, len(value), 255))


TESTS = [install, set_up, sandbox, send, reload, recover, back_up, reboot, upgrade, remove, by_hand]


def fetch_debian():
    """Fetches Debian, once. The network of the test has no way to a mirror, so this comes before `enter_namespaces`."""
    if not ARCHIVE.exists():
        PACKAGES.mkdir(parents=True, exist_ok=True)
        unfinished = ARCHIVE.with_suffix(".new.tar")
        run("mmdebstrap", "--variant=minbase", f"--include={INCLUDE}", SUITE, unfinished)
        unfinished.rename(ARCHIVE)


def prepare_root(root, packages, world_certificate):
    """Unpacks Debian and gives it a network."""
    root.mkdir()
    run("tar", "-xpf", ARCHIVE, "--numeric-owner", "-C", root)
    (root / "etc/resolv.conf").write_text(f"nameserver {NAME_SERVER}\n")
    (root / "etc/hostname").write_text("machine\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 machine\n::1 localhost\n")
    network = root / "etc/systemd/network/10-host0.network"
    network.write_text(f"[Match]\nName=host0\n[Network]\nAddress={MACHINE}/24\nGateway={GATEWAY}\n")
    run("systemctl", f"--root={root}", "enable", "systemd-networkd.service")
    shutil.copy(world_certificate, root / "etc/ssl/authority.pem")
    for package in packages:
        shutil.copy(package, root / "root")


def enter_namespaces():
    """Own mounts and network, and a cgroup for the machine in the unified hierarchy, which systemd needs alone."""
    if os.environ.get("BOOT_IN_NAMESPACES") != "1":
        command = ["unshare", "--mount", "--net", sys.executable, *sys.argv]
        os.execvpe("unshare", command, {**os.environ, "BOOT_IN_NAMESPACES": "1"})
    run("mount", "--make-rprivate", "/")
    run("ip", "link", "set", "lo", "up")
    # systemd-nspawn removes what it has there at a reboot, if it is in memory only.
    nspawn = Path("/run/systemd/nspawn")
    nspawn.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "none", nspawn)
    if not (CGROUP / "cgroup.controllers").exists():
        run("umount", "--recursive", "--lazy", CGROUP)
        run("mount", "-t", "cgroup2", "none", CGROUP)
    own = CGROUP / f"postrider-boot-{os.getpid()}"
    own.mkdir()
    (own / "cgroup.procs").write_text(str(os.getpid()))
    return own


def remove_cgroup(own):
    """Removes the machine's cgroups, which are empty after its end."""
    (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
    for directory, _, _ in sorted(os.walk(own), reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(directory)


def built_packages(binary, reuse):
    """Two versions of the package."""
    files = [PACKAGES / f"postrider_{version}_amd64.deb" for version in VERSIONS]
    if reuse and all(file.exists() for file in files):
        return files
    return [build_package(binary, version) for version in VERSIONS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--postrider", required=True, type=Path)
    parser.add_argument("--reuse", action="store_true", help="use the packages of the last run")
    parser.add_argument("--show", action="store_true", help="print what the operator sees")
    parser.add_argument("--keep", action="store_true", help="leave the machine running until Enter is pressed")
    args = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        print(f"boot: skipped: {', '.join(missing)} is missing")
        return 0
    if os.geteuid() != 0:
        print("boot: skipped: it needs root")
        return 0
    if subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True).returncode:
        print("boot: skipped: this machine permits no mounts or cgroups")
        return 0
    try:
        fetch_debian()
    except Failed as failure:
        print(f"boot: failed: Debian cannot be fetched: {failure}")
        return 1
    try:
        own = enter_namespaces()
    except (Failed, OSError) as error:
        print(f"boot: skipped: this machine permits no mounts or cgroups: {error}")
        return 0
    # A signal ends the machine, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    binary = args.postrider.resolve()
    packages = built_packages(binary, args.reuse)
    failed = False
    # A directory on a disk: the setup refuses one in memory.
    with tempfile.TemporaryDirectory(dir=PACKAGES, prefix="boot-") as scratch, contextlib.ExitStack() as stack:
        place = Path(scratch)
        (place / "world").mkdir()
        world = World(place / "world", stack)
        prepare_root(place / "root", packages, world.place / "ca.pem")
        machine = Machine(place / "root", place / "console.log", args.show)
        stack.callback(machine.stop)
        stage = Stage(machine, world, packages)
        for test in TESTS:
            started = time.monotonic()
            try:
                test(stage)
                print(f"  {test.__doc__:<58} passed ({time.monotonic() - started:.0f} s)", flush=True)
            except (Failed, PeerFailed) as failure:
                print(f"  {test.__doc__:<58} failed: {failure}", flush=True)
                with contextlib.suppress(Failed):
                    print(machine.output("journalctl --lines=30 --no-pager"), flush=True)
                failed = True
                break
        if args.keep:
            print(f"The machine runs: nsenter -a -t {machine.leader()}. Press Enter to end it.", flush=True)
            sys.stdin.readline()
    remove_cgroup(own)
    print("boot: failed" if failed else "boot: passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
