"""A simulated payment processor: adds what localstripe lacks, in front of it or alone.

    Processor(behind) ─► url      GET  /v1/account, /v1/accounts/{id}     owner of the key; whether it accepts transfers
                                  GET  /v1/{list}?created[gte]=…&status=  own objects and localstripe's, newest first
                                  GET, POST /v1/transfers                 one per Idempotency-Key
                                  GET  anything else                      forwarded to localstripe

`outcomes` sets the responses to transfer requests by destination; `delay_request` delays another request. Tests kill the server
while it waits for a response.
"""

import collections
import contextlib
import http.client
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ACCOUNT = "acct_shop"
# The lists that a backfill reads.
LISTS = ("checkout/sessions", "subscriptions", "invoices", "charges", "refunds", "disputes", "credit_notes", "events", "invoice_payments")
UPSTREAM_QUERIES = {"subscriptions": "?status=all&limit=1000", "invoices": "?limit=1000", "charges": "?limit=1000"}
HELD_S = 300
# Responses to a transfer request besides success or an error code: make the transfer but do not respond, neither make
# it nor respond, or return 503.
SILENT, LOST, BUSY = "silent", "lost", "busy"
# No response until the client disconnects.
NOTHING = 0, None


class Processor:
    """A simulated processor on its own port."""

    def __init__(self, upstream=None):
        self.upstream = upstream
        self.objects = collections.defaultdict(list)
        self.customers = {}
        self.accepts_transfers = collections.defaultdict(bool)
        self.outcomes = collections.defaultdict(collections.deque)
        # By idempotency key: the request body and its response; keys that were reused although they must not be.
        self.keys, self.transfers, self.misused = {}, [], []
        self.request_counts, self.lock = collections.Counter(), threading.Lock()
        self.is_delayed_request, self.waiting, self.go = None, 0, threading.Event()
        self.server = start_server(self)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def delay_request(self, predicate):
        """Delays the first request for which `predicate(path, number of earlier requests)` is true."""
        self.is_delayed_request = predicate

    def drop_delayed(self):
        """Closes delayed requests without a response."""
        self.go.set()
        self.is_delayed_request, self.waiting, self.go = None, 0, threading.Event()

    def answer(self, method, target, headers, body):
        """Status and body."""
        path, _, query = target.partition("?")
        with self.lock:
            number = self.request_counts[path.split("/")[2]]
            self.request_counts[path.split("/")[2]] += 1
            is_delayed = self.is_delayed_request is not None and self.is_delayed_request(path, number)
            if is_delayed:
                self.is_delayed_request = None
        if is_delayed:
            response = NOTHING
        elif method == "POST" and path == "/v1/transfers":
            response = self.transfer(headers, body)
        else:
            response = self.get(path, query)
        if response == NOTHING:
            self.waiting, go = self.waiting + 1, self.go
            go.wait(HELD_S)
        return response

    def get(self, path, query):
        name = path.removeprefix("/v1/")
        if name == "account":
            return 200, {"id": ACCOUNT, "object": "account", "livemode": False}
        if name.startswith("accounts/"):
            account = name.split("/")[1]
            return 200, connected(account, self.accepts_transfers[account])
        if name == "transfers":
            return 200, page(list(reversed(self.transfers)), query)
        if path.removeprefix("/v1/customers/") in self.customers:
            return 200, self.customers[path.removeprefix("/v1/customers/")]
        if name in LISTS:
            return 200, page(self.listed(name), query)
        return self.upstream.call_api("GET", f"{path}?{query}") if self.upstream else (404, {"error": {}})

    def listed(self, name):
        """All objects of a list, newest first."""
        found = list(self.objects[name])
        if self.upstream and name in UPSTREAM_QUERIES:
            found += self.upstream.call_api("GET", f"/v1/{name}{UPSTREAM_QUERIES[name]}")[1]["data"]
        return sorted(found, key=lambda one: one["created"], reverse=True)

    def transfer(self, headers, body):
        """Makes a transfer unless the destination has another outcome; once per key, even if the response is lost."""
        key, parameters = headers["idempotency-key"], dict(urllib.parse.parse_qsl(body))
        with self.lock:
            outcomes = self.outcomes[parameters["destination"]]
            outcome = outcomes.popleft() if outcomes else None
            if outcome == BUSY:
                return 503, {"error": {"message": "busy"}}
            if outcome == LOST:
                return NOTHING
            if key not in self.keys:
                is_refused = outcome not in (None, SILENT)
                refusal = 400, {"error": {"code": outcome, "message": f"It says {outcome}"}}
                self.keys[key] = parameters, refusal if is_refused else (200, self.create_transfer(parameters))
            elif self.keys[key][0] != parameters or self.keys[key][1][0] != 200:
                self.misused.append(key)
            return NOTHING if outcome == SILENT else self.keys[key][1]

    def create_transfer(self, parameters):
        names = ("amount", "currency", "destination", "transfer_group")
        transfer = {name: parameters[name] for name in names} | {"object": "transfer", "created": int(time.time())}
        transfer["amount"] = int(transfer["amount"])
        transfer["metadata"] = {name[9:-1]: value for name, value in parameters.items() if name.startswith("metadata[")}
        transfer["id"] = f"tr_{len(self.transfers)}"
        self.transfers.append(transfer)
        return transfer

    def close(self):
        self.drop_delayed()
        self.server.shutdown()
        self.server.server_close()


def connected(account, takes):
    return {"id": account, "object": "account", "capabilities": {"transfers": "active" if takes else "inactive"}}


def page(objects, query):
    """A page of a list, selected by the query."""
    parameters = dict(urllib.parse.parse_qsl(query))
    since, until = int(parameters.pop("created[gte]", 0)), int(parameters.pop("created[lt]", 1 << 60))
    limit, after = int(parameters.pop("limit", 10)), parameters.pop("starting_after", None)
    # Objects are always returned expanded.
    parameters.pop("expand[]", None)
    if parameters.get("status") == "all":
        del parameters["status"]
    matches = lambda one: since <= one["created"] < until and all(one.get(name) == value for name, value in parameters.items())  # noqa: E731
    found = [one for one in objects if matches(one)]
    if after:
        found = found[[one["id"] for one in found].index(after) + 1 :]
    return {"object": "list", "data": found[:limit], "has_more": len(found) > limit}


def start_server(processor):
    class RequestHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are sent without waiting for an ACK in between.
        disable_nagle_algorithm = True

        def answer(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            status, value = processor.answer(self.command, self.path, self.headers, body)
            if (status, value) == NOTHING:
                self.close_connection = True
                return
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    class RequestServer(ThreadingHTTPServer):
        request_queue_size = 512
        daemon_threads = True

        def handle_error(self, *_):
            pass  # the server was killed in the middle of a request

    server = RequestServer(("127.0.0.1", 0), RequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def call_api(port, method, target, body=None):
    """Status and body of a response of localstripe."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        headers = {"authorization": "Bearer sk_test_12345", "content-type": "application/json"}
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.lstrip().startswith(b"{") else text
