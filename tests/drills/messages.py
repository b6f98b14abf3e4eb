"""Malformed messages: handwritten cases, and mutations of well-formed messages.

`Maker().make(chance)` returns the kind and the bytes of a message; the same `chance` gives the same message. Each
handwritten case targets one weakness of a parser: depth, number, length, character sets, addresses, encodings,
signatures. Mutations start from built-in messages and from test messages of Python, of the crates that cargo has
fetched, and of packages that other checks have fetched, if these are present.
"""

import base64
import os
import sysconfig
from pathlib import Path

HEAD = b"From: Ada <ada@good.example>\r\nTo: b@acme.example\r\nSubject: s\r\nMessage-ID: <1@good.example>\r\n"
CORPUS_BYTES_MAX = 256 << 10
CORPUS_MAX = 1500
CHARSETS = [
    b"utf-7", b"utf-16", b"iso-2022-jp", b"x-unknown", b"gb18030", b"hz-gb-2312", b"utf-8\0", b"", b"ibm037", b"x" * 300,
]


def mime(kind, more=b""):
    return HEAD + b"MIME-Version: 1.0\r\nContent-Type: " + kind + b"\r\n" + more + b"\r\n"


def some(chance, most):
    """A random number that prefers small values."""
    return max(1, int(most * chance.random() ** 3))


def noise(chance, size):
    return chance.randbytes(size).translate(bytes.maketrans(b"\r\n\0", b"rn0"))


# Depth and number


def nested(chance):
    depth = some(chance, 2000)
    head = b"".join(b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (at, at + 1) for at in range(depth))
    tail = b"".join(b"--b%d--\r\n" % at for at in range(depth, -1, -1)) if chance.random() < 0.5 else b""
    return mime(b"multipart/mixed; boundary=b0") + head + b"--b%d\r\n\r\nx\r\n" % depth + tail


def nested_messages(chance):
    part = b"Content-Type: message/rfc822\r\n\r\n"
    return HEAD + b"MIME-Version: 1.0\r\n" + part * some(chance, 3000) + HEAD + b"\r\nx\r\n"


def many_parts(chance):
    part = chance.choice([b"--b\r\n", b"--b\r\n\r\n", b"--b\r\nContent-Type: text/html\r\n\r\n<p>\r\n"])
    return mime(b"multipart/mixed; boundary=b") + part * some(chance, 30_000) + b"--b--\r\n"


def same_boundaries(chance):
    inner = b"--b\r\nContent-Type: multipart/alternative; boundary=" + chance.choice([b"b", b"bb", b'""', b"b--"])
    return mime(b"multipart/mixed; boundary=b") + (inner + b"\r\n\r\n") * some(chance, 500)


def odd_boundary(chance):
    boundary = chance.choice([b'""', b'"' + b"x" * 5000 + b'"', b'"a\\"b"', b"'b'", b" ", b"b;boundary=c", noise(chance, 30)])
    return mime(b"multipart/mixed; boundary=" + boundary) + b"--b\r\n\r\nx\r\n--\r\n\r\n----\r\n--b--\r\n"


def many_fields(chance):
    field = chance.choice([b"X: y\r\n", b"Received: by x; now\r\n", b"To: a@b.example\r\n", b"Subject: s\r\n", b"References: <a@b>\r\n"])
    return field * some(chance, 8000) + HEAD + b"\r\nx\r\n"


def long_field(chance):
    name = chance.choice([b"Subject", b"To", b"X-Long", b"References", b"From", b"Content-Type", b"DKIM-Signature", b"Date"])
    text = chance.choice([b"a", b"a@b.example, ", b"(", b'"', b"<a@b.example> ", b"=?utf-8?q?a?= ", b";a=b", b"\xff"])
    return name + b": " + text * some(chance, 30_000) + b"\r\n" + HEAD + b"\r\nx\r\n"


def folded(chance):
    return HEAD + b"X: y\r\n" + chance.choice([b" \r\n", b"\t\r\n", b" z\r\n"]) * some(chance, 20_000) + b"\r\nx\r\n"


def long_line(chance):
    return HEAD + b"\r\n" + noise(chance, 1) * some(chance, 3_000_000) + b"\r\n"


def large(chance):
    line = base64.b64encode(chance.randbytes(57)) + b"\r\n"
    kind = b"application/octet-stream; name=x"
    return mime(kind, b"Content-Transfer-Encoding: base64\r\n") + line * some(chance, 60_000)


# Encodings and character sets


def encoded(chance):
    encoding = chance.choice([b"base64", b"quoted-printable", b"x-uuencode", b"binary", b"8bit", b"", b"gzip", b"base64, base64"])
    body = chance.choice([
        noise(chance, 3000), b"=" * 5000, b"=\r\n" * 3000, b"=3" * 2000, b"AAAA" * 999 + b"=A==A", b"begin 644 x\r\n`\r\nend\r\n",
        b"Zg" * 1001, b"=FF=00=0D=0A" * 500,
    ])
    kind = chance.choice([b"text/plain", b"text/html", b"application/pdf; name=x", b"image/png"])
    return mime(kind, b"Content-Transfer-Encoding: " + encoding + b"\r\n") + body + b"\r\n"


def charset(chance):
    kind = b"text/%s; charset=%s" % (chance.choice([b"plain", b"html"]), chance.choice(CHARSETS))
    return mime(kind, b"Content-Transfer-Encoding: 8bit\r\n") + noise(chance, some(chance, 20_000)) + b"\r\n"


def words(chance):
    word = b"=?%s?%s?%s?=" % (
        chance.choice(CHARSETS + [b"utf-8"]), chance.choice([b"q", b"b", b"x", b"Q", b""]),
        chance.choice([b"=", b"=C3", b"=41=\r\n", b"w7z", b"////", b"?", noise(chance, 20), b"=0D=0AFrom:_evil"]),
    )
    field = chance.choice([b"Subject: ", b"From: ", b"To: ", b"X: "])
    return field + word * some(chance, 2000) + b"\r\n" + HEAD + b"\r\nx\r\n"


def file_names(chance):
    name = chance.choice([
        b"filename*0*=utf-8''%41; filename*1=b; filename*9999999999=c", b"filename*=x'y'%ff%zz", b'filename="../../etc/passwd"',
        b'filename="a\\', b"; ".join(b"filename*%d=x" % at for at in range(some(chance, 3000))), b'filename="' + b"x" * 70_000 + b'"',
        b'filename="a\r\n b\x00c"', b"filename==?utf-8?b?Li4vLi4=?=", b"filename*0=a; filename*0=b",
    ])
    part = b"--b\r\nContent-Disposition: attachment; " + name + b"\r\n\r\nx\r\n"
    return mime(b"multipart/mixed; boundary=b") + part * some(chance, 30) + b"--b--\r\n"


def raw_bytes(chance):
    return HEAD + b"X-" + noise(chance, 200) + b": " + noise(chance, 500) + b"\r\nSubject: \xff\xfe\x80\r\n\r\n" + noise(chance, 2000)


def nuls(chance):
    message = bytearray(HEAD + b"\r\nHello\r\n")
    for _ in range(some(chance, 50)):
        message.insert(chance.randrange(len(message)), 0)
    return bytes(message)


# Lines


def line_ends(chance):
    end = chance.choice([b"\n", b"\r", b"\n\r", b"\r\r\n", b"\r\n\r", b"\n.\n", b"\r\n.\n", b"\n.\r\n", b"\r.\r"])
    return chance.choice([HEAD.replace(b"\r\n", end), HEAD + b"\r\nx" + end]) + b"MAIL FROM:<x@y>\r\n\r\ny"


def no_body(chance):
    return chance.choice([b"", b"\r\n", b"\r\n\r\n\r\n", HEAD, HEAD[:-2], b":", b": x\r\n\r\n", b" \r\n\r\n", b".\r\n", b"\r\n.\r\n."])


def injected(chance):
    text = chance.choice([b"a@b\r\nBcc: x@y", b"a@b\r\n\r\nDATA", b"<a\r\n@b>", b"a@b%0d%0aX: y", b"a@b\r\n.\r\nRSET"])
    return b"From: " + text + b"\r\n" + HEAD + b"Reply-To: " + text + b"\r\n\r\nx\r\n"


# Authors and dates


def authors(chance):
    first = b"From: a@good.example\r\n"
    field = chance.choice([
        first * some(chance, 500), b"", b"From: \r\n", b"From:;\r\n", b"From: a:b:c:;;;\r\n", b"From: " + b"a@b.example," * some(chance, 9000) + b"\r\n",
        b"From: " + b"(" * some(chance, 20_000) + b"a@b.example\r\n", b'From: "' + b'\\"' * some(chance, 9000) + b"<a@b.example>\r\n",
        b"From: <@a,@b:c@d.example>\r\n", b"From: a@good.example <b@hard.example>\r\n", b"From : a@good.example\r\n", b"From\r\n: a@b.example\r\n",
        b"From: \xc3\xa4@\xc3\xb6.example\r\n", b"From: a@" + b"x" * 64 + b".example\r\n", b"From: a@" + b"a." * 200 + b"example\r\n",
        b"From: =?utf-8?q?a=40good=2Eexample?= <b@broken.example>\r\n", b"Resent-From: a@good.example\r\nSender: b@two.example\r\n",
        b"From: a@loop.example\r\n", b"From: a@broken.example\r\n", b"From: a@[127.0.0.1]\r\n", b"From: a@localhost\r\n", b"From: a@xn--0.example\r\n",
    ])
    return field + b"To: b@acme.example\r\nSubject: s\r\n\r\nx\r\n"


def dates(chance):
    date = chance.choice([
        b"Thu, 99 Zzz 99999999999 99:99:99 +99999", b"", b"1", b"Thu, 1 Jan 1970 00:00:00 -9999", b"(" * 500, b"31 Feb 2024 24:60:61 GMT",
        b"Thu, 1 Jan -1 00:00:00", b"9" * 4000,
    ])
    return HEAD + b"Date: " + date + b"\r\n\r\nx\r\n"


# Signatures


def signatures(chance):
    value = chance.choice([
        b"v=1; a=ed25519-sha256; d=good.example; s=key; c=relaxed/relaxed; h=from; bh=AA==; b=AA==", b"v=1", b"", b";;;;", b"=" * 900,
        b"v=1; a=rsa-sha256; d=" + b"a." * 300 + b"; s=x; h=from; bh=A; b=A", b"v=1; a=rsa-sha1; d=good.example; s=key; h=from:from; bh=; b=",
        b"v=1; a=rsa-sha256; d=good.example; s=key; h=" + b"from:" * some(chance, 5000) + b"; bh=AAAA; b=AAAA",
        b"v=1; a=rsa-sha256; l=99999999999999999999; x=-1; t=18446744073709551616; d=good.example; s=key; h=from; bh=AAAA; b=AAAA",
        b"v=1; a=rsa-sha256; d=broken.example; s=x; h=from; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA; r=y; atps=good.example",
        noise(chance, 300), b"v=1; a=rsa-sha256; d=\xc3\xa4.example; s=\xff; h=from; bh=AAAA; b=AAAA",
    ])
    return (b"DKIM-Signature: " + value + b"\r\n") * some(chance, 300) + HEAD + b"\r\n" + chance.choice([b"", b"x\r\n", b" \r\n\r\n \t\r\n"])


def chains(chance):
    fields = b""
    for at in range(some(chance, 120)):
        number = chance.choice([b"%d" % (at + 1), b"%d" % at, b"1", b"0", b"-1", b"4294967297", b""])
        fields += b"ARC-Seal: i=" + number + b"; a=rsa-sha256; cv=" + chance.choice([b"none", b"pass", b"x"]) + b"; d=good.example; s=key; b=AAAA\r\n"
        fields += b"ARC-Message-Signature: i=" + number + b"; a=rsa-sha256; d=good.example; s=key; h=from; bh=AAAA; b=AAAA\r\n"
        fields += b"ARC-Authentication-Results: i=" + number + b"; x.example; spf=pass\r\n"
    return fields + HEAD + b"\r\nx\r\n"


def results(chance):
    own = b"Authentication-Results: other.example; dkim=pass\r\n" + chance.choice([b"", b" folded=" + noise(chance, 50) + b"\r\n"])
    return own * some(chance, 300) + b"Delivered-To: x@acme.example\r\nReturn-Path: <>\r\n" + HEAD + b"\r\nx\r\n"


# Reports


def reports(chance):
    status = b"Reporting-MTA: dns; x\r\n\r\n" + b"Final-Recipient: rfc822; a@b\r\nAction: failed\r\nStatus: 9.9.9\r\n\r\n" * some(chance, 2000)
    kind = chance.choice([b"message/delivery-status", b"message/feedback-report", b"text/rfc822-headers", b"message/partial; id=1; number=0", b"message/external-body; access-type=x"])
    return mime(b"multipart/report; report-type=delivery-status; boundary=b") + b"--b\r\nContent-Type: " + kind + b"\r\n\r\n" + status + b"--b--\r\n"


BY_HAND = [
    nested, nested_messages, many_parts, same_boundaries, odd_boundary, many_fields, long_field, folded, long_line, large, encoded, charset,
    words, file_names, raw_bytes, nuls, line_ends, no_body, injected, authors, dates, signatures, chains, results, reports,
]


# Mutations


def flipped(chance, message):
    for _ in range(some(chance, 60)):
        message[chance.randrange(len(message))] = chance.randrange(256)


def cut(chance, message):
    del message[chance.randrange(len(message)) :]


def taken_out(chance, message):
    at = chance.randrange(len(message))
    del message[at : at + some(chance, 2000)]


def doubled(chance, message):
    at = chance.randrange(len(message))
    piece = message[at : at + some(chance, 3000)]
    message[at:at] = piece * some(chance, 20)


def put_in(chance, message):
    piece = chance.choice([b"\r\n", b"\r\n\r\n", b"--", b"\0", b"=?", b"?=", b'"', b"(", b"\\", b"\r\n ", b";", b"\xff\xff", b"\r\n.\r\n", b"%s%n", b"\r\n--b\r\n"])
    for _ in range(some(chance, 30)):
        at = chance.randrange(len(message) + 1)
        message[at:at] = piece


def swapped(chance, message):
    at, other = sorted(chance.randrange(len(message) + 1) for _ in range(2))
    message[:] = message[other:] + message[at:other] + message[:at]


MUTATIONS = [flipped, cut, taken_out, doubled, put_in, swapped]


class Maker:
    def __init__(self):
        self.corpus = corpus()
        self.kinds = [make.__name__ for make in BY_HAND] + ["mutated " + change.__name__ for change in MUTATIONS] + ["as it is"]
        self.senders = ["", "ada@good.example", "a@hard.example", "a@loop.example", "a@broken.example", "a@two.example", '"a b"@good.example', "x@nothing.example"]

    def make(self, chance):
        if chance.random() < 0.55:
            make = chance.choice(BY_HAND)
            return make.__name__, make(chance)
        message = bytearray(chance.choice(self.corpus))
        kind = "as it is"
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            change = chance.choice(MUTATIONS)
            kind = "mutated " + change.__name__
            if message:
                change(chance, message)
        return kind, bytes(message)

    def nonsense(self, chance):
        """A line that is not a valid command."""
        return chance.choice([
            "MAIL FROM:<a@b> SIZE=99999999999999999999", "RCPT TO:<>", "RCPT TO:<a%b@acme.example>", "BDAT -1", "BDAT 99999999999999999999",
            "EHLO " + "x" * 400, "X" * 900, "\x00\x01", "MAIL FROM:<" + "@a," * 80 + ":b@c>", "HELO\t", "VRFY a", "EXPN", "DATA x", "AUTH PLAIN AAAA",
        ])


def corpus():
    """Well-formed messages, and test messages of other projects."""
    found = [
        HEAD + b"\r\nHello\r\n",
        mime(b"multipart/mixed; boundary=b") + b"--b\r\nContent-Type: text/plain\r\n\r\nHi\r\n--b\r\nContent-Type: image/png; name=x.png\r\n"
        b"Content-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename=x.png\r\n\r\n" + base64.encodebytes(bytes(300)).replace(b"\n", b"\r\n") + b"--b--\r\n",
        mime(b"multipart/alternative; boundary=b") + b"--b\r\n\r\nHi\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<b>Hi</b>\r\n--b--\r\n",
    ]
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry" / "src"
    fetched = Path(__file__).resolve().parent.parent.parent / "target" / "peers" / "suites"
    python = Path(sysconfig.get_paths()["stdlib"], "test", "test_email", "data")
    for folder, pattern in [
        (python, "msg_*.txt"),
        (home, "*/mail-parser-0.1*/resources/eml/**/*.eml"),
        (home, "*/mail-auth-0.1*/resources/**/*.eml"),
        (fetched, "**/dkim/tests/data/*.m*"),
    ]:
        for file in sorted(folder.glob(pattern)) if folder.is_dir() else []:
            data = file.read_bytes()
            if file.is_file() and 0 < len(data) <= CORPUS_BYTES_MAX:
                found.append(data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    return found[:CORPUS_MAX]
