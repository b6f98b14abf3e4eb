"""postrider's release build in a private data directory.

All settings but ports, sessions per address (all load comes from one address) and those that a row needs have their
defaults. The account, its domain and its SMTP credential are created with `postrider admin`.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import machine
import report

RELAY = ("127.0.0.1", 3525)
MX = ("127.0.0.1", 3526)
SUBMISSION = ("127.0.0.1", 3587)
API = ("127.0.0.1", 3025)
OPS = ("127.0.0.1", 3026)
# Rows with DKIM signatures, and rows whose mail is held.
SIGNED = ("dkim", "post")
HELD = ("accept", "post-held", "batch-held")
# Rows with inbound mail.
INBOUND = ("inbound", "inbound-large", "inbound-idle")
# Rows that deliver to the recipients' own hosts, and one with a second sending account.
DIRECT = ("domains", "many-domains", "dead-destination", "tarpits", "newsletters")
TWO_ACCOUNTS = ("newsletters",)
OWNER, DOMAIN = "owner@bench.test", "bench.test"
OTHER, OTHER_DOMAIN = "other@bench.test", "other.bench.test"
OTHER_RELAY = ("127.0.0.1", 3527)
HEALTHY_S_MAX = 60
PLAN = ("--plan", "dedicated", "--production")


class Postrider:
    name = "postrider"
    relay = RELAY
    mx = MX
    submission = SUBMISSION
    api = API
    other_relay = OTHER_RELAY
    other_sender = f"sender@{OTHER_DOMAIN}"

    def __init__(self, context, work, variant=""):
        self.directory = context.base / f"postrider-{work}-{variant}{context.round}"
        self.config = self.directory / "postrider.toml"
        self.context = context
        self.work = work
        self.process = None
        self.paused = work in HELD
        self.login = self.key = self.account = None
        self.roots = []

    def start(self):
        self.directory.mkdir()
        self.config.write_text(self.settings())
        self.launch()
        try:
            machine.wait_until(self.ready, "postrider")
            account = self.admin("account", "create", "--email", OWNER, *PLAN)
            self.admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")
            if self.work in TWO_ACCOUNTS:
                self.admin("account", "create", "--email", OTHER, *PLAN)
                self.admin("domain", "create", OTHER_DOMAIN, "--account", OTHER, "--verified")
            self.account = account["account"]["id"]
            credential = account["smtp_credential"]
            self.login = (credential["username"], credential["password"])
            self.key = account["api_key"]["secret"]
            if self.work in INBOUND:
                [domain] = self.api_call("GET", "/domains")["domains"]
                self.api_call("PATCH", f"/domains/{domain['id']}", {"inbound_enabled": True})
            machine.wait_for_port(*RELAY, "postrider")
        except machine.Failure as failure:
            raise machine.Failure(f"{failure}\n{self.last_log_lines()}") from None

    def launch(self):
        with (self.directory / "log").open("ab") as log:
            command = [os.environ["POSTRIDER"], "serve", "--config", self.config]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.roots = [self.process.pid]

    def launch_timed(self):
        """Starts the server. Returns the seconds until /healthz returns 200."""
        started_at = time.monotonic()
        self.launch()
        while time.monotonic() < started_at + HEALTHY_S_MAX:
            try:
                with urllib.request.urlopen("http://{}:{}/healthz".format(*OPS), timeout=HEALTHY_S_MAX):
                    return time.monotonic() - started_at
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.001)
        raise machine.Failure(f"/healthz did not return 200 within {HEALTHY_S_MAX} s\n{self.last_log_lines()}")

    def reload(self, paused):
        """Reloads the configuration with delivery paused or not."""
        self.paused = paused
        self.config.write_text(self.settings())
        os.kill(self.process.pid, signal.SIGHUP)

    def first_attempt_p99_ms(self, kind):
        """99th percentile of the time to the first attempt of a class, from /metrics."""
        with urllib.request.urlopen("http://{}:{}/metrics".format(*OPS), timeout=30) as answer:
            text = answer.read().decode()
        found = re.search(rf'^postrider_first_attempt_seconds{{class="{kind}",quantile="0.99"}} (\S+)$', text, re.M)
        return float(found[1]) * 1000 if found else float("nan")

    def ready(self):
        if self.process.poll() is not None:
            raise machine.Failure(f"postrider serve exited with {self.process.returncode}")
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.data_directory() / "admin.sock")) == 0

    def last_log_lines(self):
        return (self.directory / "log").read_text(errors="replace")[-2000:]

    def admin(self, *words):
        command = [os.environ["POSTRIDER"], "admin", "--config", self.config, *words, "--json"]
        return json.loads(machine.run_quietly(command) or "null")

    def api_call(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else None
        url = "http://{}:{}{}".format(*API, path)
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30) as answer:
                return json.load(answer)
        except OSError as error:
            raise machine.Failure(f"{method} {path}: {error}") from None

    def judged(self):
        """Authentication results of the one received email."""
        [email] = self.api_call("GET", "/received-emails")["received_emails"]
        return {check: result == "pass" for check, result in email["auth"].items()}

    def settings(self):
        delivery = ["allow_private_destinations = true"]
        if self.work in DIRECT:
            delivery.append("port = {}".format(self.context.sink[1]))
        else:
            delivery.append('smarthost = "{}:{}"'.format(*self.context.sink))
        if self.paused:
            delivery.append("paused = true")
        if self.work not in SIGNED:
            delivery.append("dkim = false")
        lines = [
            'hostname = "mx.bench.test"',
            f'data_dir = "{self.data_directory()}"',
            "[tls]",
            f'certificate = "{self.context.base / "cert.pem"}"',
            f'private_key = "{self.context.base / "key.pem"}"',
            "[submission]",
            'listen = ["{}:{}"]'.format(*SUBMISSION),
            "sessions_per_address_max = 10000",
            # A relay listener has a fifth of them, the MX listener two fifths.
            *(["sessions_max = 30000"] if self.work in report.IDLE else []),
            "[mx]",
            'listen = ["{}:{}"]'.format(*MX),
            "sessions_per_address_max = 10000",
            *relay(RELAY, OWNER),
            *(relay(OTHER_RELAY, OTHER) if self.work in TWO_ACCOUNTS else ()),
            "[api]",
            'listen = "{}:{}"'.format(*API),
            'rate_limit = "off"',
            "[ops]",
            'listen = "{}:{}"'.format(*OPS),
            "[dns]",
            'servers = ["{}:{}"]'.format(*self.context.names.address),
            "[delivery]",
            *delivery,
        ]
        return "\n".join(lines) + "\n"

    def memory_bytes(self):
        return machine.memory_bytes(self.roots)

    def peak_bytes(self):
        return machine.peak_bytes(self.process.pid)

    def data_directory(self):
        return self.directory / "data"

    def end(self):
        if self.process:
            machine.stop(self.roots)
            self.process.wait()
            self.process = None

    def stop(self):
        self.end()
        if not self.context.args.keep:
            shutil.rmtree(self.directory, ignore_errors=True)


def relay(address, account):
    return ["[[relay]]", 'listen = ["{}:{}"]'.format(*address), 'networks = ["127.0.0.0/8"]', f'account = "{account}"']
