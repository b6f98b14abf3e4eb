"""Records the answer of each example (sdk/examples.json), by its curl command, for the reference."""

import json
import os
import re
import subprocess
import urllib.parse

from examples import Examples, fill

ENTRIES_MAX = 2
TEXT_MAX = 160
BODY_MAX = 1_500
# Files go to standard output here.
OUTPUT = re.compile(r" \\\n  -o \S+")
SECRET = re.compile(r"\b(rnl|whsec|pk|sk|smtp|smtp_pw)_[A-Za-z0-9+/=_-]{16,}")


def record(sdk, server):
    """Returns {operation: JSON value or text} of the examples that succeed."""
    examples, answers = Examples(sdk, server), {}
    environment = dict(os.environ, POSTRIDER_API_KEY=server.api_key, POSTRIDER_BASE_URL=server.base_url)
    for operation, example in examples.examples.items():
        examples.fixtures.before(operation)
        values = examples.values(json.dumps(example))
        command = OUTPUT.sub("", fill(examples.snippets[operation]["curl"], values))
        if operation == "list_webhook_events":
            command += " --max-time 5"
        command = command.replace("curl ", "curl -s -w '\\n%{http_code} %{content_type}' ", 1)
        done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, timeout=60)
        examples.fixtures.after(operation)
        body, _, last_line = done.stdout.decode(errors="replace").rpartition("\n")
        status, _, media_type = last_line.partition(" ")
        if not status.startswith("2"):
            print(f"{operation}: {status}: {body[:300]}")
            continue
        neutral = neutralizer(server, examples.fixtures)
        answers[operation] = shorten(json.loads(body), neutral) if media_type == "application/json" else neutral(body)[:BODY_MAX]
    return answers


def neutralizer(server, fixtures):
    """Replaces what belongs to this run: addresses, the local domain, secrets."""
    receiver = urllib.parse.urlsplit(fixtures.receiver.url).netloc

    def neutral(text):
        text = text.replace(server.base_url, "https://mail.example.com").replace(receiver, "hooks.example.com")
        text = text.replace(f"127.0.0.1:{server.port}", "mail.example.com").replace("127.0.0.1", "192.0.2.1")
        text = text.replace(fixtures.domain, "example.com").replace("localhost", "mail.example.com")
        return SECRET.sub(lambda found: found[1] + "_…", text)

    return neutral


def shorten(value, neutral):
    """The value with at most two entries in each array, and without long texts."""
    if isinstance(value, dict):
        return {name: shorten(field, neutral) for name, field in value.items()}
    if isinstance(value, list):
        return [shorten(entry, neutral) for entry in value[:ENTRIES_MAX]]
    if isinstance(value, str):
        text = neutral(value)
        return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "…"
    return value
