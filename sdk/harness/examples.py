"""Runs the example of each operation (sdk/examples.json): through the driver of each SDK, and on the command line."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from fixtures import Fixtures

PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
# Placeholders inside templates of emails belong to the example.
TEMPLATE_VARIABLES = {"name"}
# Examples that need a DNS server, or a key that does not sign yet, which a development server has none of: the refusal is
# part of the contract.
REFUSALS = {
    "apply_domain_dns": "upstream_error|validation_error",
    "connect_domain_dns": "upstream_error|validation_error|conflict|not_found",
    "cancel_domain_dkim_rotation": "conflict|validation_error",
}


class Examples:
    """The examples of one server."""

    def __init__(self, sdk, server):
        self.examples = json.loads((sdk / "examples.json").read_text())
        self.snippets = json.loads((sdk / "snippets.json").read_text())
        operations = json.loads((sdk / "operations.json").read_text())["operations"]
        self.names = {operation["id"]: operation["name"] for operation in operations}
        # The command line asks before these.
        self.asks = {operation["id"] for operation in operations if operation["risk"] in ("delete", "money")}
        self.fixtures = Fixtures(server)
        self.fixtures.prepare()

    def values(self, text):
        names = [name for name in dict.fromkeys(PLACEHOLDER.findall(text)) if name not in TEMPLATE_VARIABLES]
        return self.fixtures.values(names)

    def run_in_driver(self, driver):
        """Returns {operation: failure} of the examples that fail."""
        failures = {}
        for operation, example in self.examples.items():
            text = json.dumps(example)
            self.fixtures.before(operation)
            filled = json.loads(fill(text, self.values(text)))
            answer = driver.request({"call": self.names[operation], "path": filled["path"], "params": filled["params"], "options": {}})
            self.fixtures.after(operation)
            failure = judge(operation, answer.get("error"))
            if failure:
                failures[operation] = failure
        return failures

    def run_in_shell(self, program, server):
        """The same, with the command of each example."""
        failures = {}
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "postrider").symlink_to(Path(program).resolve())
            environment = dict(os.environ, PATH=f"{directory}:{os.environ['PATH']}", HOME=directory)
            environment |= {"POSTRIDER_API_KEY": server.api_key, "POSTRIDER_BASE_URL": server.base_url}
            for operation, example in self.examples.items():
                self.fixtures.before(operation)
                command = self.snippets[operation]["cli"]
                command = fill(command, self.values(json.dumps(example)))
                if operation in self.asks:
                    command += " --yes"
                done = subprocess.run(
                    # Some commands write a file.
                    ["sh", "-c", command], env=environment, cwd=directory, capture_output=True, timeout=60,
                    stdin=subprocess.DEVNULL,
                )
                self.fixtures.after(operation)
                error = None
                if done.returncode != 0:
                    try:
                        error = json.loads(done.stderr)["error"]
                    except (ValueError, KeyError):
                        error = {"code": "no_json", "message": done.stderr.decode(errors="replace")[:500]}
                failure = judge(operation, error)
                if failure:
                    failures[operation] = f"{command}: {failure}"
        return failures


def fill(text, values):
    return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def judge(operation, error):
    if error is None:
        return None
    allowed = REFUSALS.get(operation)
    if allowed and re.fullmatch(allowed, error.get("code") or ""):
        return None
    return json.dumps(error)[:500]
