#!/usr/bin/env python3
"""`postrider login` signs in to `postrider dev`: with a browser of this machine, and with the code of a device.

    tests/peers/sign_in.py --postrider target/debug/postrider

Flow: BROWSER is a program that passes the URL on. With the session of the owner, the pages are opened as a browser
without JavaScript does: the form is read from the page, filled, sent, and its redirects are followed, here to the port
of `postrider login`. Then the stored sign-in is used, and ended by `postrider logout`. No traffic leaves loopback.
"""

import argparse
import html.parser
import http.client
import json
import os
import select
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

from check import Failed, report_case, start

WAIT_S = 60
REDIRECTS_MAX = 5


class Forms(html.parser.HTMLParser):
    """The forms of a page: for each the fields that a browser would send."""

    def __init__(self):
        super().__init__()
        self.forms, self.area = [], None

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form":
            self.forms.append({"action": attributes.get("action"), "fields": []})
        elif self.forms and tag == "input" and attributes.get("name"):
            is_choice = attributes.get("type") in ("checkbox", "radio")
            if not is_choice or "checked" in attributes:
                self.forms[-1]["fields"].append((attributes["name"], attributes.get("value") or ""))
        elif self.forms and tag == "textarea":
            self.area = [attributes.get("name"), ""]

    def handle_data(self, data):
        if self.area:
            self.area[1] += data

    def handle_endtag(self, tag):
        if tag == "textarea" and self.area:
            self.forms[-1]["fields"].append(tuple(self.area))
            self.area = None


class Browser:
    """A browser with the session of the owner, for the pages of one server."""

    def __init__(self, origin, cookie):
        self.origin, self.cookie = origin, cookie

    def send(self, method, url, body=None):
        """One request; (status, location, text). The session goes to its own server only."""
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=WAIT_S)
        headers = {"cookie": self.cookie} if url.startswith(self.origin + "/") else {}
        if body is not None:
            headers.update({"content-type": "application/x-www-form-urlencoded", "origin": self.origin})
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        return answer.status, answer.getheader("location"), text

    def submit(self, url, name, changed=()):
        """Opens a page and sends its form of this name, with changed fields. Returns the last URL and page."""
        status, _, page = self.send("GET", url)
        if status != 200:
            raise Failed(f"{url}: {status} {page[:300]}")
        forms = Forms()
        forms.feed(page)
        form = next((one for one in forms.forms if ("form", name) in one["fields"]), None)
        if not form:
            raise Failed(f"{url} has no form {name!r}: {page[:1500]}")
        changed = dict(changed)
        fields = [field for field in form["fields"] if field[0] not in changed] + list(changed.items())
        target = urllib.parse.urljoin(url, form["action"] or "") if form["action"] else url
        status, location, page = self.send("POST", target, urllib.parse.urlencode(fields))
        for _ in range(REDIRECTS_MAX):
            if status not in (302, 303):
                break
            target = urllib.parse.urljoin(target, location)
            status, location, page = self.send("GET", target)
        if status != 200:
            raise Failed(f"{target}: {status} {page[:300]}")
        return target, page


class Account:
    """The command line of one user, with profiles of its own."""

    def __init__(self, binary, base_url, home):
        self.binary, self.base_url = binary, base_url
        self.home = Path(home)
        self.home.mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config")}

    def login(self, *flags, **environment):
        command = [self.binary, "login", "--base-url", self.base_url, "--json", *flags]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env={**self.environment, **environment}, **pipes)

    def run(self, *command, accept=(0,)):
        done = subprocess.run([self.binary, *command], env=self.environment, capture_output=True, text=True, timeout=WAIT_S)
        if done.returncode not in accept:
            raise Failed(f"{' '.join(command)}: exit {done.returncode}: {(done.stderr + done.stdout).strip()[-800:]}")
        return done.stdout

    def check(self, process, scope):
        """Waits for the sign-in, uses it, and ends it."""
        output, errors = process.communicate(timeout=WAIT_S)
        if process.returncode != 0:
            raise Failed(f"login: exit {process.returncode}: {errors[-800:]}")
        if json.loads(output)["scope"] != scope:
            raise Failed(f"login says {output}")
        profiles = self.home / "config" / "postrider" / "profiles.toml"
        if profiles.stat().st_mode & 0o077 or "rnl_rt_" not in profiles.read_text():
            raise Failed("the profile is not private, or has no sign-in")
        who = json.loads(self.run("whoami", "--json"))
        if "email" not in who["account"]:
            raise Failed(f"whoami: {who}")
        grants = json.loads(self.run("grants", "list"))["grants"]
        grant = next(one for one in grants if one["client_id"] == "postrider-cli")
        if " ".join(grant["scopes"]) != scope:
            raise Failed(f"the grant has other scopes: {grant}")
        # It sends no email, because `send` was taken away.
        self.run("emails", "send", "--from", "ada@example.com", "--to", "x@example.net", "--subject", "s", "--text", "t", accept=(1,))
        self.run("logout")
        if "rnl_rt_" in profiles.read_text():
            raise Failed("the sign-in is still stored")


def by_browser(account, browser):
    """BROWSER opens the page of consent; the redirect leads to the port of `postrider login`."""
    passed = account.home / "url"
    os.mkfifo(passed)
    opener = account.home / "browser"
    # A browser does not keep the program waiting.
    opener.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" > "{passed}"\n')
    opener.chmod(0o755)
    pipe = os.open(passed, os.O_RDWR)
    process = account.login("--web", BROWSER=str(opener))
    try:
        if not select.select([pipe], [], [], WAIT_S)[0]:
            raise Failed("login opens no browser")
        url = os.read(pipe, 1 << 16).decode().strip()
        target, page = browser.submit(url, "allow", {"scopes": "read"})
        if not target.startswith("http://127.0.0.1:") or "go back to the terminal" not in page:
            raise Failed(f"the consent leads to {target}: {page[:300]}")
        account.check(process, "read")
    finally:
        os.close(pipe)
        if process.poll() is None:
            process.kill()


def by_device(account, browser):
    """The page with the device's code; the terminal waits for the decision."""
    process = account.login("--device")
    try:
        url = None
        for line in process.stderr:
            if line.startswith("or open "):
                url = line.removeprefix("or open ").strip()
                break
        if not url:
            raise Failed("login --device names no page")
        _, page = browser.submit(url, "allow", {"scopes": "read"})
        if "now has access" not in page:
            raise Failed(f"the device is not allowed: {page[:1500]}")
        account.check(process, "read")
    finally:
        if process.poll() is None:
            process.kill()


def check(dev, binary, data):
    base_url = dev.line["api"].rstrip("/")
    made = subprocess.run(
        [binary, "admin", "--data-dir", str(data), "session", "create", "--json"], capture_output=True, text=True, check=True
    )
    browser = Browser(base_url, json.loads(made.stdout)["cookie"])
    cases = {"login by browser": by_browser, "login --device": by_device}
    failed = 0
    for name, case in cases.items():
        account = Account(binary, base_url, data.parent / case.__name__)
        failed += report_case(name, lambda case=case, account=account: case(account, browser))[1]
    return failed


def main():
    parser = argparse.ArgumentParser(description="`postrider login` against `postrider dev`.")
    parser.add_argument("--postrider", required=True, help="the binary to start")
    binary = str(Path(parser.parse_args().postrider).resolve())
    process, failed = None, True
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory, "data")
        data.mkdir()
        try:
            process, dev = start(binary, str(data))
            failed = check(dev, binary, data)
        except Failed as failure:
            print(f"  FAILED: {failure}")
        finally:
            if process:
                process.terminate()
                process.wait(30)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
