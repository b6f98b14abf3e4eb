"""`Driver`: the process that exposes one SDK, one JSON line for each request and answer."""

import json
import os
import queue
import subprocess
import sys
import threading

TOOLCHAIN_MISSING = 77
ANSWER_TIMEOUT_S = 60


class ToolchainMissing(Exception):
    """The driver cannot run on this machine; the text says what is missing."""


class DriverFailed(Exception):
    """The driver ended, or did not answer."""


class Driver:
    def __init__(self, program, language, server, proxy, verbose):
        self.language, self.verbose, self.last_id = language, verbose, 0
        if not program.exists():
            raise DriverFailed(f"{program} does not exist")
        # The environment is what a user would set; scenarios make further clients with `new`.
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment |= {"POSTRIDER_API_KEY": server.api_key, "POSTRIDER_BASE_URL": proxy.base_url}
        self.process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
            cwd=program.parent, bufsize=0,
        )
        self.lines, self.diagnostics = queue.Queue(), []
        threading.Thread(target=self._read_answers, daemon=True).start()
        self.reader_of_errors = threading.Thread(target=self._read_errors, daemon=True)
        self.reader_of_errors.start()
        try:
            self.request({"new": {}})
        except DriverFailed as failure:
            if self.process.poll() == TOOLCHAIN_MISSING:
                raise ToolchainMissing(self.errors()) from failure
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _read_answers(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.diagnostics.append(line.decode(errors="replace"))
            del self.diagnostics[:-50]

    def errors(self):
        self.reader_of_errors.join(2)
        return "".join(self.diagnostics).strip()

    def request(self, message):
        self.last_id += 1
        message = {"id": self.last_id, **message}
        if self.verbose:
            print(f"{self.language} <- {json.dumps(message)}", file=sys.stderr)
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        except OSError:
            self.process.wait()
            raise DriverFailed(f"the driver ended: {self.errors()}") from None
        try:
            line = self.lines.get(timeout=ANSWER_TIMEOUT_S)
        except queue.Empty:
            raise DriverFailed(f"the driver did not answer within {ANSWER_TIMEOUT_S} s") from None
        if line is None:
            self.process.wait()
            raise DriverFailed(f"the driver ended: {self.errors()}")
        if self.verbose:
            print(f"{self.language} -> {line.decode(errors='replace').rstrip()}", file=sys.stderr)
        try:
            answer = json.loads(line)
        except ValueError:
            raise DriverFailed(f"the driver wrote a line that is no JSON: {line[:200]!r}") from None
        if answer.get("id") != self.last_id:
            raise DriverFailed(f"the driver answered {answer.get('id')} instead of {self.last_id}")
        return answer
