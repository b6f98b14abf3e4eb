#!/usr/bin/env python3
"""Measures how many messages a second 1, 2 and 3 nodes accept on one PostgreSQL, from SMTP to the database's disk.

    bench/cluster.py                    16,000 messages of 10 KB over 100 sessions, three times each
    bench/cluster.py --messages 8000

Flow: start a private PostgreSQL with fsync on and the nodes, with delivery paused and DKIM off; run `smtp-source`
(Debian's postfix) against each node with its share of the sessions, all at once; measure the time from the first
connection to the last acknowledgement. The rows, bytes and write-ahead log per message are read from PostgreSQL. Needs
Debian's postgresql and postfix, and a release build.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/drills"))
sys.dont_write_bytecode = True

from nodes import DOMAIN, OWNER, TASK, Node, Postgres, free_port, space, until  # noqa: E402

SOURCE, SINK = "/usr/sbin/smtp-source", "/usr/sbin/smtp-sink"
SESSIONS = 100


def main():
    parser = argparse.ArgumentParser(description="Messages a second on one PostgreSQL.")
    parser.add_argument("--messages", type=int, default=16_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    os.environ.setdefault("POSTRIDER", str(ROOT / "target/release/postrider"))
    base = Path(tempfile.mkdtemp(prefix="postrider-cluster-", dir="/var/tmp"))
    base.chmod(0o755)
    server = Postgres(base, "server").init().start("max_wal_size=4GB", "shared_buffers=512MB")
    try:
        for count in (1, 2, 3):
            measure(args, base, server, count)
        measure(args, base, server, 1, deliver=True)
    finally:
        server.end()
        shutil.rmtree(base, ignore_errors=True)


def measure(args, base, server, count, deliver=False):
    database = f"mail{count}{'d' if deliver else ''}"
    server.sql(f"CREATE DATABASE {database}", "postgres")
    url = f"postgres://postgres@127.0.0.1:{server.port}/{database}"
    port = free_port()
    sink = subprocess.Popen([SINK, "-u", "nobody", f"127.0.0.1:{port}", "1000"], cwd="/")
    nodes = []
    for number in range(count):
        node = Node(base, f"{database}-{number}", url, port)
        node.config.write_text(node.config.read_text() + f"paused = {'false' if deliver else 'true'}\ndkim = false\n")
        if nodes:
            (node.directory / "data").mkdir(mode=0o700)
            shutil.copy(nodes[0].directory / "data/secret.key", node.directory / "data/secret.key")
        nodes.append(node.start())
        if number == 0:
            node.admin("account", "create", "--email", OWNER, "--plan", "dedicated", "--production")
            node.admin("domain", "create", DOMAIN, "--account", OWNER, "--verified")
    rates = []
    before = facts(server, database)
    for _ in range(args.rounds):
        started_at = time.monotonic()
        sources = [
            subprocess.Popen([SOURCE, "-d", "-s", str(SESSIONS // count), "-m", str(args.messages // count), "-l", "10240",
                              "-f", f"app@{DOMAIN}", "-t", "someone@example.net", f"127.0.0.1:{node.relay}"])
            for node in nodes
        ]
        if any(source.wait() for source in sources):
            raise SystemExit("smtp-source failed")
        if deliver:
            until(lambda: server.sql(f"SELECT count(*) FROM postrider_rows WHERE {space(TASK)}", database) == "0", "an empty queue")
        rates.append(args.messages // count * count / (time.monotonic() - started_at))
    after = facts(server, database)
    sent = args.messages // count * count * args.rounds
    each = {name: (after[name] - before[name]) / sent for name in after}
    what = f"{count} node{'s' if count > 1 else ''}, {'delivered' if deliver else 'accepted'}"
    print(f"{what:18} {statistics.median(rates):8.0f} messages/s   a message: "
          + ", ".join(f"{value:.1f} {name}" for name, value in each.items()), flush=True)
    for node in nodes:
        node.end(signal.SIGTERM)
    sink.kill()


def facts(server, database):
    server.sql("SELECT pg_stat_clear_snapshot()", database)
    time.sleep(1.5)  # PostgreSQL publishes its counters with this delay
    rows = server.sql("SELECT sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del) FROM pg_stat_user_tables", database).split("|")
    wal = server.sql("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') / 1024", database)
    disk = server.sql(f"SELECT pg_database_size('{database}') / 1024.0", database)
    commits = server.sql(f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{database}'", database)
    return {"rows inserted": float(rows[0]), "updated": float(rows[1]), "deleted": float(rows[2]),
            "KiB of log": float(wal), "KiB on disk": float(disk), "transactions": float(commits)}


if __name__ == "__main__":
    main()
