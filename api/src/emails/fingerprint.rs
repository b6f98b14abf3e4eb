//! The fingerprint of a send request: SHA-256 of what it says, by which the same request is known again
//! (completions-email.md 2.3).
//!
//! It is taken of the letter that was read, not of the bytes that came: `"x"` is `["x"]`, an alias its
//! canonical name, tags are an object or a list, in any order. What was ignored counts by its name, since the
//! answer names it. It is made only of requests with a key.

use std::fmt::Write as _;

use mail::address::Mailbox;
use mail::draft::{OnSuppressed, Wishes};
use mail::template::{TemplateKey, TemplateUse};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::letter::Letter;

/// A fingerprint being taken. What is added is told apart by its length, so that no two requests that say
/// different things add up to the same.
pub(crate) struct Fingerprint(Sha256);

impl Fingerprint {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds one thing.
    pub(crate) fn add(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds what may be absent.
    pub(crate) fn add_if(&mut self, given: Option<impl AsRef<[u8]>>) {
        self.0.update([u8::from(given.is_some())]);
        if let Some(bytes) = given {
            self.add(bytes);
        }
    }

    /// Says that so many things follow.
    pub(crate) fn count(&mut self, things: usize) {
        self.0.update((things as u64).to_le_bytes());
    }

    /// In hexadecimal.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn pairs<'a>(&mut self, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_unstable();
        self.count(pairs.len());
        for (name, value) in pairs {
            self.add(name);
            self.add(value);
        }
    }

    fn mailbox(&mut self, mailbox: &Mailbox) {
        self.add_if(mailbox.name.as_ref());
        self.add(mailbox.address.to_string());
    }

    fn mailboxes(&mut self, mailboxes: &[Mailbox]) {
        self.count(mailboxes.len());
        mailboxes.iter().for_each(|mailbox| self.mailbox(mailbox));
    }

    fn wishes(&mut self, wishes: &Wishes) {
        let Wishes {
            scheduled_at,
            expires_in,
            priority,
            on_suppressed,
            unsubscribe,
            resent_from,
            template,
            run,
            // No request says so.
            metered: _,
        } = wishes;
        self.add_if(scheduled_at.map(|at| at.to_string()));
        self.add_if(expires_in.map(|time| time.as_secs().to_le_bytes()));
        self.add([u8::from(*on_suppressed == OnSuppressed::Skip)]);
        self.add_if(unsubscribe.map(|yes| [u8::from(yes)]));
        // A request says none of them.
        debug_assert!(priority.is_none() && resent_from.is_none() && template.is_none() && run.is_none());
    }

    fn template(&mut self, template: Option<&TemplateUse>) {
        let Some(TemplateUse { reference, variables }) = template else { return self.count(0) };
        self.count(1);
        match &reference.key {
            TemplateKey::Id(id) => self.add(id.to_string()),
            TemplateKey::Alias(alias) => self.add(alias),
        }
        self.add_if(reference.version.map(u32::to_le_bytes));
        self.json(variables);
    }

    /// JSON, whose objects have no order. It nests as deep as a body may.
    pub(crate) fn json(&mut self, value: &Value) {
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
                self.count(entries.len());
                entries.iter().for_each(|entry| self.json(entry));
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| name.as_str());
                self.add("{");
                self.count(members.len());
                for (name, value) in members {
                    self.add(name);
                    self.json(value);
                }
            }
        }
    }

    /// Adds a letter.
    pub(super) fn letter(&mut self, letter: &Letter, warnings: &[String]) {
        // Named one by one, so that what a letter comes to have is not forgotten here.
        let Letter {
            from,
            people,
            reply_to,
            subject,
            html,
            text,
            headers,
            attachments,
            tags,
            category,
            wishes,
            template,
        } = letter;
        self.mailboxes(from.as_slice());
        for field in [&people.to, &people.cc, &people.bcc, reply_to] {
            self.mailboxes(field);
        }
        for content in [subject, html, text] {
            self.add_if(content.as_ref());
        }
        self.pairs(headers.iter().map(|header| (header.name(), header.value())));
        self.pairs(tags.iter().map(|tag| (tag.name.as_str(), tag.value.as_str())));
        self.count(attachments.len());
        for file in attachments {
            self.add(&file.name);
            self.add(&file.content_type);
            self.add_if(file.content_id.as_ref());
            self.add(&file.data);
        }
        self.add_if(category.map(|category| [category as u8]));
        self.wishes(wishes);
        self.template(template.as_ref());
        self.count(warnings.len());
        warnings.iter().for_each(|warning| self.add(warning));
    }
}

/// The fingerprint of one email.
pub(super) fn of(letter: &Letter, warnings: &[String]) -> String {
    let mut fingerprint = Fingerprint::new();
    fingerprint.letter(letter, warnings);
    fingerprint.finish()
}
