"""`MisbehavingServer`: answers each request as a test says, and records what it received."""

import json
import socket
import socketserver
import struct
import threading


class Received:
    """A request as it arrived. Names in `headers` are in lower case."""

    def __init__(self, line, headers, body):
        self.method, self.target, _ = line.split(" ", 2)
        self.headers, self.body = headers, body

    @property
    def json(self):
        return json.loads(self.body)


class MisbehavingServer:
    """`answers` has one function (connection, server) for each request; the last one is used for all that follow."""

    def __init__(self, *answers, tls=None):
        self.answers, self.requests, self.connections = list(answers), [], 0
        self.closing, self.lock = threading.Event(), threading.Lock()
        server = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                connection = self.request
                try:
                    if tls:
                        connection = tls.wrap_socket(connection, server_side=True)
                    server.connections += 1
                    while server.serve(connection):
                        pass
                except (OSError, ValueError):
                    pass
                finally:
                    connection.close()

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address, daemon_threads, block_on_close = True, True, False

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://localhost:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()

    def serve(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            chunk = connection.recv(65536)
            if not chunk:
                return False
            head += chunk
        head, _, body = head.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        length = int(headers.get("content-length", 0))
        while len(body) < length:
            chunk = connection.recv(65536)
            if not chunk:
                return False
            body += chunk
        with self.lock:
            self.requests.append(Received(line, headers, body))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(connection, self) is not False


def answer(status=200, body=b"{}", headers=None):
    """A well-formed answer; `body` is bytes or a JSON value."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {
        "content-type": "application/json",
        "content-length": str(len(content)),
        "x-request-id": "req_1",
        **(headers or {}),
    }

    def send(connection, _):
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        connection.sendall(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + content)
        return lines.get("connection") != "close"

    return send


def api_error(status, code, headers=None, **fields):
    return answer(status, {"error": {"message": f"Injected {code}", "code": code, **fields}}, headers)


def raw(content, then_close=True):
    """Bytes as they are."""

    def send(connection, _):
        connection.sendall(content)
        return not then_close

    return send


def reset(content=b""):
    """Some bytes, then a reset of the connection."""

    def send(connection, _):
        if content:
            connection.sendall(content)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket.close(connection)
        return False

    return send


def hang(content=b""):
    """Some bytes, then nothing until the test ends."""

    def send(connection, server):
        connection.sendall(content)
        server.closing.wait(20)
        return False

    return send


def drip(content, seconds):
    """The bytes one by one."""

    def send(connection, server):
        for byte in content:
            connection.sendall(bytes([byte]))
            if server.closing.wait(seconds):
                break
        return False

    return send
