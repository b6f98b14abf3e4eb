"""A postrider with one receiving domain, and a client of its MX listener: for the checks of inbound mail."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "drills"))
from events import call  # noqa: E402
from nodes import free_port, until  # noqa: E402

OWNER, DOMAIN = "owner@acme.example", "acme.example"
# A client at this address gives the real client in a PROXY header.
BALANCER = "127.0.0.9"
ANSWER_S = 120
PAGE = 100


class Server:
    """A postrider that receives mail."""

    def __init__(self, binary, base, names, more="", mx=""):
        self.binary = binary
        self.api, self.mx = free_port(), free_port()
        self.log = base / "log"
        self.config = base / "postrider.toml"
        certificate, key = base / "cert.pem", base / "key.pem"
        made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x"]
        subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
        self.config.write_text(f"""
hostname = "mx.postrider.example"
data_dir = "{base / 'data'}"
[tls]
certificate = "{certificate}"
private_key = "{key}"
[api]
listen = "127.0.0.1:{self.api}"
rate_limit = "off"
[mx]
listen = "127.0.0.1:{self.mx}"
sessions_per_address_max = 1000
connections_per_minute_max = 1000000
dmarc_reject = "mark"
{mx}
[dns]
servers = ["{names.address}"]
{more}
""")
        with self.log.open("ab") as log:
            command = [self.binary, "serve", "--config", self.config]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self.is_ready, f"the server ({self.log})")
        made = self.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
        self.key = made["api_key"]["secret"]
        made = self.admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")
        domains = self.call_api("GET", "/domains")["domains"]
        self.call_api("PATCH", f"/domains/{domains[0]['id']}", {"inbound_enabled": True})
        self.rss = [self.resident()]
        self.sampling = True
        self.sampler = threading.Thread(target=self.sample, daemon=True)
        self.sampler.start()

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the server exited: {self.log.read_text(errors='replace')[-2000:]}")
        try:
            return call(self.api, None, "GET", "/healthz")[0] == 200
        except OSError:
            return False

    def admin(self, *words):
        command = [self.binary, "admin", "--config", self.config, *words, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout or "null")

    def call_api(self, method, path, body=None):
        status, answer = call(self.api, self.key, method, path, body)
        if status != 200:
            raise RuntimeError(f"{method} {path} was answered {status}: {str(answer)[:300]}")
        return answer

    def fetch(self, path):
        """Status and raw bytes of a response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.api, timeout=60)
        try:
            connection.request("GET", path, headers={"authorization": f"Bearer {self.key}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def received(self):
        """All received emails, as the list shows them."""
        found, cursor = [], None
        while True:
            more = f"&cursor={cursor}" if cursor else ""
            page = self.call_api("GET", f"/received-emails?order=asc&limit={PAGE}{more}")
            found += page["received_emails"]
            cursor = page["next_cursor"]
            if not page["has_more"]:
                return found

    def resident(self):
        """Resident memory in MiB without mapped files (the binary, the store)."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def sample(self):
        while self.sampling:
            try:
                self.rss.append(self.resident())
            except OSError:
                return
            time.sleep(0.1)

    def end(self):
        self.sampling = False
        self.sampler.join()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "no exit on SIGTERM"


class Session:
    """A connection to the MX listener; with an address, as a client behind a load balancer."""

    def __init__(self, port, proxied=None):
        source = (BALANCER, 0) if proxied else None
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_S, source)
        if proxied:
            self.socket.sendall(f"PROXY TCP4 {proxied} 127.0.0.1 1 25\r\n".encode())
        self.lines = self.socket.makefile("rb")
        self.reply()
        self.send_command("EHLO host.good.example")

    def reply(self):
        """Code and text of a reply. Raises `ConnectionError` when the connection has ended."""
        while True:
            line = self.lines.readline(2000)
            if not line:
                raise ConnectionError("the connection ended")
            if len(line) < 4 or not line[:3].isdigit() or line[3:4] not in b" -\r":
                raise ValueError(f"this is not an SMTP reply: {line[:80]!r}")
            if line[3:4] != b"-":
                return int(line[:3]), line[4:].decode("utf-8", "replace").strip()

    def send_command(self, text):
        self.socket.sendall(text.encode("utf-8", "surrogateescape") + b"\r\n")
        return self.reply()

    def close(self):
        self.socket.close()
