"""The examples of the README run as they are."""

import contextlib
import importlib.util
import io
import os
import re
import unittest
from pathlib import Path
from unittest import mock

import postrider

from .dev_server import DevServer

README = Path(__file__).resolve().parents[1] / "README.md"
NEEDED = {"AsyncPostrider": "httpx", "fastapi": "fastapi", "postrider.django import": "django"}
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
BODY = b'{"type":"email.sent","created_at":"2026","data":{}}'


def examples():
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.S)


def run(text):
    """Runs an example and returns its names and what it printed."""
    printed, names = io.StringIO(), {"__name__": "example"}
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "README.md", "exec"), names)
    return names, printed.getvalue()


class Readme(unittest.TestCase):
    def test_examples(self):
        with DevServer() as server, postrider.Postrider(server.api_key, server.url) as client:
            environment = {
                "POSTRIDER_API_KEY": server.api_key,
                "POSTRIDER_BASE_URL": server.url,
                "POSTRIDER_WEBHOOK_SECRET": SECRET,
            }
            with mock.patch.dict(os.environ, environment):
                for text in examples():
                    missing = [
                        module
                        for word, module in NEEDED.items()
                        if word in text and not importlib.util.find_spec(module)
                    ]
                    with self.subTest(text.splitlines()[1]):
                        if missing:
                            self.skipTest(f"{missing[0]} is not installed")
                        if "stream(" in text:
                            self.use_past_events(client, text)
                        else:
                            names, printed = run(text)
                            self.check(text, names, printed)
                            close(names)

    def use_past_events(self, client, text):
        """The stream begins now, so the example gets a cursor before events that are there."""
        cursor = client.webhook_events.list(order="asc", limit=1)["next_cursor"]
        names, printed = run(text.replace("stream(types", f'stream(after="{cursor}", types'))
        self.assertRegex(printed, r"^\S+ email\.(delivered|bounced) msg_")
        names["event"] = None
        close(names)

    def check(self, text, names, printed):
        if "First" in text or "terms.txt" in text:
            self.assertRegex(printed, "^msg_")
        elif "error.fields" in text:
            self.assertRegex(printed, "^correct these: .*to")
        elif "generate_test_header" in text:
            self.assertEqual(printed, "grace@example.net\n")
        elif "FastAPI" in text and importlib.util.find_spec("httpx"):
            from fastapi.testclient import TestClient

            receiver = TestClient(names["app"])
            headers = postrider.webhooks.generate_test_header(BODY, SECRET)
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(receiver.post("/hooks", content=BODY, headers=headers).status_code, 204)
            self.assertEqual(receiver.post("/hooks", content=BODY + b" ", headers=headers).status_code, 401)


def close(names):
    if isinstance(names.get("client"), postrider.Postrider):
        names["client"].close()
