#!/usr/bin/env python3
"""Runs the API's tests on PostgreSQL, each in its own database.

    tests/drills/postgres.py [arguments of cargo nextest...]

Flow: start a private server as nodes.py does, pass it to the tests in `POSTGRES_SERVER`, and run cargo nextest. The
same tests run much faster on the memory engine: use this after changes of the store.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from nodes import ROOT, Postgres  # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        server = Postgres(Path(base), "postgres")
        server.init()
        server.start("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=400")
        try:
            environment = {**os.environ, "POSTGRES_SERVER": f"postgres://postgres@127.0.0.1:{server.port}"}
            command = ["cargo", "nextest", "run", "-p", "api", "--test", "http", "--no-fail-fast", *sys.argv[1:]]
            done = subprocess.run(command, cwd=ROOT, env=environment)
        finally:
            server.end(2)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
