//! The languages of the examples: how a client is made, sends an email and verifies a webhook.

use crate::block::{Block, CodeBlock, ExamplePanel};
use crate::highlight::CodeLanguage;

/// A language of the examples.
#[derive(Debug, Clone, Copy)]
pub struct ExampleLanguage {
    /// The name in `sdk/snippets.json`.
    pub key: &'static str,
    pub label: &'static str,
    pub code: CodeLanguage,
    /// A whole program or command that sends an email.
    pub first_email: &'static str,
    /// How a received webhook is verified.
    pub verification: &'static str,
}

/// All languages. The first one is shown until another is chosen.
pub const LANGUAGES: [ExampleLanguage; 7] = [
    ExampleLanguage {
        key: "curl",
        label: "curl",
        code: CodeLanguage::Shell,
        first_email: r#"curl -X POST "$POSTRIDER_BASE_URL/emails" \
  -H "Authorization: Bearer $POSTRIDER_API_KEY" \
  -H "Content-Type: application/json" \
  -d '{
    "from": "Ada <ada@example.com>",
    "to": ["grace@example.net"],
    "subject": "Welcome",
    "html": "<p>Hello Grace</p>"
  }'"#,
        verification: r#"# t and v1 are parts of the header Service-Signature;
# body.json is the body as it was received.
( printf '%s.' "$t"; cat body.json ) |
  openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -r
# The first word must equal v1."#,
    },
    ExampleLanguage {
        key: "cli",
        label: "CLI",
        code: CodeLanguage::Shell,
        first_email: r#"# Once: it asks for the key, checks it and stores it.
postrider login

postrider emails send \
  --from 'Ada <ada@example.com>' \
  --to grace@example.net \
  --subject Welcome \
  --html '<p>Hello Grace</p>'"#,
        verification: r#"# Posts your events to a local program, signed like webhooks.
postrider listen --forward-to http://localhost:3000/webhooks

# Posts an example of one event.
postrider trigger email.bounced --forward-to http://localhost:3000/webhooks"#,
    },
    ExampleLanguage {
        key: "node",
        label: "Node",
        code: CodeLanguage::JavaScript,
        first_email: r#"// Install: /docs/guides/quick-start#install-an-sdk
import { Postrider } from "postrider";

// Reads POSTRIDER_API_KEY and POSTRIDER_BASE_URL.
const client = new Postrider();

const { data, error } = await client.emails.send({
  from: "Ada <ada@example.com>",
  to: ["grace@example.net"],
  subject: "Welcome",
  html: "<p>Hello Grace</p>",
});
if (error) throw error;
console.log(data.id);"#,
        verification: r#"import { constructEvent } from "postrider";

export async function POST(request) {
  const event = await constructEvent(
    await request.text(),
    request.headers,
    process.env.WEBHOOK_SECRET,
  ); // throws SignatureError
  if (event.type === "email.bounced") {
    console.log(event.data.rcpt_to);
  }
  return new Response();
}"#,
    },
    ExampleLanguage {
        key: "python",
        label: "Python",
        code: CodeLanguage::Python,
        first_email: r#"# Install: /docs/guides/quick-start#install-an-sdk
from postrider import Postrider

# Reads POSTRIDER_API_KEY and POSTRIDER_BASE_URL.
client = Postrider()

sent = client.emails.send({
    "from": "Ada <ada@example.com>",
    "to": ["grace@example.net"],
    "subject": "Welcome",
    "html": "<p>Hello Grace</p>",
})
print(sent["id"])"#,
        verification: r#"import os

from postrider import webhooks

def receive(body, headers):
    event = webhooks.construct_event(
        body, headers, os.environ["WEBHOOK_SECRET"]
    )  # raises SignatureError
    if event["type"] == "email.bounced":
        print(event["data"]["rcpt_to"])"#,
    },
    ExampleLanguage {
        key: "php",
        label: "PHP",
        code: CodeLanguage::Php,
        first_email: r#"// Install: /docs/guides/quick-start#install-an-sdk
use Postrider\Client;

// Reads POSTRIDER_API_KEY and POSTRIDER_BASE_URL.
$client = new Client();

$sent = $client->emails->send([
    'from' => 'Ada <ada@example.com>',
    'to' => ['grace@example.net'],
    'subject' => 'Welcome',
    'html' => '<p>Hello Grace</p>',
]);
echo $sent['id'];"#,
        verification: r#"use Postrider\Exception\SignatureException;
use Postrider\Webhooks;

try {
    $event = Webhooks::constructEvent(
        file_get_contents('php://input'),
        $_SERVER,
        getenv('WEBHOOK_SECRET'),
    );
} catch (SignatureException $failure) {
    http_response_code(400);
    exit($failure->getMessage());
}
if ($event->type === 'email.bounced') {
    error_log($event->data['rcpt_to']);
}"#,
    },
    ExampleLanguage {
        key: "ruby",
        label: "Ruby",
        code: CodeLanguage::Ruby,
        first_email: r#"# Install: /docs/guides/quick-start#install-an-sdk
require "postrider"

# Reads POSTRIDER_API_KEY and POSTRIDER_BASE_URL.
client = Postrider::Client.new

sent = client.emails.send({
  from: "Ada <ada@example.com>",
  to: ["grace@example.net"],
  subject: "Welcome",
  html: "<p>Hello Grace</p>",
})
puts sent[:id]"#,
        verification: r#"require "postrider"

# In Rails: request.raw_post and request.headers.
event = Postrider::Webhooks.construct_event(
  raw_body, headers, ENV.fetch("WEBHOOK_SECRET")
) # raises SignatureError
if event.type == "email.bounced"
  puts event.data[:rcpt_to]
end"#,
    },
    ExampleLanguage {
        key: "go",
        label: "Go",
        code: CodeLanguage::Go,
        first_email: r#"// Install: /docs/guides/quick-start#install-an-sdk
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/postrider/postrider-go"
)

func main() {
	// Reads POSTRIDER_API_KEY and POSTRIDER_BASE_URL.
	client, err := postrider.New()
	if err != nil {
		log.Fatal(err)
	}
	sent, err := client.Emails.Send(context.Background(), &postrider.SendEmailParams{
		From:    postrider.String("Ada <ada@example.com>"),
		To:      []string{"grace@example.net"},
		Subject: postrider.String("Welcome"),
		HTML:    postrider.String("<p>Hello Grace</p>"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sent.ID)
}"#,
        verification: r#"secrets := []string{os.Getenv("WEBHOOK_SECRET")}
http.Handle("/webhooks", postrider.WebhookHandler(secrets,
	func(ctx context.Context, event *postrider.WebhookEvent) error {
		if data, ok := event.Data.(*postrider.EmailBouncedData); ok {
			fmt.Println(data.RcptTo)
		}
		return nil
	}))"#,
    },
];

/// The same in each language.
pub fn examples(title: &str, text: impl Fn(&ExampleLanguage) -> String) -> Block {
    let panels = LANGUAGES.iter().map(|language| ExamplePanel {
        key: language.key,
        label: language.label,
        language: language.code,
        text: text(language),
    });
    Block::Examples { title: title.into(), panels: panels.collect() }
}

/// JSON, indented.
pub fn json_block(title: &str, value: &serde_json::Value) -> Block {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    Block::Code(CodeBlock { title: title.into(), language: CodeLanguage::Json, text })
}
