#!/usr/bin/env python3
"""Tries the packages as an operator would: installs, upgrades, refuses an upgrade, removes, purges; runs the container.

    tests/packages/run.py --postrider target/dist/postrider            all
    tests/packages/run.py --postrider target/dist/postrider debian     only: debian, container, installer

It needs root, cargo-deb, cargo-cyclonedx, lintian, shellcheck, mmdebstrap, umoci and minisign; missing ones are named,
and the tests that need them are skipped. The Debian package is tried in a chroot of Debian's stable release.
"""

import argparse
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "target" / "packages"
START_S = 60
SUITE = "bookworm"
CONFIGURATION = """hostname = "mx1.example.net"
data_dir = "/var/lib/postrider"
[api]
listen = ["127.0.0.1:{api}"]
base_url = "https://api.example.net"
"""


# Versions, and newer ones (semver.org, section 11).
OLDER = [
    ("0.1.0", "0.1.1"), ("0.9.0", "0.10.0"), ("2.0.0", "10.0.0"), ("1.0.0-rc.1", "1.0.0"), ("1.0.0-rc.2", "1.0.0-rc.10"),
    ("1.0.0-alpha", "1.0.0-alpha.1"), ("1.0.0-alpha.1", "1.0.0-alpha.beta"), ("0.9.0", "1.0.0-rc.1"),
]


class Failed(Exception):
    """A package does not do what it should."""


def run(*command, ok=True, **options):
    """Runs a command and returns its output. `ok` says whether it must succeed or fail."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if (done.returncode == 0) != ok:
        raise Failed(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(condition, text):
    if not condition:
        raise Failed(text)


class Server:
    """A server in a root directory, until the end of the `with` block."""

    def __init__(self, root, user=None):
        self.root, self.user = root, user

    def enter(self, *words):
        user = [f"--userspec={self.user}"] if self.user else []
        return ["chroot", *user, str(self.root), *words]

    def __enter__(self):
        command = self.enter("/usr/bin/postrider", "serve", "--config", "/etc/postrider/postrider.toml")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until = time.monotonic() + START_S
        socket = self.root / "var/lib/postrider/admin.sock"
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise Failed(f"the server does not start ({socket}):\n{self.process.stdout.read()}")
            time.sleep(0.1)
        return self

    def answers(self):
        words = self.enter("/usr/bin/postrider", "admin", "--config", "/etc/postrider/postrider.toml", "account", "list")
        return subprocess.run(words, capture_output=True).returncode == 0

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        text, _ = self.process.communicate(timeout=START_S)
        expect(self.process.returncode == 0, f"the server exits with {self.process.returncode}:\n{text}")


def build_package(binary, version):
    run(ROOT / "packaging/debian/build", binary, env={**os.environ, "DEB_VERSION": version, "DEB_FAST": "1"})
    [package] = PACKAGES.glob(f"postrider_{version}_*.deb")
    return package


def make_chroot(work, *packages):
    chroot = work / "chroot"
    include = [f"--include={','.join(packages)}"] if packages else []
    run("mmdebstrap", "--variant=minbase", *include, SUITE, chroot)
    return chroot


def write_configuration(root, **values):
    file = root / "etc/postrider/postrider.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    # A container runtime writes it.
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    file.write_text(CONFIGURATION.format(**{"api": 12025, **values}))
    return file


def newer_format(store):
    """Writes a header with format 99 into the store's newest log segment; returns a function that undoes it."""
    segment = sorted(store.glob("log-*.seg"))[-1]
    old = segment.read_bytes()[:64]
    content = old[:8] + struct.pack("<I", 99) + old[12:60]
    header = content + struct.pack("<I", zlib.crc32(content))

    def write(first):
        with segment.open("r+b") as file:
            file.write(first)

    write(header)
    return lambda: write(old)


def refuse_newer_format(root, refused_install, version):
    """A store of a newer format stops the upgrade, and the refusal says what to do."""
    undo = newer_format(root / "var/lib/postrider/store")
    text = refused_install()
    expect("format 99" in text, f"the refusal does not name the format:\n{text}")
    expect("install a version that reads it" in text, f"the refusal does not say what to do:\n{text}")
    expect(version().startswith("0.1.1-1 install ok installed"), f"a refused upgrade leaves {version()}")
    undo()


def debian(binary, work):
    """The Debian package."""
    first, second, third = (build_package(binary, version) for version in ("0.1.0", "0.1.1", "0.1.2"))
    found = run("lintian", "--fail-on", "error,warning", "--info", first)
    print(found, end="")
    unit = work / "postrider.service"
    unit.write_text((ROOT / "etc/postrider.service").read_text().replace("/usr/bin/postrider", str(binary)))
    run("systemd-analyze", "verify", "--man=no", unit)

    root = make_chroot(work, "ca-certificates")
    for package in (first, second, third):
        shutil.copy(package, root / "srv")
    inside = lambda *words, ok=True: run("chroot", root, *words, ok=ok)
    install = lambda package, ok=True: inside("dpkg", "-i", f"/srv/{package.name}", ok=ok)
    version = lambda: inside("dpkg-query", "-W", "-f", "${Version} ${Status}", "postrider")

    text = install(first)
    expect("postrider setup" in text, f"the first installation does not say what to do next:\n{text}")
    expect((root / "usr/share/man/man1/postrider.1.gz").exists(), "there is no manual page")
    expect((root / "usr/share/bash-completion/completions/postrider").exists(), "there is no completion")
    expect((root / "etc/default/postrider").stat().st_mode & 0o777 == 0o600, "everybody can read /etc/default/postrider")
    enabled = root / "etc/systemd/system/multi-user.target.wants/postrider.service"
    expect(enabled.is_symlink(), "the service does not start at boot")

    configuration = write_configuration(root)
    # The last line has no end of line, and other lines are no settings of postrider.
    (root / "etc/default/postrider").write_text('# secrets\nPATH=/nowhere\nPOSTRIDER_A B=1\nPOSTRIDER_LOG_LEVEL="warn"')
    (root / "var/lib/postrider").mkdir(mode=0o700, exist_ok=True)
    with Server(root) as server:
        text = install(second)
        expect(version().startswith("0.1.1-1 install ok installed"), f"the upgrade did not install:\n{text}")
        expect(server.answers(), "the server ended during the upgrade")

        good = configuration.read_text()
        configuration.write_text(good + "[nonsense]\nkey = 1\n")
        text = install(third, ok=False)
        expect("nonsense" in text and "Nothing was changed" in text, f"the refusal gives no reason:\n{text}")
        expect(version().startswith("0.1.1-1 install ok installed"), f"a refused upgrade leaves {version()}")
        configuration.write_text(good)
        expect(server.answers(), "the server ended when an upgrade was refused")
        refuse_newer_format(root, lambda: install(third, ok=False), version)
        expect(server.answers(), "the server ended when the format of its store was refused")

    refuse_newer_format(root, lambda: install(third, ok=False), version)
    text = install(third)
    expect(version().startswith("0.1.2-1 install ok installed"), f"the upgrade did not install:\n{text}")
    with Server(root):
        pass
    # Back to an earlier version: possible, because both read the format.
    install(second)

    inside("dpkg", "--remove", "postrider")
    expect(configuration.exists() and not (root / "usr/bin/postrider").exists(), "removal keeps the wrong files")
    key = configuration.parent / "secret.key"
    key.write_text("the key of the mail")
    inside("dpkg", "--purge", "postrider")
    expect(not configuration.exists(), "purge leaves the configuration")
    expect(key.exists(), "purge removes the key of the mail")
    expect(not (root / "etc/default/postrider").exists(), "purge leaves /etc/default/postrider")
    expect((root / "var/lib/postrider/store").exists(), "purge removes mail")


def container(binary, work):
    """The container image."""
    digests = {run(ROOT / "packaging/container/build", binary, work / name).split()[-1] for name in ("oci", "again")}
    expect(len(digests) == 1, f"two builds of one binary differ: {digests}")
    run("umoci", "unpack", "--image", f"{work}/oci:latest", work / "bundle")
    root = work / "bundle/rootfs"
    programs = [path for path in root.rglob("*") if path.is_file() and os.access(path, os.X_OK) and ".so" not in path.name]
    expect(programs == [root / "usr/bin/postrider"], f"the image has other programs: {programs}")
    write_configuration(root, api=12026)
    data = (root / "var/lib/postrider").stat()
    expect((data.st_uid, data.st_mode & 0o777) == (10001, 0o700), "the data directory has the wrong owner or mode")
    with Server(root, user="10001:10001") as server:
        health = run(*server.enter("/usr/bin/postrider", "status", "--config", "/etc/postrider/postrider.toml"))
        expect("listener" in health, f"the health check prints:\n{health}")


def older_status(function, awk, first, second):
    """The exit status of `is_older` with an awk; 9 if it fails."""
    text = "fail() { exit 9; }\n" + function.replace("    awk ", f"    {awk} ", 1) + 'is_older "$1" "$2"'
    return subprocess.run(["sh", "-c", text, "sh", first, second]).returncode


def compare_versions(script):
    """Checks the order of versions in install.sh."""
    text = script.read_text()
    start = text.index("is_older() {")
    function = text[start : text.index("\n}\n", start) + 3]
    for awk in [name for name in ("mawk", "gawk", "original-awk") if shutil.which(name)]:
        for older, newer in OLDER:
            for first, second, wanted in ((older, newer, True), (newer, older, False), (older, older, False)):
                status = older_status(function, awk, first, second)
                expect(status == (0 if wanted else 1), f"{awk}: is {first} older than {second}? Exit status {status}")
    status = older_status(function, "false", "1.0.0", "2.0.0")
    expect(status == 9, f"a failure of awk counts as an answer: exit status {status}")


def installer(binary, work):
    """install.sh."""
    script = ROOT / "packaging/install.sh"
    run("shellcheck", "--shell=sh", script)
    compare_versions(script)
    run("minisign", "-G", "-W", "-f", "-p", work / "release.pub", "-s", work / "release.key")
    command = [ROOT / "packaging/release", "--from", "/releases"]
    keys = ["--secret-key", work / "release.key", "--public-key", work / "release.pub"]
    run(*command, *keys, binary, env={**os.environ, "DEB_FAST": "1"})
    root = make_chroot(work, "ca-certificates", "minisign")
    latest = root / "releases/latest"
    shutil.copytree(PACKAGES / "release", latest)
    inside = lambda *words, ok=True: run("chroot", root, *words, ok=ok)

    text = inside("sh", "/releases/latest/install.sh", "--dry-run")
    expect("would run: apt-get install" in text, f"the dry run prints:\n{text}")
    expect(not (root / "usr/bin/postrider").exists(), "the dry run installs")

    # A download that breaks off runs nothing.
    whole = (latest / "install.sh").read_text()
    for part in range(0, len(whole) - 10, 400):
        (root / "part.sh").write_text(whole[:part])
        subprocess.run(["chroot", root, "sh", "/part.sh"], capture_output=True)
        expect(not (root / "usr/bin/postrider").exists(), f"the first {part} bytes of the script install")

    package = next(latest.glob("*.deb"))
    good = package.read_bytes()
    package.write_bytes(good + b"x")
    expect("checksum" in inside("sh", "/releases/latest/install.sh", ok=False), "a changed package is not refused")
    package.write_bytes(good)
    sums = (latest / "SHA256SUMS").read_text()
    (latest / "SHA256SUMS").write_text(sums + "\n")
    expect("signature" in inside("sh", "/releases/latest/install.sh", ok=False), "changed checksums are not refused")
    (latest / "SHA256SUMS").write_text(sums)
    shutil.copytree(latest, root / "releases/9.9.9")
    text = inside("sh", "/releases/latest/install.sh", "--version", "9.9.9", ok=False)
    expect("9.9.9" in text, f"another version than the named one is not refused:\n{text}")

    # An old release with a valid signature, offered as the newest one.
    installed = root / "usr/bin/postrider"
    installed.write_text("#!/bin/sh\necho postrider 9.9.8\n")
    installed.chmod(0o755)
    text = inside("sh", "/releases/latest/install.sh", ok=False)
    expect("older than the installed 9.9.8" in text and "--allow-downgrade" in text, f"an old release is not refused:\n{text}")
    expect("9.9.8" in inside("postrider", "--version"), "a refused release is installed")
    text = inside("sh", "/releases/latest/install.sh", "--allow-downgrade")
    expect("replacing 9.9.8" in text and "9.9.8" not in inside("postrider", "--version"), f"--allow-downgrade does not install:\n{text}")
    text = inside("sh", "/releases/latest/install.sh")
    expect("replacing" not in text, f"the installed version counts as older than itself:\n{text}")
    upgrade_from_archive(root, inside)


def upgrade_from_archive(root, inside):
    """On a distribution without a package: the new program checks configuration and store before it replaces the old."""
    release = root / "etc/os-release"
    release.unlink()
    release.write_text("ID=other\n")
    install = lambda ok=True: inside("sh", "/releases/latest/install.sh", ok=ok)
    text = install()
    expect("postrider setup" in text, f"the first installation does not say what to do next:\n{text}")
    configuration = write_configuration(root)
    (root / "var/lib/postrider").mkdir(mode=0o700, exist_ok=True)
    with Server(root):
        pass
    text = install()
    expect("systemctl restart postrider" in text, f"the upgrade does not say what to do next:\n{text}")

    # Replaced only if the upgrade is not refused.
    installed = root / "usr/bin/postrider"
    installed.write_text("#!/bin/sh\necho postrider 0.0.1\n")
    is_old = lambda: installed.stat().st_size < 100
    good = configuration.read_text()
    configuration.write_text(good + "[nonsense]\nkey = 1\n")
    text = install(ok=False)
    expect("nonsense" in text and "Nothing was changed" in text, f"the refusal gives no reason:\n{text}")
    expect(is_old(), "a refused configuration is upgraded")
    configuration.write_text(good)
    undo = newer_format(root / "var/lib/postrider/store")
    text = install(ok=False)
    expect("format 99" in text and "install a version that reads it" in text, f"the refusal gives no reason:\n{text}")
    expect(is_old(), "a refused store is upgraded")
    undo()
    install()
    expect(not is_old(), "the program is not replaced")


TESTS = {"debian": debian, "container": container, "installer": installer}
TOOLS = {
    "debian": ["cargo-deb", "lintian", "mmdebstrap", "systemd-analyze"],
    "container": ["umoci"],
    "installer": ["cargo-deb", "cargo-cyclonedx", "minisign", "mmdebstrap", "shellcheck", "umoci"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--postrider", required=True, type=Path)
    parser.add_argument("names", nargs="*", metavar="TEST", help=", ".join(TESTS))
    args = parser.parse_args()
    failed = False
    for name in args.names or TESTS:
        missing = [tool for tool in TOOLS[name] if not shutil.which(tool)]
        if missing:
            print(f"{name}: skipped: {', '.join(missing)} is missing")
            continue
        with tempfile.TemporaryDirectory(prefix="postrider-packages-") as work:
            try:
                TESTS[name](args.postrider.resolve(), Path(work))
                print(f"{name}: passed")
            except Failed as failure:
                print(f"{name}: failed: {failure}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
