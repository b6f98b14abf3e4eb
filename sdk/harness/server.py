"""`DevServer`: `postrider dev` on free ports with a temporary data directory."""

import json
import socket
import subprocess
import tempfile
import threading


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class DevServer:
    def __init__(self, binary):
        self.binary = binary

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="postrider-sdk-")
        # Ports are chosen anew if another program took one in between.
        for _ in range(5):
            if self._start():
                return self
        raise RuntimeError("postrider dev does not start: " + self.errors())

    def _start(self):
        self.port, submission, mx = free_port(), free_port(), free_port()
        self.log = open(self.directory.name + "/log", "w+b")
        self.process = subprocess.Popen(
            [
                self.binary, "dev", "--json", "--data-dir", self.directory.name + "/data",
                "--api", f"127.0.0.1:{self.port}", "--submission", f"127.0.0.1:{submission}", "--mx", f"127.0.0.1:{mx}",
            ],
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            return False
        self.ready = json.loads(line)
        self.address = ("127.0.0.1", self.port)
        self.api_key = self.ready["api_key"]
        self.base_url = self.ready["api"]
        # Read on: a full pipe would stop the server.
        threading.Thread(target=self._drain, daemon=True).start()
        return True

    def _drain(self):
        for _ in self.process.stdout:
            pass

    def errors(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-2000:]

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.directory.cleanup()
