#!/usr/bin/env python3
"""Runs the code blocks of the guides (README.md, docs/*.md, docs/user/*.md) against a running `postrider dev`.

    tests/guides/run.py --postrider target/debug/postrider                      all guides
    tests/guides/run.py --postrider target/debug/postrider WEBHOOKS quick-start only these guides

Each guide has its own server and shell, in which its `sh` blocks run in order. A guide with `<!-- continues: OTHER.md
-->` uses the shell of that guide. A block fails if a command fails or a request returns an error. The shell has $API,
$KEY, $DOMAIN, $SMTP and $STX_SMTP, which the server prints, and $REPOSITORY, this repository. `rnl_…` is replaced by the
key and default addresses by the server's. Any other `…` in a block that is run is a failure. Blocks of lists are
indented.

    <!-- not run: WHY -->        before a block: skip it
    <!-- run first: COMMANDS --> commands to run before the next block, hidden from the reader

A `json` block must be valid JSON. Directly after a block that is run, its keys must all occur in the printed object. A
`toml` block, inserted into a configuration, must pass `postrider check`. Blocks in `python`, `js`, `php`, `ruby` and `go`
must parse.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK_S = 60
START_S = 120
DEFAULTS = {"api": "127.0.0.1:8025", "submission": "127.0.0.1:1587", "mx": "127.0.0.1:1025"}
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*$", re.S)
FIRST = re.compile(r"<!-- run first:(.+?)-->", re.S)
CONTINUES = re.compile(r"<!-- continues: ([\w-]+)\.md -->")
# Ending of the file, and the command that parses it.
PARSERS = {
    "js": ["mjs", "node", "--check"],
    "php": ["php", "php", "-l"],
    "ruby": ["rb", "ruby", "-c"],
    "go": ["go", "gofmt", "-e"],
}


class Failed(Exception):
    """A block does not do what it documents."""


class Block:
    def __init__(self, guide, line, kind, text):
        self.guide, self.line, self.kind, self.text = guide, line, kind, text
        self.reason, self.first, self.follows = None, "", False

    def __str__(self):
        return f"{self.guide.name}:{self.line} ({self.kind})"


def parse_blocks(guide):
    text, found, end = guide.read_text(), [], 0
    for fence in FENCE.finditer(text):
        between = text[end : fence.start()]
        block = Block(guide, text.count("\n", 0, fence.start()) + 1, fence[2], textwrap.dedent(fence[3]))
        if reason := NOT_RUN.search(between):
            block.reason = reason[1]
        block.first = "".join(commands[1] for commands in FIRST.finditer(between))
        block.follows = not between.strip()
        found.append(block)
        end = fence.end()
    return found


# The server and the shell


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Shell:
    """A server and its shell."""

    def __init__(self, binary, directory):
        self.directory = Path(directory)
        tools = self.directory / "tools"
        tools.mkdir()
        (tools / "postrider").symlink_to(binary)
        curl = tools / "curl"
        # An HTTP error status is a failure.
        curl.write_text(f'#!/bin/sh\nexec {shutil.which("curl")} --fail-with-body "$@"\n')
        curl.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTRIDER_")}
        environment |= {"PATH": f"{tools}:{environment['PATH']}", "XDG_DATA_HOME": str(self.directory)}
        any_port = "127.0.0.1:0"
        self.log = (self.directory / "log").open("w")
        command = [binary, "dev", "--json", "--api", any_port, "--submission", any_port, "--mx", any_port]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment)
        ready = self.server.stdout.readline()
        if not ready:
            raise Failed("postrider dev does not start:\n" + (self.directory / "log").read_text())
        self.ready = json.loads(ready)
        addresses = {name: self.ready[name].split("//")[-1] for name in DEFAULTS}
        self.known = [(DEFAULTS[name], addresses[name]) for name in DEFAULTS] + [("rnl_…", self.ready["api_key"])]
        # The port of the reader's own program.
        port = free_port()
        self.known += [("127.0.0.1:3000", f"127.0.0.1:{port}"), ("PORT=3000", f"PORT={port}")]
        environment |= {
            "API": self.ready["api"],
            "KEY": self.ready["api_key"],
            "DOMAIN": self.ready["domain"],
            "SMTP": addresses["submission"],
            "STX_SMTP": self.ready["smtp_password"],
            "REPOSITORY": str(ROOT),
        }
        self.shell = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment, cwd=self.directory, start_new_session=True,
        )
        self.count = 0

    def run(self, commands):
        """Runs commands. Returns their output."""
        for documented, real in self.known:
            commands = commands.replace(documented, real)
        if "…" in commands:
            raise Failed("the block contains `…`")
        self.count += 1
        script, end = self.directory / f"block-{self.count}", f"== end of block {self.count} =="
        script.write_text(f"set -e -o pipefail\n{commands}\n")
        # `set -e`: a failed command ends the shell.
        command = f"trap 'code=$?; echo; echo \"{end} $code\"' EXIT; source {script}; trap - EXIT; set +e; echo; echo '{end} 0'\n"
        try:
            self.shell.stdin.write(command)
            self.shell.stdin.flush()
        except BrokenPipeError:
            raise Failed("the shell has already ended") from None
        watch = threading.Timer(BLOCK_S, self.kill)
        watch.start()
        try:
            return self.read(end)
        finally:
            watch.cancel()

    def read(self, end):
        """The output up to the end marker of a block."""
        printed = []
        for line in self.shell.stdout:
            if line.startswith(end):
                if int(line.split()[-1]) != 0:
                    raise Failed("exit " + line.split()[-1] + ":\n" + "".join(printed)[-3000:])
                return "".join(printed)
            printed.append(line)
        raise Failed(f"the shell ended, or took longer than {BLOCK_S} s:\n" + "".join(printed)[-3000:])

    def kill(self):
        """Kills the shell and its children."""
        try:
            os.killpg(self.shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self):
        self.kill()
        self.server.terminate()
        try:
            self.server.wait(START_S)
        except subprocess.TimeoutExpired:
            self.server.kill()
            raise Failed("postrider dev does not exit") from None
        finally:
            self.log.close()


# Blocks of each kind


def expect_like(documented, printed, where="it"):
    """Checks that the printed value has every key of the documented one."""
    if isinstance(documented, dict):
        for key, value in documented.items():
            if not isinstance(printed, dict) or key not in printed:
                raise Failed(f"{where} has no `{key}`: {json.dumps(printed)[:2000]}")
            expect_like(value, printed[key], f"{where}.{key}")
    elif isinstance(documented, list) and documented:
        if not isinstance(printed, list) or not printed:
            raise Failed(f"{where} is not a non-empty list: {json.dumps(printed)[:2000]}")
        expect_like(documented[0], printed[0], f"{where}[0]")


def last_value(printed):
    """The last JSON value of an output."""
    for line in reversed(printed.strip().splitlines()):
        try:
            return json.loads(line)
        except ValueError:
            continue
    return None


def check_json(block, printed):
    documented = json.loads(block.text)
    if block.follows and printed is not None:
        expect_like(documented, last_value(printed))


def check_toml(block, binary):
    text = block.text
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        key, certificate = directory / "key.pem", directory / "certificate.pem"
        command = f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=mx1.example.net -keyout {key} -out {certificate}"
        subprocess.run(command.split(), capture_output=True, check=True)
        text = re.sub(r"/etc/[\w./-]*ca\.pem", str(certificate), text)
        text = re.sub(r'"/etc/[^"]*\.pem"', f'"{key}"', text)
        if "hostname = " not in text.split("[")[0]:
            text = f'hostname = "mx1.example.net"\ndata_dir = "{directory}/data"\n{text}'
        if "[tls" not in text:
            text += f'\n[tls]\ncertificate = "{certificate}"\nprivate_key = "{key}"\n'
        if "[api]" not in text:
            text += '\n[api]\nlisten = "127.0.0.1:8080"\n'
        if "[service]" not in text:
            text += '\n[service]\nsandbox_sender = "sandbox@example.net"\n'
        file = directory / "postrider.toml"
        file.write_text(text)
        done = subprocess.run([binary, "check", "--config", file], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(done.stderr)


def check_syntax(block):
    """Lets the language parse the block."""
    ending, *command = PARSERS[block.kind]
    text = block.text
    if block.kind == "php" and not text.startswith("<?php"):
        text = f"<?php\n{text}"
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, f"block.{ending}")
        file.write_text(text)
        done = subprocess.run([*command, file], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(done.stdout + done.stderr)


def missing_programs(block):
    """Returns the program that a block needs and that is not installed, if any."""
    programs = {"sh": ["swaks", "jq", "openssl"], "toml": ["openssl"]}.get(block.kind, PARSERS.get(block.kind, [])[1:2])
    used = [name for name in programs if block.kind != "sh" or re.search(rf"\b{name}\b", block.text + block.first)]
    return next((name for name in used if not shutil.which(name)), None)


def run_block(block, shell, binary, printed):
    """Runs a block. Returns its output, or `None` if blocks of this kind are not run."""
    if block.kind == "sh":
        return shell.run(block.first + block.text)
    if block.kind == "json":
        check_json(block, printed)
    elif block.kind == "toml":
        check_toml(block, binary)
    elif block.kind == "python":
        compile(block.text, str(block), "exec")
    elif block.kind in PARSERS:
        check_syntax(block)
    return None


def run_guides(guides, binary):
    """Runs guides that share a server. Returns the number of failed blocks."""
    failures, counts = 0, {"run": 0, "not run": 0}
    with tempfile.TemporaryDirectory() as directory:
        shell = Shell(binary, directory)
        try:
            for block in [block for guide in guides for block in parse_blocks(guide)]:
                if block.reason:
                    counts["not run"] += 1
                    printed = None
                    continue
                if missing := missing_programs(block):
                    print(f"  {block}: skipped: {missing} is not installed")
                    continue
                try:
                    printed = run_block(block, shell, binary, printed if block.follows else None)
                    counts["run"] += 1
                except (Failed, ValueError, SyntaxError) as failure:
                    print(f"  {block}: FAILED: {failure}")
                    failures += 1
                    if block.kind == "sh":
                        # The shell has ended, and later blocks depend on it.
                        break
        finally:
            shell.close()
    names = ", ".join(guide.name for guide in guides)
    print(f"  {names}: {counts['run']} blocks run, {counts['not run']} not, {failures} failed", flush=True)
    return failures


def grouped(guides):
    """Groups each guide with those that continue it."""
    groups = {guide: [guide] for guide in guides}
    for guide in guides:
        if before := CONTINUES.search(guide.read_text()):
            first = guide.with_name(f"{before[1]}.md")
            groups.setdefault(first, [first]).append(guide)
            groups.pop(guide)
    return groups.values()


def main():
    parser = argparse.ArgumentParser(description="Runs the code blocks of the guides.")
    parser.add_argument("--postrider", required=True, help="the binary")
    parser.add_argument("guides", nargs="*", help="WEBHOOKS, README, …")
    arguments = parser.parse_args()
    docs = ROOT / "docs"
    guides = [ROOT / "README.md", *sorted(docs.glob("*.md")), *sorted((docs / "user").glob("*.md"))]
    if arguments.guides:
        guides = [guide for guide in guides if guide.stem in arguments.guides]
    binary = str(Path(arguments.postrider).resolve())
    failures = sum(run_guides(group, binary) for group in grouped(guides))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
