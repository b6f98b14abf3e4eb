"""`FaultProxy`: an HTTP proxy in front of the server that records requests and injects the faults of a scenario.

Each fault applies to one request, in order; without a fault a request goes to the server. Faults:

    {"status": 503, "headers": {}, "json": {}}    answers itself; `text` with a `content-type`, or `bytes` (a size), instead of json
    {"event_bytes": 2000000}                      answers an event stream with one event whose `data` has this size
    {"reset": true}                               resets the connection before any answer
    {"reset_after_request": true}                 passes the request on, then resets the connection: the answer is lost
    {"hang": "headers"}                           never answers (until the client leaves)
    {"hang": "body"}                              sends the header section and half of the answer, then nothing
    {"cut": true}                                 sends half of the answer, then closes
    {"slow_headers_ms": 50}                       waits between the bytes of the header section, for ever
"""

import http.client
import json
import socket
import socketserver
import struct
import threading

HEAD_BYTES_MAX = 64 << 10
TLS_HANDSHAKE = b"\x16"


class FaultProxy:
    def __init__(self, upstream):
        self.upstream = upstream
        self.faults, self.requests, self.lock = [], [], threading.Lock()
        self.closing = threading.Event()
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    while proxy.serve(self.request):
                        pass
                except (OSError, ValueError, http.client.HTTPException):
                    pass

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address, daemon_threads, block_on_close = True, True, False
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()

    def begin(self, faults):
        """Sets the faults of the next requests and forgets the recorded ones."""
        with self.lock:
            self.faults, self.requests = list(faults), []

    def recorded(self):
        with self.lock:
            return list(self.requests)

    def serve(self, client):
        """One request. False: the connection has ended."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head, rest = read_head(client)
        if head is None:
            return False
        lines = head.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        body = read_body(client, headers, rest)
        with self.lock:
            self.requests.append({"method": method, "path": path, "headers": headers, "body": body})
            fault = self.faults.pop(0) if self.faults else None
        if fault is None:
            return self.forward(client, method, path, headers, body)
        return self.inject(fault, client, method, path, headers, body)

    def forward(self, client, method, path, headers, body, half=False):
        passed = {name: value for name, value in headers.items() if name not in ("transfer-encoding", "content-length")}
        upstream = http.client.HTTPConnection(*self.upstream, timeout=120)
        upstream.request(method, path, body if body or method in ("POST", "PUT", "PATCH") else None, passed)
        response = upstream.getresponse()
        stream = response.getheader("content-type", "").startswith("text/event-stream")
        content = None if stream else response.read()
        head = f"HTTP/1.1 {response.status} {response.reason}\r\n"
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                head += f"{name}: {value}\r\n"
        if stream:
            client.sendall((head + "connection: close\r\n\r\n").encode("latin-1"))
            while chunk := response.read1(65536):
                client.sendall(chunk)
            return False
        head += f"content-length: {len(content)}\r\n\r\n"
        if half:
            client.sendall(head.encode("latin-1") + content[: len(content) // 2])
            return True
        client.sendall(head.encode("latin-1") + content)
        upstream.close()
        return headers.get("connection", "").lower() != "close"

    def inject(self, fault, client, method, path, headers, body):
        if fault.get("reset"):
            return reset(client)
        if fault.get("reset_after_request"):
            self.discard(method, path, headers, body)
            return reset(client)
        if fault.get("hang") == "headers":
            return wait_for_client(client)
        if fault.get("hang") == "body":
            self.forward(client, method, path, headers, body, half=True)
            return wait_for_client(client)
        if fault.get("cut"):
            self.forward(client, method, path, headers, body, half=True)
            return False
        if pause := fault.get("slow_headers_ms"):
            client.sendall(b"HTTP/1.1 200 OK\r\nx-slow: ")
            while not self.closing.wait(pause / 1000):
                client.sendall(b"a")
            return False
        return answer(client, fault)

    def discard(self, method, path, headers, body):
        passed = {name: value for name, value in headers.items() if name not in ("transfer-encoding", "content-length")}
        upstream = http.client.HTTPConnection(*self.upstream, timeout=120)
        upstream.request(method, path, body, passed)
        upstream.getresponse().read()
        upstream.close()


def read_head(client):
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = client.recv(65536)
        if not chunk or len(data) > HEAD_BYTES_MAX:
            return None, b""
        data += chunk
        if data.startswith(TLS_HANDSHAKE):
            client.sendall(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            return None, b""
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def read_body(client, headers, rest):
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return read_chunks(client, rest)
    length = int(headers.get("content-length", 0))
    while len(rest) < length:
        chunk = client.recv(65536)
        if not chunk:
            raise ValueError("the request ended early")
        rest += chunk
    return rest[:length]


def read_chunks(client, data):
    def more():
        chunk = client.recv(65536)
        if not chunk:
            raise ValueError("the request ended early")
        return chunk

    body = b""
    while True:
        while b"\r\n" not in data:
            data += more()
        size, _, data = data.partition(b"\r\n")
        size = int(size.split(b";")[0], 16)
        while len(data) < size + 2:
            data += more()
        if size == 0:
            return body
        body, data = body + data[:size], data[size + 2 :]


def answer(client, fault):
    status, headers = fault.get("status", 200), dict(fault.get("headers", {}))
    if "json" in fault:
        content = json.dumps(fault["json"]).encode()
        headers.setdefault("content-type", "application/json")
    elif "event_bytes" in fault:
        headers.setdefault("content-type", "text/event-stream")
        event = {"id": "evt_1", "type": "email.sent", "created_at": "2026-01-01T10:00:00.000Z", "data": {"text": ""}}
        event["data"]["text"] = "x" * (fault["event_bytes"] - len(json.dumps(event)))
        content = f"id: c1\nevent: email.sent\ndata: {json.dumps(event)}\n\n".encode()
    elif "bytes" in fault:
        content = b"x" * fault["bytes"]
    else:
        content = fault.get("text", "").encode()
    head = f"HTTP/1.1 {status} Injected\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    client.sendall(f"{head}content-length: {len(content)}\r\n\r\n".encode("latin-1") + content)
    return True


def reset(client):
    # SO_LINGER with time 0: close sends RST instead of FIN.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    return False


def wait_for_client(client):
    client.settimeout(120)
    while client.recv(65536):
        pass
    return False
