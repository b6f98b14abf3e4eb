"""A small name server on loopback for the checks: answers from a zone given as Python values, and failures on request.

    NameServer({"a.example": [("A", "192.0.2.1"), ("TXT", b"v=spf1 -all")], "slow.example": ["TROUBLE"]})

Records have TTL 0, so that a zone can change between two queries. `TROUBLE` answers SERVFAIL for types without records
at the name. UDP and TCP use one port; answers that do not fit a packet are truncated.
"""

import ipaddress
import socket
import socketserver
import struct
import threading

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SPF": 99}
PACKET_MAX = 1232
ALIASES_MAX = 8
NO_ERROR, SERVER_FAILURE, NO_NAME = 0, 2, 3


class NameServer:
    def __init__(self, zone):
        self.set(zone)
        while True:
            self.udp = Server(("127.0.0.1", 0), Packet)
            try:
                self.tcp = StreamServer(self.udp.server_address, Stream)
                break
            except OSError:
                self.udp.server_close()
        for server in (self.udp, self.tcp):
            server.names = self
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.address = "127.0.0.1:%d" % self.udp.server_address[1]

    def set(self, zone):
        self.zone = {name.lower().rstrip("."): records for name, records in zone.items()}
        self.names = set()
        for name in self.zone:
            labels = name.split(".")
            self.names.update(".".join(labels[at:]) for at in range(len(labels)))

    def close(self):
        for server in (self.udp, self.tcp):
            server.shutdown()
            server.server_close()

    def answer(self, question, room):
        """The response to a query, both in wire format."""
        try:
            number, flags, count = struct.unpack("!HHH", question[:6])
            labels, at = labels_of(question, 12)
            kind = struct.unpack("!H", question[at : at + 2])[0]
        except (struct.error, IndexError):
            return None
        question_bytes = question[12 : at + 4]
        code, records = self.find(b".".join(labels).decode("latin-1").lower(), kind)
        body = b"".join(record(name, kind, data) for name, kind, data in records)
        flags = 0x8580 | (flags & 0x0100)
        if 12 + len(question_bytes) + len(body) + 64 > room:
            return struct.pack("!6H", number, flags | 0x0200, 1, 0, 0, 0) + question_bytes
        authority = b""
        if not records and code in (NO_ERROR, NO_NAME):
            authority = record("", TYPES["SOA"], b"\0\0" + struct.pack("!5I", 1, 3600, 600, 86400, 0))
        header = struct.pack("!6H", number, flags | code, 1, len(records), 1 if authority else 0, 0)
        return header + question_bytes + body + authority

    def find(self, name, kind):
        found = []
        for _ in range(ALIASES_MAX):
            records = self.zone.get(name, [])
            same = [(name, kind, wire(one)) for one in records if one != "TROUBLE" and TYPES[one[0]] == kind]
            if same:
                return NO_ERROR, found + same
            alias = next((one[1] for one in records if one != "TROUBLE" and one[0] == "CNAME"), None)
            if alias is None:
                if "TROUBLE" in records or (not records and name.startswith("error.")):
                    return SERVER_FAILURE, []
                return (NO_ERROR if name in self.names else NO_NAME), found
            found.append((name, TYPES["CNAME"], on_wire(alias)))
            name = alias.lower().rstrip(".")
        return SERVER_FAILURE, []


def labels_of(packet, at):
    labels = []
    while packet[at]:
        length = packet[at]
        labels.append(packet[at + 1 : at + 1 + length])
        at += 1 + length
    return labels, at + 1


def on_wire(name):
    labels = [label.encode("latin-1") for label in name.rstrip(".").split(".") if label]
    # Labels that are too long are omitted.
    labels = [label for label in labels if len(label) < 64]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def wire(one):
    kind, data = one
    if kind == "A":
        return ipaddress.IPv4Address(data).packed
    if kind == "AAAA":
        return ipaddress.IPv6Address(data).packed
    if kind == "MX":
        return struct.pack("!H", data[0]) + on_wire(data[1])
    if kind in ("TXT", "SPF"):
        strings = [data] if isinstance(data, (str, bytes)) else data
        strings = [text if isinstance(text, bytes) else text.encode("utf-8") for text in strings]
        cut = [text[at : at + 255] for text in strings for at in range(0, max(len(text), 1), 255)] or [b""]
        return b"".join(bytes([len(text)]) + text for text in cut)
    return on_wire(data)


def record(name, kind, data):
    owner = b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.split(".") if label) + b"\0"
    return owner + struct.pack("!HHIH", kind, 1, 0, len(data)) + data


class Server(socketserver.ThreadingUDPServer):
    daemon_threads = True
    max_packet_size = 65535

    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        super().server_bind()


class StreamServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


class Packet(socketserver.BaseRequestHandler):
    def handle(self):
        data, socket_ = self.request
        answer = self.server.names.answer(data, PACKET_MAX)
        if answer:
            socket_.sendto(answer, self.client_address)


class Stream(socketserver.StreamRequestHandler):
    def handle(self):
        while True:
            length = self.rfile.read(2)
            if len(length) < 2:
                return
            answer = self.server.names.answer(self.rfile.read(struct.unpack("!H", length)[0]), 65535)
            if not answer:
                return
            self.wfile.write(struct.pack("!H", len(answer)) + answer)
