"""Valid and invalid certificates of a private CA, and TLSA records for them.

    certificates = Certificates(place, names)
    certificates.contexts["expired"]; certificates.tlsa("3 1 1 self")
"""

import hashlib
import ssl

from check import program, run

EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
ELSEWHERE = ["elsewhere.example"]
# Signer, names (`None`: the hosts' own), days of validity, and further certificates to send.
KINDS = {
    "good": ("ca", None, 2, []),
    "whole": ("ca", None, 2, ["ca"]),
    "chain": ("middle", None, 2, ["middle"]),
    "expired": ("ca", None, -1, []),
    "expired-whole": ("ca", None, -1, ["ca"]),
    "other": ("ca", ELSEWHERE, 2, []),
    "other-whole": ("ca", ELSEWHERE, 2, ["ca"]),
    "self": (None, None, 2, []),
    # Self-signed; it also sends a CA certificate that did not sign it.
    "stray": (None, None, 2, ["ca"]),
}


class Certificates:
    def __init__(self, place, names):
        self.place, self.openssl = place, program("openssl")
        self.openssl_(["req", "-x509", *EC, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca"])
        self.make("middle", "ca", "basicConstraints=critical,CA:TRUE\n", 2)
        for kind, (signer, others, days, _) in KINDS.items():
            names_of_it = ",".join(f"DNS:{name}" for name in others or names)
            self.make(kind, signer, f"subjectAltName={names_of_it}\n", days)
        self.contexts = {kind: self.context(kind) for kind in KINDS}
        # Requires a client certificate.
        self.contexts["demanding"] = self.context("good")
        self.contexts["demanding"].verify_mode = ssl.CERT_REQUIRED
        self.contexts["demanding"].load_verify_locations(place / "ca.pem")
        self.contexts["elderly"] = self.context("good")
        self.contexts["elderly"].maximum_version = ssl.TLSVersion.TLSv1_2
        self.roots = place / "ca.pem"

    def openssl_(self, words, given=None):
        return run([self.openssl, *words], given, cwd=self.place)

    def make(self, kind, signer, extensions, days):
        (self.place / f"{kind}.ext").write_text(extensions)
        self.openssl_(["req", *EC, "-keyout", f"{kind}.key", "-out", f"{kind}.csr", "-subj", f"/CN={kind}"])
        by = ["-CA", f"{signer}.pem", "-CAkey", f"{signer}.key", "-CAcreateserial"] if signer else ["-signkey", f"{kind}.key"]
        options = ["-days", str(days), "-extfile", f"{kind}.ext", "-out", f"{kind}.pem"]
        self.openssl_(["x509", "-req", "-in", f"{kind}.csr", *by, *options])

    def context(self, kind):
        chain_file = self.place / f"{kind}.shown"
        chain_file.write_text("".join((self.place / f"{one}.pem").read_text() for one in [kind, *KINDS[kind][3]]))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain_file, self.place / f"{kind}.key")
        return context

    def tlsa(self, spec):
        """Data of a TLSA record given as `usage selector matching kind`; `=…` in place of the kind is literal data."""
        *numbers, kind = spec.split()
        if kind.startswith("="):
            return " ".join([*numbers, kind[1:]])
        data = ssl.PEM_cert_to_DER_cert((self.place / f"{kind}.pem").read_text())
        if numbers[1] == "1":
            public = self.place / f"{kind}.public"
            self.openssl_(["x509", "-in", f"{kind}.pem", "-noout", "-pubkey", "-out", f"{kind}.pub"])
            self.openssl_(["pkey", "-pubin", "-in", f"{kind}.pub", "-outform", "DER", "-out", str(public)])
            data = public.read_bytes()
        digest = {"0": lambda: data, "1": hashlib.sha256(data).digest, "2": hashlib.sha512(data).digest}
        return " ".join([*numbers, digest[numbers[2]]().hex()])
