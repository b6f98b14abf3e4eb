#!/usr/bin/env python3
"""Runs the examples that the help of the commands has, against `postrider dev`.

    tests/help/run.py --postrider target/debug/postrider
    tests/help/run.py --postrider target/debug/postrider --cli target/debug/postrider-cli listen

- The help of each command must have an example.
- Each example of a command that is written by hand must have a check (checks.py), which runs it in a home directory of
  its own. A check without an example fails, too.
- The example of an operation must be the one that `sdk/run` runs (sdk/snippets.json).

With words behind the options, only examples with one of these words are run.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "sdk" / "harness")]

from checks import CHECKS, NOT_RUN  # noqa: E402
from command_help import CommandHelp, HelpError  # noqa: E402
from examples import PLACEHOLDER, TEMPLATE_VARIABLES  # noqa: E402
from example_run import ExampleRun, Home  # noqa: E402
from fixtures import Fixtures  # noqa: E402
from server import DevServer  # noqa: E402

# The usual width of a terminal.
COLUMNS = 80


def of_operations():
    """The example of each operation, by its command."""
    operations = json.loads((ROOT / "sdk" / "operations.json").read_text())["operations"]
    snippets = json.loads((ROOT / "sdk" / "snippets.json").read_text())
    return {operation["command"]: snippets[operation["id"]]["cli"] for operation in operations if operation["id"] in snippets}


def is_same(shown, run):
    """Compares an example in help, where ids are in capitals and lines are wrapped, with the one that is run."""
    def words(text):
        return " ".join(text.split())

    def named(placeholder):
        return placeholder[0] if placeholder[1] in TEMPLATE_VARIABLES else placeholder[1].upper()

    return words(shown) == words(PLACEHOLDER.sub(named, run))


def collect(command_help):
    """Returns the examples to run, and {command: problem}."""
    operations, examples, problems = of_operations(), [], {}
    for command in sorted(command_help.texts):
        try:
            if command not in operations:
                examples += command_help.examples(command, COLUMNS)
            elif not any(is_same(shown, operations[command]) for shown in command_help.examples(command)):
                problems[command] = f"the example is not the one that is run: {command_help.examples(command)}"
        except HelpError as problem:
            problems[command] = str(problem)
    for command in operations.keys() - command_help.texts.keys():
        problems[command] = "the help does not list the command"
    for example in examples:
        if example not in CHECKS and example not in NOT_RUN:
            problems[example] = "tests/help/checks.py has no check of it"
    for example in (CHECKS.keys() | NOT_RUN.keys()) - set(examples):
        problems[example] = "the help has no such example"
    return [example for example in examples if example in CHECKS], problems


def run_examples(examples, program, server, directory):
    """Returns {example: problem}."""
    fixtures, problems = Fixtures(server), {}
    stored = Home(Path(directory, "stored"), program, server)
    stored.log_in()
    for number, command in enumerate(examples):
        home = Home(Path(directory, str(number)), program, server)
        home.copy_profiles(stored)
        run = ExampleRun(command, home, fixtures)
        started = time.monotonic()
        try:
            CHECKS[command](run)
            print(f"  {command} ({time.monotonic() - started:.1f} s)", flush=True)
        except Exception as problem:  # noqa: BLE001: whatever goes wrong is the example's result
            problems[command] = f"{type(problem).__name__}: {problem}"
        finally:
            run.close()
    fixtures.receiver.close()
    return problems


def main():
    parser = argparse.ArgumentParser(description="Runs the examples in the help of the commands.")
    parser.add_argument("--postrider", required=True, help="the server's binary")
    parser.add_argument("--cli", help="the command line; by default that of the server's binary")
    parser.add_argument("words", nargs="*", help="only examples with one of these words")
    options = parser.parse_args()
    program = options.cli or options.postrider
    command_help = CommandHelp(program)
    examples, problems = collect(command_help)
    chosen = [example for example in examples if not options.words or any(word in example.split() for word in options.words)]
    with tempfile.TemporaryDirectory() as directory, DevServer(options.postrider) as server:
        problems |= run_examples(chosen, program, server, directory)
    for example, reason in NOT_RUN.items():
        print(f"  {example}: not run: {reason}")
    for name, problem in problems.items():
        print(f"  {name}: FAILED: {problem}")
    print(f"{len(command_help.texts)} commands have help, {len(chosen)} examples run, {len(problems)} failed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
