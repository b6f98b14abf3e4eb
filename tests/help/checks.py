"""A check for each example in the help of the commands that are written by hand.

A check makes what the example needs, runs it, and compares what it does. `NOT_RUN` names the examples that no test can
run, with the reason.
"""

import json
import stat
import subprocess
import urllib.request

from example_run import WAIT_S, expect, until

CHECKS = {}
NOT_RUN = {
    "postrider login --base-url https://mail.example.com": "it waits for a person in a browser",
    "postrider login --base-url https://mail.example.com --device": "it waits for a person in a browser",
}
BOUNCING = "bounced@simulator.postrider.test"

TEMPLATE = {
    "template.toml": 'name = "Welcome"\nsubject = "Welcome, {{name}}"\n\n[[variables]]\nkey = "name"\ntype = "string"\n'
    'fallback_value = "friend"\n',
    "body.html": "<p>Hello {{name}}</p>\n",
    "body.txt": "Hello {{name}}\n",
}
DECLARATION = """
[[domains]]
name = "NAME.example"
open_tracking = true

[[webhooks]]
url = "https://NAME.example/webhooks"
events = ["email.bounced"]
"""


def example(command):
    def add(check):
        expect(command not in CHECKS, f"two checks of `{command}`")
        CHECKS[command] = check
        return check

    return add


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# Server and key


@example("postrider login --base-url https://mail.example.com --key < key.txt")
def login(run):
    file = run.path(".config/postrider/profiles.toml")
    file.unlink()
    expect(run.value()["base_url"] == run.server.base_url, "the profile has another server")
    expect(run.server.api_key in file.read_text() and mode(file) == 0o600, "the key is not stored privately")


@example("postrider logout --profile staging")
def logout(run):
    expect(run.value()["removed"] == "staging", "another profile is removed")
    expect("staging" not in run.path(".config/postrider/profiles.toml").read_text(), "the profile is still stored")


@example("postrider profiles")
def profiles(run):
    output = run.output()
    names = [profile["name"] for profile in json.loads(output)["profiles"]]
    expect(names == ["default", "production", "staging"], f"the profiles are {names}")
    expect(run.server.api_key not in output, "the key is shown")


@example("postrider profiles use production")
def profiles_use(run):
    expect(run.value()["default"] == "production", "another profile is the default")
    expect('default = "production"' in run.path(".config/postrider/profiles.toml").read_text(), "it is not stored")


@example("postrider whoami")
def whoami(run):
    value = run.value()
    expect(value["account"]["email"] and value["base_url"] == run.server.base_url, f"{value}")


@example("postrider client doctor")
def doctor(run):
    checks = {check["check"] for check in run.value()["checks"]}
    expect({"server", "key", "clock", "domain"} <= checks, f"the checks are {checks}")


def opens(run, path):
    url = run.value()["url"]
    expect(run.path("opened").read_text() == url == run.server.base_url + path, f"{url} is opened")
    with urllib.request.urlopen(url, timeout=WAIT_S) as page:
        expect(page.headers.get_content_type() == "text/html", "it is no page")


@example("postrider open")
def open_dashboard(run):
    opens(run, "/dashboard")


@example("postrider open docs")
def open_docs(run):
    opens(run, "/docs")


# Events


def sent(email_id):
    return lambda event: event["type"] == "email.sent" and event["data"]["email_id"] == email_id


@example("postrider listen")
def listen(run):
    listening = run.start()
    listening.wait_for_notice("listening to")
    listening.wait_for_json(sent(run.send_email()), "the event")
    listening.interrupt()


@example("postrider listen --forward-to http://localhost:3000/webhooks --types email.bounced")
def listen_and_forward(run):
    listening = run.start()
    listening.wait_for_notice("listening to")
    email = run.send_email(to=[BOUNCING])
    event = listening.wait_for_json(lambda event: event["data"]["email_id"] == email, "the event")
    expect(event["type"] == "email.bounced" and event["forwarded"]["status"] == 204, f"{event}")
    listening.interrupt()
    expect([json.loads(one["body"])["type"] for one in run.receiver.deliveries] == ["email.bounced"], "others are forwarded")


@example("postrider listen --since 1h --forward-to localhost:3000/webhooks")
def listen_since(run):
    email = run.send_email()
    until(lambda: has_event(run, email), "the event")
    listening = run.start()
    listening.wait_for_json(lambda event: sent(email)(event) and event["forwarded"]["status"] == 204, "the event")
    listening.interrupt()


def has_event(run, email):
    events = run.fixtures.get("/webhook-events?order=desc&limit=100&types=email.sent")["events"]
    return any(sent(email)(event) for event in events)


@example("postrider trigger email.bounced")
def trigger(run):
    body = {"url": run.receiver.url, "events": ["email.bounced"]}
    webhook = run.fixtures.post("/webhooks", body)["webhook"]["id"]
    run.value()
    expect(run.receiver.wait("email.bounced", WAIT_S), "the webhook gets no event")
    run.fixtures.call("DELETE", f"/webhooks/{webhook}")


@example("postrider trigger email.bounced --forward-to http://localhost:3000/webhooks --set data.rcpt_to=ada@example.net")
def trigger_and_forward(run):
    expect(run.value()["status"] == 204, "the receiver does not take it")
    delivery = run.receiver.wait("email.bounced", 0)
    expect(json.loads(delivery["body"])["data"]["rcpt_to"] == "ada@example.net", "the field is not set")
    expect("webhook-signature" in delivery["headers"], "the event is not signed")


@example("postrider logs tail --status 4xx")
def logs_tail(run):
    run.start("postrider emails get msg_unknown").finish(1)
    tail = run.start()
    entry = tail.wait_for_json(lambda entry: entry["path"] == "/emails/msg_unknown", "the request")
    expect(entry["status"] == 404, f"{entry}")
    tail.interrupt()


@example("postrider logs tail --path /emails --count 1")
def logs_tail_count(run):
    run.send_email()
    run.start("postrider emails get msg_newest").finish(1)
    until(lambda: run.fixtures.get("/logs?path=/emails&limit=1")["logs"][0]["path"] == "/emails/msg_newest", "the request")
    expect(run.value()["path"] == "/emails/msg_newest", "another request than the newest is shown")


# Emails


def wait_while_sending(run, **fields):
    """`wait` takes new emails only, so one is sent again until it has ended."""
    waiting = run.start()
    while True:
        run.send_email(to=["ada@example.net"], text="Your code is 123456", **fields)
        if waiting.has_ended(1):
            return json.loads(waiting.finish())


@example("postrider wait --to ada@example.net")
def wait(run):
    expect(wait_while_sending(run)["codes"] == ["123456"], "the code is not found")


@example("postrider wait --to ada@example.net --subject Welcome --for 1m")
def wait_for_subject(run):
    found = wait_while_sending(run, subject="Welcome on board")
    expect(found["subject"] == "Welcome on board", f"{found}")


@example("postrider approvals wait apr_01K9ZQ4Y8M3T5V7W2X6B0C1D9E --for 1h")
def approvals_wait(run):
    waiting = run.start()
    run.fixtures.approve(run.approval_id)
    expect(json.loads(waiting.finish())["id"].startswith("msg_"), "the response is not shown")


@example("postrider explain msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E")
def explain(run):
    value = run.value()
    expect(value["id"] == run.email_id and value["recipients"][0]["explanation"], f"{value}")


@example("postrider emails watch")
def emails_watch(run):
    watching = run.start()
    watching.wait_for_notice("watching")
    email = run.send_email()
    watching.wait_for_json(lambda event: event["data"]["email_id"] == email, "the event")
    watching.interrupt()


@example("postrider emails watch msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E")
def emails_watch_one(run):
    first = json.loads(run.output().splitlines()[0])
    expect(first["id"] == run.email_id, f"{first}")


# Templates


def write_template(run):
    run.delete_templates()
    for name, text in TEMPLATE.items():
        run.write(f"templates/welcome/{name}", text)


@example("postrider templates push templates --publish")
def templates_push(run):
    write_template(run)
    run.value()
    template = run.fixtures.get("/templates/welcome")["template"]
    expect(template["published_version"] == 1 and template["html"] == TEMPLATE["body.html"], f"{template}")


@example("postrider templates pull templates")
def templates_pull(run):
    run.delete_templates()
    run.fixtures.post("/templates", {"name": "Welcome", "alias": "welcome", "subject": "Hello", "html": "<p>Hello</p>"})
    run.value()
    expect("<p>Hello</p>" in run.path("templates/welcome/body.html").read_text(), "the file has another content")


@example("postrider templates diff templates")
def templates_diff(run):
    write_template(run)
    run.prepare("postrider templates push templates")
    expect(run.output() == "", "there are differences after a push")
    run.write("templates/welcome/body.html", "<p>Goodbye</p>\n")
    expect("+<p>Goodbye</p>" in run.output(status=1), "the difference is not shown")


@example("postrider templates watch templates")
def templates_watch(run):
    write_template(run)
    watching = run.start()
    watching.wait_for("stdout", lambda line: "created" in line, "the new draft")
    run.write("templates/welcome/body.html", "<p>Hello {{nobody}}</p>\n")
    watching.wait_for("stdout", lambda line: "updated" in line, "the change")
    watching.interrupt()
    expect("nobody" in run.fixtures.get("/templates/welcome")["template"]["html"], "the draft has another content")


# A declared account


def declare(run, name):
    run.write("mail.toml", DECLARATION.replace("NAME", name))


@example("postrider plan mail.toml")
def plan(run):
    declare(run, "plan")
    # 5: there are changes to make.
    expect("plan.example" in run.output(status=5), "the domain is not in the plan")


@example("postrider plan mail.toml --json")
def plan_json(run):
    declare(run, "plan")
    run.value(status=5)


@example("postrider apply mail.toml")
def apply(run):
    declare(run, "asked")
    run.answer_on_terminal("[y/N]", "y")
    expect(run.fixtures.get("/domains/asked.example")["domain"]["open_tracking"], "the domain is not made")


@example("postrider apply mail.toml --yes --save-secrets secrets")
def apply_without_questions(run):
    declare(run, "unasked")
    run.value()
    run.fixtures.get("/domains/unasked.example")
    secrets = list(run.path("secrets").iterdir())
    expect(len(secrets) == 1 and mode(secrets[0]) == 0o600, f"the secrets are {secrets}")
    expect(secrets[0].read_text().startswith("whsec_"), "the file has no secret")


# Other services


def suppressed(run, email):
    return run.fixtures.get(f"/suppressions/{email}")["suppression"]["reason"]


@example("postrider import postmark suppressions.csv --dry-run")
def import_postmark(run):
    run.write(
        "suppressions.csv",
        "EmailAddress,SuppressionReason,Origin,CreatedAt\nalan@example.net,HardBounce,Recipient,2026-01-01T00:00:00Z\n",
    )
    expect(run.value()["by_reason"] == {"hard_bounce": 1}, "another reason")


@example("postrider import resend contacts.csv")
def import_resend(run):
    run.write("contacts.csv", "email,unsubscribed\nkurt@example.net,true\nemmy@example.net,false\n")
    expect(run.value()["import"]["created"] == 1, "another number is made")
    expect(suppressed(run, "kurt@example.net") == "unsubscribe", "another reason")


@example("postrider import mailgun complaints.csv --reason complaint")
def import_mailgun(run):
    run.write("complaints.csv", "address\nsophie@example.net\n")
    run.value()
    expect(suppressed(run, "sophie@example.net") == "complaint", "another reason")


@example("postrider import ses welcome.json")
def import_ses(run):
    run.delete_templates()
    content = {"Subject": "Hello", "Html": "<p>Hello {{name}}</p>", "Text": "Hello {{name}}"}
    run.write("welcome.json", json.dumps({"TemplateName": "Welcome", "TemplateContent": content}))
    run.value()
    expect(run.fixtures.get("/templates/welcome")["template"]["subject"] == "Hello", "the template is not made")


# Files


@example("postrider completion bash > ~/.local/share/bash-completion/completions/postrider")
def completion(run):
    script = run.path(".local/share/bash-completion/completions/postrider")
    script.parent.mkdir(parents=True)
    run.output()
    command = ["bash", "-c", f"source {script} && complete -p postrider"]
    subprocess.run(command, capture_output=True, check=True, timeout=WAIT_S)


@example("postrider mcp")
def mcp(run):
    run.prepare("""printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_account"}}' | postrider mcp > mcp.json""")
    answer = json.loads(run.path("mcp.json").read_text())
    expect("account" in answer["result"]["structuredContent"], f"the tool is not called: {answer}")
    expect(run.output() == "", "something is written without a message")


@example("postrider mcp --toolsets affiliates,automations --read-only")
def mcp_toolsets(run):
    expect(run.output() == "", "something is written without a message")


@example("postrider skill > SKILL.md")
def skill(run):
    run.output()
    expect(run.path("SKILL.md").read_text().startswith("---\nname: postrider\n"), "the file is no skill")


@example("postrider man man1")
def man(run):
    pages = run.value()["pages"]
    expect(pages == len(list(run.path("man1").iterdir())), f"{pages} pages")
    expect(run.path("man1/postrider-emails-send.1").is_file(), "a page is missing")
