"""Postfix as Debian ships it, in a private instance with its own configuration, queue, data and ports.

Its durability settings are unchanged: every message is synced before it is acknowledged. Needless limits are lifted
(processes, connections per client, the mail log, since there is no syslog in the namespace), so that the comparison
favours Postfix if anything. OpenDKIM signs over a UNIX socket, which is several times faster than TCP here. For inbound
mail OpenDKIM checks signatures and policyd-spf checks SPF, both as Debian packages them.
"""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import machine

RELAY = ("127.0.0.1", 2525)
MX = ("127.0.0.1", 2526)
SUBMISSION = ("127.0.0.1", 2587)
LOGIN = ("bench", "a-password-for-the-bench")
START_PROCESSES = 200
# Rows with inbound mail.
JUDGED = ("inbound", "inbound-large")

MASTER = """\
127.0.0.1:2525 inet n - n - - smtpd
127.0.0.1:2526 inet n - n - - smtpd
127.0.0.1:2587 inet n - n - - smtpd
  -o smtpd_tls_security_level=encrypt
  -o smtpd_sasl_auth_enable=yes
  -o smtpd_relay_restrictions=permit_sasl_authenticated,reject
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
policyd-spf unix - n n - 0 spawn user=policyd-spf argv=/usr/bin/policyd-spf {etc}/policyd-spf.conf
"""

# Debian's configuration without its log; loopback clients are checked like any other.
POLICYD_SPF = """\
debugLevel = 0
TestOnly = 1
HELO_reject = Fail
Mail_From_reject = Fail
PermError_reject = False
TempError_Defer = False
skip_addresses = 192.0.2.1/32
"""


class Postfix:
    name = "postfix"
    relay = RELAY
    mx = MX
    submission = SUBMISSION
    login = LOGIN

    def __init__(self, context, work):
        self.directory = context.base / f"postfix-{work}-{context.round}"
        self.work = work
        self.context = context
        self.milter = None
        self.roots = []

    def start(self):
        etc = self.directory / "etc"
        etc.mkdir(parents=True)
        self.directory.chmod(0o755)
        for name, owner in {"queue": "root", "data": "postfix"}.items():
            (self.directory / name).mkdir(mode=0o755)
            shutil.chown(self.directory / name, owner)
        (etc / "master.cf").write_text(MASTER.format(etc=etc))
        if self.work == "dkim":
            self.start_opendkim(self.signs())
        if self.work in JUDGED:
            (etc / "policyd-spf.conf").write_text(POLICYD_SPF)
            self.start_opendkim(self.verifies())
        if self.work == "submission":
            self.write_passwords(etc)
        settings = self.settings(etc)
        (etc / "main.cf").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        machine.run_quietly(["postfix", "-c", etc, "start"])
        pid_file = self.directory / "queue" / "pid" / "master.pid"
        self.roots = [int(pid_file.read_text())] + ([self.milter.pid] if self.milter else [])
        machine.wait_for_port(*RELAY, "postfix")

    def settings(self, etc):
        defaults = dict(
            line.split(" = ", 1)
            for line in machine.run_quietly(["postconf", "-d", "daemon_directory", "command_directory"]).splitlines()
        )
        processes = 2 * self.context.idle_sessions("postfix") + START_PROCESSES if self.work == "idle" else START_PROCESSES
        settings = defaults | {
            "compatibility_level": "3.6",
            "queue_directory": self.directory / "queue",
            "data_directory": self.directory / "data",
            "mail_owner": "postfix",
            "setgid_group": "postdrop",
            "myhostname": "mx.bench.test",
            "mydestination": "",
            "inet_interfaces": "127.0.0.1",
            "inet_protocols": "ipv4",
            "mynetworks": "127.0.0.0/8",
            "alias_maps": "",
            "local_recipient_maps": "",
            "notify_classes": "",
            "smtpd_relay_restrictions": "permit_mynetworks,reject",
            "smtpd_client_connection_count_limit": "0",
            "default_process_limit": str(processes),
            "smtpd_timeout": "600s",
            "smtp_tls_security_level": "none",
            "relayhost": "" if self.work == "domains" else "[{}]:{}".format(*self.context.sink),
        }
        if self.work == "accept":
            settings["smtpd_client_restrictions"] = "static:HOLD"
        if self.work == "dkim":
            settings |= {"smtpd_milters": f"unix:{self.socket()}", "milter_default_action": "tempfail"}
        if self.work in JUDGED:
            settings |= self.judging()
        if self.work == "submission":
            settings |= {
                "smtpd_tls_cert_file": self.context.base / "cert.pem",
                "smtpd_tls_key_file": self.context.base / "key.pem",
                "smtpd_tls_auth_only": "yes",
                "smtpd_sasl_type": "cyrus",
                "smtpd_sasl_path": "smtpd",
                "cyrus_sasl_config_path": etc / "sasl",
                "smtpd_sasl_local_domain": "bench.test",
            }
        if self.context.args.mail_log:
            settings |= {"maillog_file": self.directory / "mail.log", "maillog_file_prefixes": self.directory}
        return settings

    def write_passwords(self, etc):
        database = etc / "sasldb2"
        command = ["saslpasswd2", "-p", "-c", "-f", database, "-u", "bench.test", LOGIN[0]]
        machine.run_quietly(command, input=LOGIN[1])
        shutil.chown(database, "postfix")
        text = f"pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {database}\nmech_list: PLAIN LOGIN\n"
        # Debian's Postfix reads sasl/ below its configuration directory only.
        (etc / "sasl").mkdir()
        (etc / "sasl" / "smtpd.conf").write_text(text)

    def socket(self):
        return self.directory / "dkim" / "socket"

    def judging(self):
        """Inbound mail for a local mailbox: checked by both and held, which is as durable as a delivery."""
        return {
            "mynetworks": "192.0.2.1/32",
            "local_header_rewrite_clients": "",
            "virtual_mailbox_domains": "bench.test",
            "virtual_mailbox_maps": "static:all",
            "message_size_limit": "50000000",
            "smtpd_client_restrictions": "static:HOLD",
            "smtpd_relay_restrictions": "reject_unauth_destination",
            "smtpd_recipient_restrictions": "reject_unauth_destination,check_policy_service unix:private/policyd-spf",
            "smtpd_milters": f"unix:{self.socket()}",
            "milter_default_action": "tempfail",
        }

    def judged(self):
        """Authentication results of the one message that is held."""
        etc = self.directory / "etc"
        [held] = [path for path in (self.directory / "queue" / "hold").rglob("*") if path.is_file()]
        text = machine.run_quietly(["postcat", "-c", etc, "-h", held]).lower()
        return {"spf": "received-spf: pass" in text, "dkim": "dkim=pass" in text}

    def start_opendkim(self, settings):
        home = self.directory / "dkim"
        home.mkdir(exist_ok=True)
        shutil.chown(home, "opendkim")
        common = f"Socket local:{self.socket()}\nUserID opendkim\nUMask 000\nBackground no\nSyslog no\n"
        (home / "opendkim.conf").write_text(settings + common)
        self.milter = subprocess.Popen(
            ["opendkim", "-f", "-x", home / "opendkim.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        machine.wait_until(self.socket().exists, "opendkim")

    def signs(self):
        """Signs with RSA-2048 only, as is usual, relaxed/relaxed, with From oversigned."""
        home = self.directory / "dkim"
        home.mkdir()
        key = home / "key.pem"
        machine.run_quietly(["openssl", "genrsa", "-traditional", "-out", key, "2048"])
        shutil.chown(key, "opendkim")
        key.chmod(0o600)
        return f"""\
Mode s
Domain bench.test
Selector bench
KeyFile {key}
RequireSafeKeys no
Canonicalization relaxed/relaxed
OversignHeaders From
InternalHosts 127.0.0.0/8
"""

    def verifies(self):
        """Verifies all signatures. Without InternalHosts the load's address would count as internal."""
        return f"""\
Mode v
AuthservID mx.bench.test
InternalHosts 192.0.2.1
Nameservers {self.context.names.address[0]}
"""

    def memory_bytes(self):
        return machine.memory_bytes(self.roots)

    def peak_bytes(self):
        """Memory at the end of a row: the processes stay for minutes after their last work."""
        return self.memory_bytes()

    def stop(self):
        machine.stop(self.roots)
        if self.milter:
            self.milter.wait()
        if not self.context.args.keep:
            shutil.rmtree(self.directory, ignore_errors=True)
