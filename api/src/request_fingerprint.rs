//! `RequestFingerprint`: a SHA-256 over the content of a request that identifies a repeated request
//! with the same key. It is computed only for requests with an idempotency key.

use message::address::Mailbox;
use message::hexadecimal;
use model::template::{TemplateKey, TemplateUse};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

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
    pub(crate) fn add_optional(&mut self, value: Option<impl AsRef<[u8]>>) {
        self.0.update([u8::from(value.is_some())]);
        if let Some(bytes) = value {
            self.add(bytes);
        }
    }

    /// Adds the number of the parts that follow.
    pub(crate) fn add_count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }

    /// The digest in hexadecimal.
    pub(crate) fn finish(self) -> String {
        hexadecimal::encode(self.0.finalize())
    }

    /// Adds pairs of name and value; their order does not matter.
    pub(crate) fn add_pairs<'a>(&mut self, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
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

    /// Adds a list of mailboxes.
    pub(crate) fn add_mailboxes(&mut self, mailboxes: &[Mailbox]) {
        self.add_count(mailboxes.len());
        mailboxes.iter().for_each(|mailbox| self.add_mailbox(mailbox));
    }

    /// Adds the template with its variables, if the request names one.
    pub(crate) fn add_template(&mut self, template: Option<&TemplateUse>) {
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
            Value::Bool(is_enabled) => self.add(if *is_enabled { "t" } else { "f" }),
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
}
