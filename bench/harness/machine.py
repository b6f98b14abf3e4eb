"""The machine: packages, namespaces, processes and their cost.

CPU time is utime + stime from /proc/PID/stat, plus cutime + cstime for children that have ended and been waited for.
Memory is the sum of proportional set sizes (PSS), so that a page shared by many processes counts once.
"""

import ctypes.util
import fcntl
import os
import platform
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
OPEN_FILES = 65536
STOP_S = 20
READY_S = 30
# A process tree below this share of a core for a while counts as idle.
QUIET_SHARE = 0.1
QUIET_S_MAX = 90


class Failure(Exception):
    """A measurement failed; the run continues without it."""


def sudo():
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        sys.exit("bench: Postfix needs root: run it as root, or install sudo")
    return ["sudo"]


def install(tools, libraries):
    """Installs missing packages with apt without starting any service."""
    missing = {package for path, package in tools.items() if not os.path.exists(path)}
    missing |= {p for p, file in libraries.items() if not list(Path("/usr/lib").glob(f"*/{file}*"))}
    if not missing:
        return
    if not shutil.which("apt-get"):
        sys.exit("bench: please install (Debian's names): " + " ".join(sorted(missing)))
    print("bench: installing", *sorted(missing), flush=True)
    # RUNLEVEL=1 keeps invoke-rc.d from starting services.
    quiet = [*sudo(), "env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"]
    commands = [
        [*quiet, "apt-get", "update", "-q"],
        [*quiet, "apt-get", "install", "-q", "-y", "--no-install-recommends", *sorted(missing)],
    ]
    running = set(find("master"))
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"bench: {' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    if "postfix" in missing and set(find("master")) - running and Path("/run/systemd/system").exists():
        subprocess.run([*sudo(), "systemctl", "disable", "--now", "postfix", "opendkim"], capture_output=True)


def find(name):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def raise_loopback():
    """Sets lo up in a new network namespace (SIOCSIFFLAGS, IFF_UP) without iproute2."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh22x", b"lo", 0x1))


def own_resolver(base):
    """Mounts a private resolv.conf over the system's, in this mount namespace only."""
    libc = ctypes.CDLL(ctypes.util.find_library("c") or "libc.so.6", use_errno=True)
    private_and_recursive = 0x40000 | 0x4000
    libc.mount(None, b"/", None, private_and_recursive, None)
    for name, text in {"resolv.conf": "nameserver 127.0.0.53\n", "hosts": "127.0.0.1 localhost\n"}.items():
        replacement = base / name
        replacement.write_text(text)
        bind = 0x1000
        system_file = os.path.realpath(f"/etc/{name}")
        if libc.mount(str(replacement).encode(), system_file.encode(), None, bind, None) != 0:
            sys.exit(f"bench: cannot mount a private {name}: {os.strerror(ctypes.get_errno())}")


def lift_limits():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = OPEN_FILES if hard == resource.RLIM_INFINITY or hard >= OPEN_FILES else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def make_certificate(base):
    """An ECDSA P-256 certificate for both peers."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30".split()
    command += ["-subj", "/CN=mx.bench.test", "-addext", "subjectAltName=DNS:mx.bench.test,DNS:bench.test"]
    subprocess.run([*command, "-keyout", base / "key.pem", "-out", base / "cert.pem"], check=True, capture_output=True)
    (base / "key.pem").chmod(0o600)


def make_signing_key(base):
    """The RSA-2048 key that all senders sign with and the name server publishes."""
    run_quietly(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", signing_key(base)])


def signing_key(base):
    return base / "signing-key.pem"


def change_owner(directory):
    """Gives the results to the user who called sudo."""
    if "SUDO_UID" in os.environ:
        for path in [directory, *directory.iterdir()]:
            os.chown(path, int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))


def describe():
    cpu = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(), "load_1min": os.getloadavg()[0]}


# Processes


def tree(roots):
    """The processes and all their descendants."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = stat_fields(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], list(roots)
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def stat_fields(pid):
    """Fields of /proc/PID/stat from the state on (index 0 is field 3 of proc(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None


def cpu_s(roots):
    ticks = 0
    for pid in tree(roots):
        fields = stat_fields(pid)
        if fields:
            ticks += sum(int(value) for value in fields[11:15])
    return ticks / TICKS_PER_S


def cpu_s_of_ended_children():
    """CPU time of children that this process has waited for."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def quieten(roots):
    """Waits until the processes are idle."""
    before = cpu_s(roots)
    for _ in range(QUIET_S_MAX):
        time.sleep(1)
        spent = cpu_s(roots)
        if spent - before < QUIET_SHARE:
            return
        before = spent


def drop_caches():
    """Drops the page cache, so that files are read from disk, if that is allowed."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError:
        print("bench: cannot drop the page cache: files are read from memory", flush=True)


def memory_bytes(roots):
    """Sum of PSS over the process tree."""
    total = 0
    for pid in tree(roots):
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            pass
    return total


def peak_bytes(pid):
    """VmHWM of one process: recorded by the kernel, so no peak is missed."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def kernel_bytes():
    """Memory that the kernel uses for sockets and processes of the whole machine."""
    names = ("Slab:", "KernelStack:", "PageTables:")
    total = 0
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(names):
            total += int(line.split()[1]) * 1024
    return total


def stop(roots):
    """Sends SIGTERM to the roots, and after a while SIGKILL to the rest of their trees."""
    everyone = tree(roots)
    for pid in roots:
        signal_to(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while any(alive(pid) for pid in everyone) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in everyone:
        if alive(pid):
            signal_to(pid, signal.SIGKILL)


def alive(pid):
    fields = stat_fields(pid)
    return bool(fields) and fields[0] != "Z"


def signal_to(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def wait_for_port(host, port, who):
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, port), timeout=5) as connection:
                if connection.recv(512).startswith(b"220"):
                    return
        except OSError:
            pass
        time.sleep(0.02)
    raise Failure(f"{who} does not accept connections on {host}:{port}")


def run_quietly(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        text = (done.stdout + done.stderr).strip()[-1500:]
        raise Failure(f"{' '.join(str(part) for part in command)}: exit {done.returncode}: {text}")
    return done.stdout


def wait_until(done, who):
    deadline = time.monotonic() + READY_S
    while not done():
        if time.monotonic() > deadline:
            raise Failure(f"{who} is not ready after {READY_S} s")
        time.sleep(0.02)
