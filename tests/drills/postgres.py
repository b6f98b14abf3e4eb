#!/usr/bin/env python3
"""The API's tests on PostgreSQL: each in a database of its own.

    tests/drills/postgres.py [words that cargo nextest takes...]

Flow: a private server is started as nodes.py does it; `POSTGRES_SERVER` tells the tests of it; cargo nextest
runs them. In memory they take a fraction of the time: this one is for when the store has changed.
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
