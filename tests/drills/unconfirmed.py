#!/usr/bin/env python3
"""Checks the API's response when the database becomes unreachable in the middle of a commit.

    POSTRIDER=target/debug/postrider tests/drills/unconfirmed.py

Flow: postrider reaches PostgreSQL through a proxy of this drill. A `POST /emails` with an idempotency key is sent; the
proxy forwards its commit, drops the response, and refuses connections for longer than postrider tries to learn the
outcome. The response must be 504 `send_unconfirmed`, the key must store it, and once the database is reachable again
the email must exist at most once.
"""

import json
import os
import socket
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
from nodes import Node, Postgres, free_port, until  # noqa: E402

OWNER, DOMAIN = "owner@acme.example", "acme.example"
MARK = b"unconfirmed-drill"


class Proxy:
    """Forwards bytes to and from PostgreSQL, until a write that contains the mark is followed by a commit."""

    def __init__(self, port):
        self.upstream, self.cut, self.open = port, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            if self.cut:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.upstream))
            pair = {"client": client, "server": server, "marked": False}
            self.open.append(pair)
            threading.Thread(target=self.pump, args=(pair, "client", "server"), daemon=True).start()
            threading.Thread(target=self.pump, args=(pair, "server", "client"), daemon=True).start()

    def pump(self, pair, source, target):
        try:
            while data := pair[source].recv(65536):
                if self.cut and source == "server":
                    break
                if source == "client" and MARK in data:
                    # The second half of the group and its commit are sent in one write.
                    self.cut = True
                pair[target].sendall(data)
        except OSError:
            pass
        if self.cut:
            self.cut_connections()

    def cut_connections(self):
        for pair in self.open:
            for end in ("client", "server"):
                try:
                    # Shut down the server side instead of resetting it, so that PostgreSQL reads what was written.
                    pair[end].shutdown(socket.SHUT_WR if end == "server" else socket.SHUT_RDWR)
                except OSError:
                    pass


def main():
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        base = Path(base)
        server = Postgres(base, "postgres")
        server.init()
        server.start()
        server.program("createdb", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", "mail")
        proxy = Proxy(server.port)
        node = Node(base, "one", f"postgres://postgres@127.0.0.1:{proxy.port}/mail?sslmode=disable", free_port())
        api = free_port()
        text = node.config.read_text().replace("listen = []", f'listen = "127.0.0.1:{api}"')
        node.config.write_text(text.replace("[delivery]", "[delivery]\npaused = true"))
        node.start(wait=False)
        try:
            until(lambda: (node.directory / "data" / "admin.sock").exists(), "the admin socket")
            account = node.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
            node.admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")
            check(f"http://127.0.0.1:{api}", account["api_key"]["secret"], proxy)
        except BaseException:
            print((node.directory / "log").read_text()[-3000:])
            raise
        finally:
            node.process.kill()
            server.end()
    print("ok")


def check(address, key, proxy):
    def call_api(method, path, body=None):
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        if body:
            headers["Idempotency-Key"] = "drill"
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, dict(answer.headers), json.loads(answer.read())
        except urllib.error.HTTPError as answer:
            return answer.code, dict(answer.headers), json.loads(answer.read())

    email = {"from": f"ada@{DOMAIN}", "to": "grace@example.net", "subject": MARK.decode(), "text": "x"}
    status, _, answer = call_api("POST", "/emails", email)
    print(f"  while the database is unreachable: {status} {json.dumps(answer)}")
    assert status == 504 and answer["error"]["code"] == "send_unconfirmed", "expected 504 send_unconfirmed"
    named = answer["error"]["details"]["email_id"]
    proxy.cut = False
    until(lambda: call_api("GET", "/emails")[0] == 200, "the database connection")
    status, headers, answer = call_api("POST", "/emails", email)
    print(f"  same key, database reachable again: {status} {json.dumps(answer)[:300]}")
    # The result of the send is stored together with the email.
    assert status in (200, 504), status
    _, _, found = call_api("GET", "/emails")
    ids = [entry["id"] for entry in found["emails"]]
    print(f"  the list: {ids}")
    assert ids in ([named], []), "at most once, under the reported id"


if __name__ == "__main__":
    main()
