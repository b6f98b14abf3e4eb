"""Finds the pages of the dashboard, and measures them as a browser sees them.

Pages are found by following links from the start page; each is assigned to its row of the page table
(pages/src/dashboard/screens). VARIANTS adds filters of the long lists, since a filter may read much more than its list.
"""

import collections
import gzip
import html
import json
import re
import socket
import threading
import time
import urllib.parse
from pathlib import Path

import machine

SCREENS = Path(__file__).resolve().parents[2] / "pages/src/dashboard/screens"
EXAMPLES_MAX = 4
PAGES_MAX = 600
AIM_S, AIM_BYTES = 0.050, 60 * 1024
TIMEOUT_S = 120
# A page of which each request takes longer than this is measured with fewer requests.
SLOW_S, SLOW_REQUESTS, FILE_REQUESTS = 0.5, 5, 20
FILE = re.compile(r"\.(csv|eml)$|/(file|source|zone-file|export)$")

VARIANTS = {
    "/emails": [
        "status=bounced",
        "status=delivered",
        "status=scheduled",
        "status=queued",
        "status=failed",
        "category=newsletter",
        "category=newsletter&status=bounced",
        "tag=flow:flow-3",
        "tag=flow:flow-3&status=bounced",
        "tag=flow:none",
        "q=invoice",
        "q=invoice+917",
        "q=nothing",
        "to=reader17@r17.bench.test",
        "to=nobody@r1.bench.test",
        "from=team@s7.bench.test",
        "template=letter-3",
        "after={day}&before={day}",
        "status=bounced&after={day}&before={day}",
    ],
    "/metrics": [
        "range=1",
        "range=7",
        "range=90",
        "range=365",
        "by=tag",
        "by=template",
        "by=provider",
        "only=domain:s0.bench.test",
        "by=tag&range=365",
    ],
    "/logs": ["status=4xx", "status=5xx", "status=404", "method=GET", "method=DELETE", "path=/emails", "path=/nothing"],
    "/events": ["name=user.created", "name=nothing", "user_id=u17", "email=person17@r17.bench.test"],
    "/people": ["q=person17@r17.bench.test"],
    "/suppressions": ["reason=complaint", "reason=manual", "reason=hard_bounce", "q=left17", "source=import"],
    "/funnels": ["group_by=source", "range=90"],
    "/visits": ["range=90", "range=365"],
    "/affiliate/partners": ["status=pending", "status=rejected", "email=partner17@partners.example"],
    "/affiliate/commissions": ["status=reversed", "status=earned"],
    "/affiliate/referrals": ["status=active", "status=lead"],
    "/affiliate/reviews": [""],
    "/affiliate/audit": [""],
    "/webhooks/events": ["types=email.bounced", "types=domain.verified"],
}


class Table:
    """The paths of the page table, read from the source."""

    def __init__(self):
        self.paths = set()
        for file in SCREENS.rglob("*.rs"):
            source = file.read_text()
            found = re.findall(r'(?:\bpath: |\bpage!\(\s*)"(|/[^"\s]*)"', source)
            if "macro_rules! rows" in source:
                below = re.findall(r'concat!\(\$path, "([^"]*)"\)', source)
                found += [path + rest for path in re.findall(r'rows!\(\s*"([^"]+)"', source) for rest in ["", *below]]
            self.paths |= {path for path in found if not path.startswith("/dashboard")}
        self.paths = sorted(path for path in self.paths if not path.startswith("/sign-in"))
        patterns = [(path, re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path))) for path in self.paths]
        # A path without parameters is preferred.
        self.patterns = sorted(patterns, key=lambda pattern: pattern[0].count("{"))

    def row(self, url):
        path = urllib.parse.urlsplit(url).path.removeprefix("/dashboard")
        return next((row for row, pattern in self.patterns if pattern.fullmatch(path)), None)


class Visitor:
    """A keep-alive connection with a session."""

    def __init__(self, server):
        self.server = server
        self.socket = None

    def get(self, path, compressed=True):
        """Returns (seconds to the first byte, status, headers, body as sent)."""
        accept = "Accept-Encoding: gzip\r\n" if compressed else ""
        host = "Host: {}:{}\r\n".format(*self.server.api)
        head = f"GET {path} HTTP/1.1\r\n{host}Accept: text/html\r\n{accept}Cookie: {self.server.session()}\r\n\r\n"
        for tried in range(2):
            if not self.socket:
                self.socket = socket.create_connection(self.server.api, timeout=TIMEOUT_S)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            started_at = time.perf_counter()
            try:
                self.socket.sendall(head.encode())
                data = self.socket.recv(1 << 18)
            except TimeoutError:
                raise machine.Failure(f"GET {path}: no answer within {TIMEOUT_S} s") from None
            except OSError:
                data = b""
            first_s = time.perf_counter() - started_at
            if data:
                return first_s, *self.rest(data)
            # The server had closed an idle connection.
            self.socket.close()
            self.socket = None
        raise machine.Failure(f"GET {path}: the connection was closed")

    def rest(self, data):
        while b"\r\n\r\n" not in data:
            data += self.more()
        head, body = data.split(b"\r\n\r\n", 1)
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("transfer-encoding") == "chunked":
            while not body.endswith(b"0\r\n\r\n"):
                body += self.more()
        else:
            parts, length = [body], len(body)
            while length < int(headers.get("content-length", 0)):
                parts.append(self.more())
                length += len(parts[-1])
            body = b"".join(parts)
        return int(status.split()[1]), headers, body

    def more(self):
        data = self.socket.recv(1 << 18)
        if not data:
            raise machine.Failure("a response ended early")
        return data

    def close(self):
        if self.socket:
            self.socket.close()


def text(headers, body):
    body = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
    return body.decode(errors="replace")


def links(page):
    """The addresses of links and frames."""
    found = re.findall(r'<a [^>]*?href="([^"]+)"|<iframe [^>]*?src="([^"]+)"', page)
    return [html.unescape(link or frame) for link, frame in found]


def first_pages(server):
    """Pages in states that the first links of a list may not have."""

    def first(path, noun):
        answer = server.call("GET", path)
        return answer[noun][0]["id"] if answer[noun] else None

    for status in ("delivered", "scheduled", "queued", "bounced"):
        email = first(f"/emails?status={status}&limit=1", "emails")
        if email:
            yield f"/dashboard/emails/{email}"
    for automation in server.call("GET", "/automations?limit=100")["automations"]:
        if automation["trigger"]["event"] == "user.created":
            yield f"/dashboard/automations/{automation['id']}"
            yield f"/dashboard/automations/{automation['id']}/runs"
    yield f"/dashboard/templates/{server.call('GET', '/templates/letter-3')['template']['id']}"
    yield from json.loads((server.directory / "about.json").read_text())["pages"]


def find(server, table):
    """Follows links. Returns the addresses of each row, and those that fail."""
    visitor, broken = Visitor(server), []
    waiting = collections.deque(["/dashboard", *first_pages(server)])
    seen = set(waiting)
    examples = collections.Counter(map(table.row, seen))
    found = collections.defaultdict(list)
    while waiting and len(seen) < PAGES_MAX:
        path = waiting.popleft()
        row = table.row(path)
        _, status, headers, body = visitor.get(path)
        if status == 303:
            continue
        if status != 200:
            broken.append(f"{path}: {status}")
            continue
        found[row].append(path)
        if not headers.get("content-type", "").startswith("text/html"):
            continue
        page = text(headers, body)
        if row == "/emails" and "/emails/selected" not in found:
            ids = re.findall(r'name="id" value="([^"]+)"', page)
            found["/emails/selected"] = ["/dashboard/emails/selected?" + "&".join(f"id={id}" for id in ids)]
        for link in links(page):
            url = urllib.parse.urljoin(path, link.split("#")[0])
            row = table.row(url) if url.startswith("/dashboard") else None
            if row is None or url in seen:
                continue
            if examples[row] < EXAMPLES_MAX:
                examples[row] += 1
                seen.add(url)
                waiting.append(url)
    visitor.close()
    return found, broken


def addresses(server, found):
    """What is measured: (name, addresses of it), the filters of lists after each list."""
    day = time.strftime("%Y-%m-%d", time.gmtime(server.now_s() - 3 * 86_400))
    for row in sorted(found, key=str):
        if row is None:
            continue
        plain = [url for url in found[row] if "?" not in url] or found[row]
        yield (row or "(start)"), plain
        paged = [url for url in found[row] if "cursor=" in url]
        if paged:
            yield f"{row} (next page)", paged
        for variant in filter(None, VARIANTS.get(row, [])):
            variant = variant.format(day=day)
            yield f"{row}?{variant}", [f"/dashboard{row}?{variant}"]


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def measure(server, name, urls, requests, threads):
    """Measures a page; its addresses are requested in turns."""
    visitor = Visitor(server)
    first_s, status, headers, body = visitor.get(urls[0])
    if status != 200:
        raise machine.Failure(f"{urls[0]}: status {status}")
    number = requests if first_s < SLOW_S else SLOW_REQUESTS
    number = number if not FILE.search(name) else min(number, FILE_REQUESTS)
    one = [visitor.get(urls[turn % len(urls)])[0] for turn in range(number)]
    visitor.close()
    many, failures = [], []

    def work(thread):
        visitor = Visitor(server)
        try:
            times = [visitor.get(urls[(turn + thread) % len(urls)])[0] for turn in range(max(1, number // threads))]
            many.extend(times)
        except machine.Failure as failure:
            failures.append(failure)
        visitor.close()

    server.session()
    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    is_page = headers.get("content-type", "").startswith("text/html")
    return {
        "page": name,
        "requests": number,
        "first_s": first_s,
        "p50_s": percentile(one, 0.5),
        "p99_s": percentile(one, 0.99),
        "many_p50_s": percentile(many, 0.5),
        "many_p99_s": percentile(many, 0.99),
        "bytes": len(body),
        "assets_bytes": assets_bytes(server, text(headers, body)) if is_page else None,
        "is_file": bool(FILE.search(name)) or not is_page,
    }


ASSETS = {}


def assets_bytes(server, page):
    """Compressed bytes of the style sheets and scripts of a page."""
    total = 0
    for path in re.findall(r'<link rel="stylesheet" href="([^"]+)"|<script src="([^"]+)"', page):
        path = html.unescape(path[0] or path[1])
        if path not in ASSETS:
            visitor = Visitor(server)
            ASSETS[path] = len(visitor.get(path)[3])
            visitor.close()
        total += ASSETS[path]
    return total


def misses(row):
    """In which of the aims a page fails."""
    if row["is_file"]:
        return []
    found = []
    if row["p99_s"] >= AIM_S:
        found.append(f"p99 {row['p99_s'] * 1000:.0f} ms")
    if row["bytes"] + (row["assets_bytes"] or 0) > AIM_BYTES:
        found.append(f"{(row['bytes'] + row['assets_bytes']) / 1024:.0f} KB")
    return found
