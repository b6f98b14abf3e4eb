"""Times of bare requests and of `emails.send`, in turns, as JSON."""

import http.client
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk/python/src"))

import postrider  # noqa: E402

EMAIL = {"from": "ada@example.com", "to": "grace@example.net", "subject": "Hello", "text": "Hello Grace"}
client = postrider.Postrider()
connection = http.client.HTTPConnection(os.environ["POSTRIDER_BASE_URL"].removeprefix("http://"))
headers = {"Authorization": f"Bearer {os.environ['POSTRIDER_API_KEY']}", "Content-Type": "application/json"}


def bare():
    connection.request("POST", "/emails", json.dumps(EMAIL), headers)
    json.loads(connection.getresponse().read())


kinds = {"bare": bare, "sdk": lambda: client.emails.send(EMAIL)}
times = {"bare": [], "sdk": []}
for number in range(-500, int(os.environ["COUNT"])):
    for kind, send in kinds.items():
        started = time.perf_counter()
        send()
        if number >= 0:
            times[kind].append((time.perf_counter() - started) * 1000)
print(json.dumps(times))
