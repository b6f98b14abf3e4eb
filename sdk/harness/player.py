"""`Player`: plays the steps of a scenario through a driver and compares the answers. sdk/scenarios/README.md explains steps."""

import base64
import json
import re
import time
import uuid

from driver import DriverFailed
from fixtures import in_days
from webhook_receiver import WebhookReceiver

POLL_TIMEOUT_S = 60
ERROR_CLASSES = {
    "PostriderError", "ApiError", "ValidationError", "SuppressedRecipientError", "AuthenticationError", "PermissionError",
    "NotFoundError", "ConflictError", "IdempotencyConflictError", "ApprovalRequiredError", "PlanLimitError", "RateLimitError", "UpstreamError",
    "SendUnconfirmedError", "ServerError", "ConnectionError", "TimeoutError", "CancelledError",
    "UnexpectedResponseError", "ConfigurationError", "SignatureError", "TimestampError",
}
REQUEST_KEYS = ["call", "iterate", "verify", "test_header", "stream", "resolve_unconfirmed", "wait_for_email", "last_response"]
REQUEST_FIELDS = REQUEST_KEYS + ["path", "params", "options", "count_max", "timeout_ms"]


class Mismatch(Exception):
    """An answer differs from the scenario."""


class Player:
    def __init__(self, driver, server, proxy):
        self.driver, self.server, self.proxy = driver, server, proxy
        self.healthy = True

    def play(self, scenario):
        """Returns None, or the failure."""
        if not self.healthy:
            return "the driver had failed before"
        run = uuid.uuid4().hex[:10]
        self.variables = {
            "run": run,
            "key": self.server.api_key,
            "proxy": self.proxy.base_url,
            "server": self.server.base_url,
            "domain": self.server.ready["domain"],
            "soon": in_days(30),
            "later": in_days(31),
            "later_day": in_days(31)[:10],
            "open": "{{",
            "close": "}}",
            "tls": self.proxy.base_url.replace("http:", "https:"),
        }
        self.receiver = None
        self.proxy.begin([])
        try:
            self.driver.request({"new": {}})
            for number, step in enumerate(scenario["steps"], 1):
                try:
                    self.step(step)
                except Mismatch as mismatch:
                    return f"step {number}: {mismatch}"
        except DriverFailed as failure:
            self.healthy = False
            return str(failure)
        finally:
            if self.receiver:
                self.receiver.close()
        return None

    def step(self, step):
        if "receiver" in step:
            self.receiver = WebhookReceiver()
            self.variables[step["receiver"]] = self.receiver.url
            return
        step = self.substitute(step)
        if "client" in step:
            self.answer({"new": step["client"]}, step)
        elif "faults" in step:
            self.proxy.begin(step["faults"])
        elif "requests" in step:
            self.check_requests(step)
        elif "received" in step:
            self.check_received(step)
        elif "until" in step:
            self.poll(step)
        elif any(key in step for key in REQUEST_KEYS):
            self.answer({key: step[key] for key in REQUEST_FIELDS if key in step}, step)
        else:
            raise Mismatch(f"an unknown step: {json.dumps(step)}")

    def answer(self, request, step):
        answer = self.driver.request(request)
        self.check_answer(answer, step)
        for name, path in step.get("save", {}).items():
            self.variables[name] = lookup(answer["ok"], path)

    def check_answer(self, answer, step):
        if "error" in answer:
            error = answer["error"]
            text = json.dumps(error)
            if self.server.api_key in text:
                raise Mismatch("the error shows the API key")
            if error.get("class") not in ERROR_CLASSES:
                raise Mismatch(f"the class is not in the contract: {text}")
            if not error.get("message"):
                raise Mismatch(f"the error has no message: {text}")
            if "error" not in step:
                raise Mismatch(f"failed: {text}")
            match(error, step["error"], "error")
        elif "error" in step:
            raise Mismatch(f"answered {json.dumps(answer['ok'])[:500]}, but an error was expected")
        else:
            match(answer["ok"], step.get("expect", {}), "ok")

    def poll(self, step):
        """Repeats a call until its answer matches: for what the server does after its answer."""
        request = {key: step[key] for key in REQUEST_FIELDS if key in step}
        deadline = time.monotonic() + POLL_TIMEOUT_S
        while True:
            answer = self.driver.request(request)
            try:
                match(answer.get("ok", answer), step["until"], "ok")
                return
            except Mismatch:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def check_requests(self, step):
        recorded = self.proxy.recorded()
        seen = [
            {"method": one["method"], "path": one["path"], "headers": one["headers"], "json": parse(one["body"])}
            for one in recorded
        ]
        if len(seen) != len(step["requests"]):
            summary = [f"{one['method']} {one['path']}" for one in seen]
            raise Mismatch(f"{len(seen)} requests were sent instead of {len(step['requests'])}: {summary}")
        for number, (one, wanted) in enumerate(zip(seen, step["requests"]), 1):
            match(one, wanted, f"request {number}")
        for header in step.get("same", []):
            values = {one["headers"].get(header) for one in seen}
            if len(values) != 1 or None in values:
                raise Mismatch(f"the header {header} should be the same in all requests: {values}")

    def check_received(self, step):
        """Waits for a webhook of this type, verifies it through the SDK, and compares the event."""
        delivery = self.receiver.wait(step["received"]["type"], POLL_TIMEOUT_S)
        if delivery is None:
            raise Mismatch(f"no webhook {step['received']['type']} came within {POLL_TIMEOUT_S} s")
        secrets = step["secrets"]
        request = {"payload": delivery["body"], "headers": delivery["headers"], "secrets": secrets, "tolerance_s": 300}
        answer = self.driver.request({"verify": request})
        self.check_answer(answer, {"expect": {"data": step["received"]}})

    def substitute(self, value):
        if isinstance(value, dict):
            if "$base64" in value:
                return base64.b64encode(self.substitute(value["$base64"]).encode()).decode()
            return {key: self.substitute(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.substitute(one) for one in value]
        if not isinstance(value, str):
            return value
        if whole := re.fullmatch(r"\{\{(\w+)\}\}", value):
            return self.variable(whole[1])
        return re.sub(r"\{\{\$(\w+)\}\}", lambda found: str(self.variable(found[1])), value)

    def variable(self, name):
        if name not in self.variables:
            raise Mismatch(f"the scenario has no variable {name}")
        return self.variables[name]


def parse(body):
    try:
        return json.loads(body)
    except ValueError:
        return None


def lookup(value, path):
    for part in path.split("."):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise Mismatch(f"the answer has no {path}") from None
    return value


def match(actual, wanted, where):
    """Compares a value with what is wanted; objects may have more fields than wanted."""
    if isinstance(wanted, dict) and any(key.startswith("$") for key in wanted):
        return match_operators(actual, wanted, where)
    if isinstance(wanted, dict):
        if not isinstance(actual, dict):
            raise Mismatch(f"{where} is {json.dumps(actual)[:300]} instead of an object")
        for key, value in wanted.items():
            if value == {"$absent": True}:
                if actual.get(key) is not None:
                    raise Mismatch(f"{where}.{key} is {json.dumps(actual[key])[:300]}, but it should not be there")
            elif key not in actual:
                raise Mismatch(f"{where}.{key} is missing in {json.dumps(actual)[:500]}")
            else:
                match(actual[key], value, f"{where}.{key}")
    elif isinstance(wanted, list):
        if not isinstance(actual, list) or len(actual) != len(wanted):
            raise Mismatch(f"{where} is {json.dumps(actual)[:300]} instead of a list of {len(wanted)}")
        for number, (one, other) in enumerate(zip(actual, wanted)):
            match(one, other, f"{where}.{number}")
    elif actual != wanted or isinstance(actual, bool) != isinstance(wanted, bool):
        raise Mismatch(f"{where} is {json.dumps(actual)[:300]} instead of {json.dumps(wanted)}")


def match_operators(actual, wanted, where):
    text = actual if isinstance(actual, str) else json.dumps(actual)
    for operator, value in wanted.items():
        fits = {
            "$any": lambda: actual is not None,
            "$regex": lambda: isinstance(actual, str) and re.search(value, actual),
            "$contains": lambda: value in text,
            "$lacks": lambda: value not in text,
            "$length": lambda: isinstance(actual, (list, str)) and len(actual) == value,
            "$at_least": lambda: isinstance(actual, (int, float)) and actual >= value,
            "$includes": lambda: isinstance(actual, list) and any(matches(one, value) for one in actual),
        }[operator]
        if not fits():
            raise Mismatch(f"{where} is {json.dumps(actual)[:300]}, which does not fit {operator} {json.dumps(value)}")


def matches(actual, wanted):
    try:
        match(actual, wanted, "")
        return True
    except Mismatch:
        return False
