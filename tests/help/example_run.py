"""`ExampleRun`: one example with its own home directory, and the processes that it starts."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk" / "harness"))

from webhook_receiver import WebhookReceiver  # noqa: E402

WAIT_S = 60
# Names in the help, and their values in the test.
SERVER, RECEIVER, EMAIL = "https://mail.example.com", "localhost:3000/webhooks", "msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"
APPROVAL = "apr_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"
STORED_PROFILES = ["default", "production", "staging"]


class Failed(Exception):
    """An example does not do what its command documents."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


class Home:
    """A home directory with a key, profiles and a browser that only notes its URL."""

    def __init__(self, directory, program, server):
        self.path, self.server = Path(directory), server
        tools = self.path / "tools"
        tools.mkdir(parents=True)
        (tools / "postrider").symlink_to(Path(program).resolve())
        browser = tools / "browser"
        browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > "{self.path}/opened"\n')
        browser.chmod(0o755)
        (self.path / "key.txt").write_text(server.api_key)
        self.environment = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        self.environment |= {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(self.path), "BROWSER": str(browser)}

    def log_in(self):
        """Stores the profiles."""
        for profile in STORED_PROFILES:
            command = f"postrider login --profile {profile} --base-url {self.server.base_url} < key.txt"
            subprocess.run(["sh", "-c", command], cwd=self.path, env=self.environment, capture_output=True, check=True)

    def copy_profiles(self, other):
        shutil.copytree(other.path / ".config", self.path / ".config")


class Process:
    """A command that runs. Its lines are read as they come."""

    def __init__(self, command, home):
        self.command, self.lines = command, {"stdout": [], "stderr": []}
        self.changed = threading.Condition()
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=home.path, env=home.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.readers = [
            threading.Thread(target=self._read, args=(name, getattr(self.process, name)), daemon=True) for name in self.lines
        ]
        for reader in self.readers:
            reader.start()

    def _read(self, name, pipe):
        for line in pipe:
            with self.changed:
                self.lines[name].append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, name, fits, what):
        """Waits for a line. Returns what `fits` makes of it."""
        def found():
            return next((hit for hit in map(fits, list(self.lines[name])) if hit), None)

        def ended():
            return not any(reader.is_alive() for reader in self.readers)

        with self.changed:
            self.changed.wait_for(lambda: found() or ended(), WAIT_S)
            hit = found()
        expect(hit, f"{what} is not shown: {self.lines}")
        return hit

    def wait_for_notice(self, text):
        self.wait_for("stderr", lambda line: text in line, f"`{text}`")

    def wait_for_json(self, fits, what):
        """Waits for an object on standard output."""
        def parsed(line):
            value = json.loads(line)
            return value if fits(value) else None

        return self.wait_for("stdout", parsed, what)

    def has_ended(self, within_s):
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def interrupt(self):
        """Ends the command as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        return self.finish()

    def finish(self, status=0):
        """Waits for the end. Returns standard output."""
        expect(self.has_ended(WAIT_S), f"the command does not end: {self.lines}")
        for reader in self.readers:
            reader.join(WAIT_S)
        expect(self.process.returncode == status, f"exit status {self.process.returncode}, not {status}: {self.lines}")
        return "\n".join(self.lines["stdout"])

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class ExampleRun:
    """An example that runs in a new home directory, and what it needs of the server."""

    def __init__(self, command, home, fixtures):
        self.home, self.fixtures, self.server = home, fixtures, home.server
        self.receiver, self.processes = WebhookReceiver(), []
        self.email_id = fixtures.email_id()["email_id"] if EMAIL in command else None
        receiver = re.sub(r"^http://127\.0\.0\.1", "localhost", self.receiver.url)
        self.command = command.replace(SERVER, self.server.base_url).replace(RECEIVER, receiver)
        if self.email_id:
            self.command = self.command.replace(EMAIL, self.email_id)
        self.approval_id = fixtures.approval_id(None)["approval_id"] if APPROVAL in command else None
        if self.approval_id:
            self.command = self.command.replace(APPROVAL, self.approval_id)

    def path(self, name):
        return self.home.path / name

    def write(self, name, text):
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(text)

    def start(self, command=None):
        process = Process(command or self.command, self.home)
        self.processes.append(process)
        return process

    def output(self, status=0):
        """Runs the example to its end. Returns standard output."""
        return self.start().finish(status)

    def value(self, status=0):
        """The same; the output must be one JSON value."""
        return json.loads(self.output(status))

    def prepare(self, command):
        """Runs another command before the example."""
        self.start(command).finish()

    def answer_on_terminal(self, question, answer):
        """Runs the example on a terminal, and answers its question. Returns what the terminal shows."""
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            ["sh", "-c", f"exec {self.command}"], cwd=self.home.path, env=self.home.environment, stdin=follower, stdout=follower,
            stderr=follower, start_new_session=True,
        )
        os.close(follower)
        watch = threading.Timer(WAIT_S, process.kill)
        watch.start()
        shown, is_answered = "", False
        try:
            while chunk := read_terminal(leader):
                shown += chunk
                if question in shown and not is_answered:
                    os.write(leader, answer.encode() + b"\n")
                    is_answered = True
            process.wait()
        finally:
            watch.cancel()
            os.close(leader)
        expect(process.returncode == 0 and is_answered, f"exit status {process.returncode}: {shown}")
        return shown

    def send_email(self, **fields):
        return self.fixtures.email_id(**fields)["email_id"]

    def delete_templates(self):
        for template in self.fixtures.get("/templates?limit=100")["templates"]:
            self.fixtures.call("DELETE", f"/templates/{template['id']}")

    def close(self):
        for process in self.processes:
            process.kill()
        self.receiver.close()


def read_terminal(leader):
    try:
        return os.read(leader, 4096).decode(errors="replace")
    except OSError:
        # Linux reports the end of a terminal as an error.
        return ""


def until(look, what):
    """Repeats a look until it finds something."""
    deadline = time.monotonic() + WAIT_S
    while not (found := look()):
        expect(time.monotonic() < deadline, f"{what} does not come")
        time.sleep(0.05)
    return found
