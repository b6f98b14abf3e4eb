//! Fingerprint of a send request: a SHA-256 over its content that identifies a repeated request
//! (completions-email.md 2.3).
//!
//! It covers the parsed email, not the body's bytes: `"x"` equals `["x"]`, an alias equals its canonical name, and tags
//! are equal as object or list in any order. Ignored fields count by name, because the response names them. It is
//! computed only for requests with an idempotency key.

use std::fmt::Write as _;

use mail::address::Mailbox;
use mail::draft::{OnSuppressed, SendOptions};
use mail::template::{TemplateKey, TemplateUse};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::send_email::SendEmail;

/// An incremental fingerprint. Every part is prefixed by its length or count, so that different requests cannot
/// produce the same input.
pub(crate) struct RequestFingerprint(Sha256);

impl RequestFingerprint {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(crate) fn add(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds an optional part.
    pub(crate) fn add_optional(&mut self, given: Option<impl AsRef<[u8]>>) {
        self.0.update([u8::from(given.is_some())]);
        if let Some(bytes) = given {
            self.add(bytes);
        }
    }

    /// Adds the number of the parts that follow.
    pub(crate) fn add_count(&mut self, things: usize) {
        self.0.update((things as u64).to_le_bytes());
    }

    /// The digest in hexadecimal.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn add_pairs<'a>(&mut self, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_unstable();
        self.add_count(pairs.len());
        for (name, value) in pairs {
            self.add(name);
            self.add(value);
        }
    }

    fn add_mailbox(&mut self, mailbox: &Mailbox) {
        self.add_optional(mailbox.name.as_ref());
        self.add(mailbox.address.to_string());
    }

    fn add_mailboxes(&mut self, mailboxes: &[Mailbox]) {
        self.add_count(mailboxes.len());
        mailboxes.iter().for_each(|mailbox| self.add_mailbox(mailbox));
    }

    fn add_options(&mut self, options: &SendOptions) {
        let SendOptions {
            scheduled_at,
            expires_in,
            priority,
            on_suppressed,
            unsubscribe,
            resent_from,
            template,
            run,
            // Requests cannot set it.
            metered: _,
        } = options;
        self.add_optional(scheduled_at.map(|at| at.to_string()));
        self.add_optional(expires_in.map(|time| time.as_secs().to_le_bytes()));
        self.add([u8::from(*on_suppressed == OnSuppressed::Skip)]);
        self.add_optional(unsubscribe.map(|yes| [u8::from(yes)]));
        // Requests cannot set these.
        debug_assert!(priority.is_none() && resent_from.is_none() && template.is_none() && run.is_none());
    }

    fn add_template(&mut self, template: Option<&TemplateUse>) {
        let Some(TemplateUse { reference, variables }) = template else { return self.add_count(0) };
        self.add_count(1);
        match &reference.key {
            TemplateKey::Id(id) => self.add(id.to_string()),
            TemplateKey::Alias(alias) => self.add(alias),
        }
        self.add_optional(reference.version.map(u32::to_le_bytes));
        self.add_json(variables);
    }

    /// Adds JSON; the order of object members does not matter. Recursion is bounded by the nesting limit of bodies.
    pub(crate) fn add_json(&mut self, value: &Value) {
        match value {
            Value::Null => self.add("n"),
            Value::Bool(yes) => self.add(if *yes { "t" } else { "f" }),
            Value::Number(number) => self.add(format!("#{number}")),
            Value::String(text) => {
                self.add("s");
                self.add(text);
            }
            Value::Array(entries) => {
                self.add("[");
                self.add_count(entries.len());
                entries.iter().for_each(|entry| self.add_json(entry));
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| name.as_str());
                self.add("{");
                self.add_count(members.len());
                for (name, value) in members {
                    self.add(name);
                    self.add_json(value);
                }
            }
        }
    }

    /// Adds a parsed email.
    pub(super) fn add_email(&mut self, email: &SendEmail, warnings: &[String]) {
        // Destructured field by field, so that a new field cannot be forgotten here.
        let SendEmail {
            from,
            recipients: people,
            reply_to,
            subject,
            html,
            text,
            headers,
            attachments,
            tags,
            category,
            options,
            template,
        } = email;
        self.add_mailboxes(from.as_slice());
        for field in [&people.to, &people.cc, &people.bcc, reply_to] {
            self.add_mailboxes(field);
        }
        for content in [subject, html, text] {
            self.add_optional(content.as_ref());
        }
        self.add_pairs(headers.iter().map(|header| (header.name(), header.value())));
        self.add_pairs(tags.iter().map(|tag| (tag.name.as_str(), tag.value.as_str())));
        self.add_count(attachments.len());
        for file in attachments {
            self.add(&file.name);
            self.add(&file.content_type);
            self.add_optional(file.content_id.as_ref());
            self.add(&file.data);
        }
        self.add_optional(category.map(|category| [category as u8]));
        self.add_options(options);
        self.add_template(template.as_ref());
        self.add_count(warnings.len());
        warnings.iter().for_each(|warning| self.add(warning));
    }
}

/// The fingerprint of one email.
pub(super) fn email_fingerprint(email: &SendEmail, warnings: &[String]) -> String {
    let mut fingerprint = RequestFingerprint::new();
    fingerprint.add_email(email, warnings);
    fingerprint.finish()
}
