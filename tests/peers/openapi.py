#!/usr/bin/env python3
"""Checks the OpenAPI document with foreign validators, and the server against the document.

    tests/peers/openapi.py --postrider target/debug/postrider [--seed 1] [--fuzz [--seconds 60]]

Flow: a Python environment with openapi-spec-validator and Schemathesis is created in target/peers once, from PyPI (all
is skipped with a note if that fails). Start `postrider dev`. Its document must be valid OpenAPI 3.1, every example must
match its schema, and every request example must be accepted. openapi-python-client and datamodel-code-generator
generate typed clients that must be able to send. Then Schemathesis generates valid and invalid requests from the
document and checks every response against it: for each bound in the document, the same requests in every run; with
--fuzz also random ones for a number of seconds. No traffic leaves loopback except pip's.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from check import NODE_CACHE, Failed, Skip, start, report_case

ENVIRONMENT = NODE_CACHE / "python"
# Client generators, whose requirements conflict with those of Schemathesis.
CLIENTS = NODE_CACHE / "clients"
CLIENT_PACKAGES = ["openapi-python-client==0.29.1", "datamodel-code-generator==0.89.0", "email-validator==2.3.0"]
PACKAGES = ["schemathesis==4.32.5", "openapi-spec-validator==0.9.0"]
FETCH_S = 300
ANSWER_S = 30
# Requests from examples and bounds take a minute or two; after this time Schemathesis hangs.
COVERED_WITHIN_S = 900
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
]

# Phases of Schemathesis: deterministic requests, and random ones.
COVERAGE, RANDOM = "examples,coverage", "fuzzing"
# Operations that report invalid entries one by one in a 200 response.
JUDGED_EACH = ["send_batch", "create_suppression"]
# Unauthenticated operations that always return 202, so that they do not reveal who is known.
TELLS_NOTHING = ["tell_affiliate_person", "tell_affiliate_signup"]

# Runs in the environment: reads the document from stdin and prints one problem per line.
VALIDATE = r"""
import json, sys
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

document = json.load(sys.stdin)
for error in OpenAPIV31SpecValidator(document).iter_errors():
    print("/".join(map(str, error.absolute_path)), error.message[:300])
registry = Registry().with_resource("urn:doc", Resource(contents=document, specification=DRAFT202012))

def absolute(schema):
    text = json.dumps(schema).replace('"$ref": "#/', '"$ref": "urn:doc#/')
    return json.loads(text)

def check_example(where, schema, example):
    validator = Draft202012Validator(absolute(schema), registry=registry, format_checker=FormatChecker())
    for error in validator.iter_errors(example):
        print(where, "example at", error.json_path, error.message[:300])

for path, methods in document["paths"].items():
    for method, operation in methods.items():
        answers = {status: answer for status, answer in operation["responses"].items() if status[0] in "23"}
        places = {"request": operation.get("requestBody", {}), **answers}
        if not answers:
            print(f"{method} {path}: has no success response")
        for place, part in places.items():
            for kind, content in part.get("content", {}).items():
                where = f"{method} {path} {place} {kind}:"
                if "example" not in content:
                    print(where, "has no example")
                else:
                    check_example(where, content["schema"], content["example"])
for word, example in document["components"]["examples"].items():
    check_example(word, document["components"]["schemas"]["Error"], example["value"])
"""


# Runs beside the package of openapi-python-client: takes address and key as arguments and prints the email's id.
SEND_BY_CLIENT = r"""
import sys
from postrider_client import AuthenticatedClient
from postrider_client.api.emails import send_email
from postrider_client.models import SendRequest, Sent

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
body = SendRequest(from_="ada@example.com", to=["typed@example.net"], subject="typed", text="hi")
answer = send_email.sync(client=client, body=body)
assert isinstance(answer, Sent), answer
print(answer.id)
"""

# Runs beside the models of datamodel-code-generator: builds a body from them and prints it.
BODY_BY_MODELS = r"""
from models import SendRequest

body = SendRequest(**{"from": "ada@example.com", "to": ["typed@example.net"], "subject": "typed", "text": "hi"})
print(body.model_dump_json(by_alias=True, exclude_none=True))
"""


def run_in(directory, command, what):
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, cwd=directory)
    if done.returncode:
        raise Failed(f"{what}: {(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stdout.strip()


def sent_by_clients(api, directory):
    """Clients generated from the document are typed and can send."""
    programs = environment(CLIENTS, CLIENT_PACKAGES)
    python, document = str(programs / "python"), str(Path(directory, "openapi.json"))
    Path(document).write_text(json.dumps(api.document))
    generate = [str(programs / "openapi-python-client"), "generate", "--path", document, "--output-path", "client"]
    run_in(directory, generate, "openapi-python-client")
    client = Path(directory, "client")
    if not run_in(client, [python, "-c", SEND_BY_CLIENT, api.address, api.key], "the client").startswith("msg_"):
        raise Failed("the client's response has no id")
    generate = [str(programs / "datamodel-codegen"), "--input", document, "--input-file-type", "openapi"]
    generate += ["--output", "models.py", "--output-model-type", "pydantic_v2.BaseModel"]
    run_in(directory, generate, "datamodel-code-generator")
    body = json.loads(run_in(directory, [python, "-c", BODY_BY_MODELS], "the models"))
    status, answer = api.call_api("POST", "/emails", body)
    if status != 200:
        raise Failed(f"POST /emails with a body of the models: {status} {answer}")


def environment(directory=ENVIRONMENT, packages=PACKAGES):
    """The directory of the environment's programs; created if it is missing or has other packages."""
    programs, mark = directory / "bin", directory / "packages"
    if mark.is_file() and mark.read_text() == "\n".join(packages):
        return programs
    directory.mkdir(parents=True, exist_ok=True)
    made = [
        [sys.executable, "-m", "venv", "--clear", str(directory)],
        [str(programs / "pip"), "install", "--quiet", "--retries", "1", "--timeout", "10", *packages],
    ]
    for command in made:
        try:
            subprocess.run(command, capture_output=True, timeout=FETCH_S, check=True)
        except (subprocess.SubprocessError, OSError) as failure:
            output = (getattr(failure, "stderr", None) or b"").decode(errors="replace").strip()[-300:]
            raise Skip(f"cannot create the Python environment (is PyPI reachable?): {output or failure}") from None
    mark.write_text("\n".join(packages))
    return programs


class Api:
    def __init__(self, line):
        self.address, self.key = line["api"].rstrip("/"), line["api_key"]
        self.document = self.call_api("GET", "/openapi.json")[1]

    def call_api(self, method, path, body=None):
        """Status and JSON of a response."""
        given = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, given, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as answer:
            status, text = answer.code, answer.read()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, None

    def example(self, method, path):
        body = self.document["paths"].get(path, {}).get(method, {}).get("requestBody", {})
        return body.get("content", {}).get("application/json", {}).get("example")


def validated(api, programs):
    text = json.dumps(api.document)
    done = subprocess.run(
        [str(programs / "python"), "-c", VALIDATE], input=text, capture_output=True, text=True, timeout=FETCH_S
    )
    if done.returncode or done.stdout.strip():
        raise Failed((done.stdout + done.stderr).strip()[-3000:])


def check_examples(api):
    """Sends every request example. Afterwards every list is non-empty if the document has an example for it."""
    for path, methods in api.document["paths"].items():
        example = api.example("post", path)
        if "{" in path or example is None or "api_key" not in json.dumps(methods["post"].get("security")):
            continue
        status, answer = api.call_api("POST", path, example)
        if status not in (200, 201, 202, 404):
            raise Failed(f"POST {path} with its example: {status} {json.dumps(answer)[:500]}")


def known_ids(api):
    """For path parameters that are ids: the first id of the list that contains it."""
    ids = {}
    for path in api.document["paths"]:
        lists, found = path.split("/{", 1)[0], re.search(r"/{(\w+)}", path)
        if not found or lists not in api.document["paths"] or "get" not in api.document["paths"][lists]:
            continue
        _, answer = api.call_api("GET", lists)
        entries = next((value for value in (answer or {}).values() if isinstance(value, list)), [])
        # The last entry may be used by the calls themselves, such as an API key that deletes itself.
        entries = [entry["id"] for entry in entries if isinstance(entry.get("id"), str)]
        if len(entries) > (path.startswith("/api-keys")):
            ids[path] = (found.group(1), entries[0])
    return ids


def config(api):
    """Existing ids, so that requests get past 404, and operations that report entries one by one."""
    known = [
        f'[[operations]]\ninclude-path = "{path}"\nparameters = {{ "path.{name}" = "{known}" }}\n'
        for path, (name, known) in known_ids(api).items()
    ]
    judged = [
        f'[[operations]]\ninclude-operation-id = "{name}"\nchecks.negative_data_rejection.enabled = false\n'
        for name in JUDGED_EACH + TELLS_NOTHING
    ]
    return "\n".join(known + judged)


def check_conformance(api, programs, directory, args, phase):
    """Runs some phases of Schemathesis."""
    file = Path(directory, "schemathesis.toml")
    file.write_text(config(api))
    command = [str(programs / "schemathesis"), "--config-file", str(file), "run", f"{api.address}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {api.key}", "--checks", ",".join(CHECKS)]
    command += ["--continue-on-failure", "--no-color", "--seed", str(args.seed), "--phases", phase]
    within_s = COVERED_WITHIN_S
    if phase == RANDOM:
        command += ["--max-time", str(args.seconds)]
        within_s += args.seconds
    # Run outside the tree, because it writes further files.
    done = subprocess.run(command, capture_output=True, text=True, timeout=within_s, cwd=directory, env=os.environ)
    output = done.stdout + done.stderr
    if done.returncode:
        raise Failed(output.strip()[-20000:])
    count = re.search(r"(\d+) generated, (\d+) passed", output)
    print(f"    {count.group(0) if count else 'no requests?'}")


def check(line, args, directory):
    programs, failed = report_case("openapi: tools from PyPI", environment)
    if programs is None:
        return failed
    api = Api(line)
    checks = {
        "the document is OpenAPI 3.1": lambda: validated(api, programs),
        "every request example is accepted": lambda: check_examples(api),
        "generated clients are typed and send": lambda: sent_by_clients(api, directory),
        "schemathesis: the examples and bounds of the document": lambda: check_conformance(
            api, programs, directory, args, COVERAGE
        ),
    }
    if args.fuzz:
        checks["schemathesis: random requests"] = lambda: check_conformance(api, programs, directory, args, RANDOM)
    return sum(report_case(name, work)[1] for name, work in checks.items()) > 0


def main():
    parser = argparse.ArgumentParser(description="The OpenAPI document, and the server against it.")
    parser.add_argument("--postrider", required=True, help="the binary to start")
    parser.add_argument("--fuzz", action="store_true", help="random requests, too")
    parser.add_argument("--seconds", type=int, default=60, help="duration of the random phase")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random requests")
    args = parser.parse_args()
    process, failed = None, True
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory, "data")
        data.mkdir()
        try:
            process, dev = start(args.postrider, str(data))
            failed = check(dev.line, args, directory)
            if failed:
                print(Path(directory, "log").read_text(errors="replace")[-3000:])
        except Failed as failure:
            print(f"  FAILED: {failure}")
        finally:
            if process:
                process.terminate()
                process.wait(30)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
