"""The server whose pages are measured: `postrider serve` with a store that can be kept.

The server's clock starts at the real time and is moved ahead while the store is filled (`[testing] clock_offset`), so
that a minute of work becomes weeks of mail. Mail goes to the receivers (page_receivers.py) as the smarthost. All
listeners are on loopback.
"""

import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.request

import machine

OWNER = "owner@bench.test"
PROCESSOR_SECRET = "whsec_of_the_page_benchmark"
SENDERS = [f"s{n}.bench.test" for n in range(8)]
UNTRACKED = 2
SESSION_S = 600
TRIES_MAX = 20


class PageServer:
    """Ports: API, operations, MX, then those of the receivers."""

    def __init__(self, binary, directory, port):
        self.binary = binary
        self.directory = directory
        self.api = ("127.0.0.1", port)
        self.ops = ("127.0.0.1", port + 1)
        self.mx = ("127.0.0.1", port + 2)
        self.sink = ("127.0.0.1", port + 3)
        self.hooks = ("127.0.0.1", port + 4)
        self.names = ("127.0.0.1", port + 5)
        self.config = directory / "postrider.toml"
        self.process = None
        self.key = None
        self.cookie, self.cookie_at = None, 0.0
        self.local = threading.local()
        self.ahead_s = 0

    def start(self):
        """Starts the server. Returns the seconds until /healthz returns 200."""
        self.config.write_text(self.settings())
        started_at = time.monotonic()
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen([self.binary, "serve", "--config", self.config], stdout=log, stderr=log)
        while time.monotonic() < started_at + 300:
            try:
                with urllib.request.urlopen("http://{}:{}/healthz".format(*self.ops), timeout=60):
                    if self.process.poll() is not None:
                        raise machine.Failure("another server has the ports: see --port")
                    self.local, self.cookie = threading.local(), None
                    return time.monotonic() - started_at
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.005)
        raise machine.Failure(f"postrider serve did not start\n{self.last_log_lines()}")

    def stop(self):
        if self.process:
            machine.stop([self.process.pid])
            self.process.wait()
            self.process = None

    def last_log_lines(self):
        return (self.directory / "log").read_text(errors="replace")[-2000:]

    def settings(self):
        lines = [
            'hostname = "mx.bench.test"',
            f'data_dir = "{self.directory / "data"}"',
            "[store]",
            'retention = "90d"',
            "[tls]",
            f'certificate = "{self.directory / "cert.pem"}"',
            f'private_key = "{self.directory / "key.pem"}"',
            "[mx]",
            'listen = ["{}:{}"]'.format(*self.mx),
            "[api]",
            'listen = "{}:{}"'.format(*self.api),
            'base_url = "http://{}:{}"'.format(*self.api),
            'rate_limit = "off"',
            'forwarding_networks = ["127.0.0.0/8"]',
            "[ops]",
            'listen = "{}:{}"'.format(*self.ops),
            "[log]",
            'level = "warn"',
            "[dns]",
            'servers = ["{}:{}"]'.format(*self.names),
            "[delivery]",
            "allow_private_destinations = true",
            'smarthost = "{}:{}"'.format(*self.sink),
            'tls = "off"',
            "dkim = false",
            "[webhooks]",
            "allow_private_destinations = true",
            "allow_http = true",
            "[service]",
            "auto_verify_domains = true",
            "[testing]",
            'clock_offset = "0s"',
        ]
        return "\n".join(lines) + "\n"

    def admin(self, *words):
        command = [self.binary, "admin", "--config", self.config, *words, "--json"]
        return json.loads(machine.run_quietly(command) or "null")

    def advance(self, seconds):
        """Moves the server's clock ahead, and waits until it has tried what is due then."""
        self.admin("clock", "advance", str(seconds))
        self.ahead_s += seconds

    def now_s(self):
        """The server's time, in seconds since 1970."""
        return time.time() + self.ahead_s

    def call(self, method, path, body=None, headers=None, ok=(200, 201, 202, 204), key=True):
        """Calls the API over this thread's connection. Returns the response's JSON, or nothing."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        if key:
            sent["Authorization"] = f"Bearer {self.key}"
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        for tried in range(TRIES_MAX):
            connection = getattr(self.local, "connection", None)
            if connection is None:
                connection = self.local.connection = http.client.HTTPConnection(*self.api, timeout=120)
                connection.connect()
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                connection.request(method, path, data, sent)
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self.local.connection = None
                if tried == TRIES_MAX - 1:
                    raise machine.Failure(f"{method} {path}: {error}") from None
                continue
            if answer.status in ok:
                is_json = answer.headers.get("content-type", "").startswith("application/json")
                return json.loads(text) if text and is_json else None
            # A server under load asks to try again.
            if answer.status not in (409, 429, 503) or tried == TRIES_MAX - 1:
                break
            time.sleep(0.1 * (tried + 1))
        raise machine.Failure(f"{method} {path}: {answer.status} {text[:600].decode(errors='replace')}")

    def session(self):
        """The cookie of a session. It lasts 15 minutes; a new one is made before it ends."""
        if not self.cookie or time.monotonic() > self.cookie_at + SESSION_S:
            words = self.admin("session", "create", "--account", OWNER)
            self.cookie = re.search(r"__Host-[^=;\s]+=[^;\s\"]+", json.dumps(words))[0]
            self.cookie_at = time.monotonic()
        return self.cookie

    def provision(self):
        """Creates the account with its domains. The key is kept in the directory for later runs on the same store."""
        account = self.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
        self.key = account["api_key"]["secret"]
        (self.directory / "key").write_text(self.key)
        (self.directory / "key").chmod(0o600)
        for number, domain in enumerate(SENDERS):
            self.admin("domain", "create", domain, "--account", OWNER, "--verified")
            if number >= UNTRACKED:
                self.admin("domain", "update", domain, "--open-tracking", "on", "--click-tracking", "on")
        [first, *_] = self.call("GET", "/domains?limit=100")["domains"]
        self.call("PATCH", f"/domains/{first['id']}", {"inbound_enabled": True})
        self.inbound = first["name"]
        self.account = account["account"]["id"]

    def load_key(self):
        """Reads what an earlier run left in the directory."""
        self.key = (self.directory / "key").read_text()
        self.ahead_s = int((self.directory / "data/clock-shift").read_text()) / 1000

    def store_bytes(self):
        data = self.directory / "data"
        return sum(os.lstat(path).st_blocks * 512 for path in data.rglob("*") if path.is_file())
