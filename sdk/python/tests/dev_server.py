"""`DevServer`: a `postrider dev` for tests, in a directory of its own."""

import json
import os
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]


def find_binary():
    """The server's binary: TEST_POSTRIDER, or the repository's."""
    named = os.environ.get("TEST_POSTRIDER")
    candidates = (
        [Path(named)] if named else [REPOSITORY / "target" / kind / "postrider" for kind in ("debug", "release")]
    )
    return next((path for path in candidates if path.is_file()), None)


class DevServer:
    def __enter__(self):
        binary = find_binary()
        if binary is None:
            raise unittest.SkipTest("there is no postrider binary: build it, or set TEST_POSTRIDER")
        self.folder = tempfile.TemporaryDirectory()
        ports = [f"--{name}=127.0.0.1:0" for name in ("api", "submission", "mx")]
        command = [str(binary), "dev", "--json", "--data-dir", self.folder.name + "/dev", *ports]
        with open(self.folder.name + "/log", "wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("postrider dev did not start: " + Path(self.folder.name, "log").read_text())
        ready = json.loads(line)
        self.url, self.api_key, self.domain = ready["api"], ready["api_key"], ready["domain"]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()
        self.folder.cleanup()

    def inbox(self, path=""):
        """Content of the inbox, as its page reads it."""
        with urllib.request.urlopen(f"{self.url}/inbox/messages{path}") as response:
            content = response.read()
        return content if path.endswith("/raw") else json.loads(content)

    def message(self, word):
        """Waits until a message with the word is in the inbox, and returns it."""
        while True:
            found = self.inbox("?search=" + word)["messages"]
            if found:
                return self.inbox(f"/{found[0]['id']}")
