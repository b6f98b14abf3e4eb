//! Addresses of a send request: author, recipients, reply-to.

use std::collections::HashSet;

use httpd::fields::{self, FieldDiagnostics, FieldNames, JsonKind, ObjectFields};
use message::address::{Address, AddressError, Mailbox};
use model::draft::DraftRecipient;
use model::recipient::{DsnOptions, RecipientKind};
use serde_json::value::RawValue;

/// Maximum number of recipients in `to`, `cc` and `bcc` together. Larger mailings use batches.
pub const RECIPIENTS_MAX: usize = 1_000;
/// Maximum number of addresses in `reply_to`.
pub const REPLY_TO_MAX: usize = 25;
/// Maximum length of a display name.
pub const NAME_BYTES_MAX: usize = 256;
/// Maximum length of an address with its display name and their delimiters.
pub const MAILBOX_BYTES_MAX: usize = NAME_BYTES_MAX + 4 * message::address::ADDRESS_BYTES_MAX;

const FROM_NAMES: FieldNames =
    FieldNames { known: &[("email", "email"), ("name", "name")], foreign: &[("Email", "email"), ("Name", "name")] };

/// Error for several addresses in one text.
const USE_LIST_TEXT: &str = "must contain one address; use a list for several";
/// Error for several addresses in `from`.
const SINGLE_AUTHOR_TEXT: &str = "must be a single address";

/// Parses the author: `Ada <ada@example.com>` or `{email, name}`.
pub fn read_author(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<Mailbox> {
    let Some(value) = fields.value("from") else {
        if !fields.is_present_or_misnamed("from") {
            notes.errors.add("from", "is required");
        }
        return None;
    };
    let outcome = match JsonKind::of_value(value) {
        JsonKind::Text => parse_mailbox(value, SINGLE_AUTHOR_TEXT),
        JsonKind::Object => return read_author_object(value, notes),
        _ => Err("must be an address or an object {email, name}".to_owned()),
    };
    outcome.map_err(|text| notes.errors.add("from", text)).ok()
}

fn read_author_object(value: &RawValue, notes: &mut FieldDiagnostics) -> Option<Mailbox> {
    let object = fields::parse_object(value).map_err(|text| notes.errors.add("from", text)).ok()?;
    let fields = ObjectFields::from_object(object, &FROM_NAMES, "from.", notes);
    let name = match fields.value("name") {
        None => None,
        Some(value) => match fields::parse_header_line(value, NAME_BYTES_MAX) {
            Ok(name) => Some(name.trim().to_owned()).filter(|n| !n.is_empty()),
            Err(text) => {
                notes.errors.add("from.name", text);
                return None;
            }
        },
    };
    let Some(email) = fields.value("email") else {
        if !fields.is_present_or_misnamed("email") {
            notes.errors.add("from.email", "is required");
        }
        return None;
    };
    let address = fields::parse_text(email).and_then(|text| text.parse::<Address>().map_err(|e| e.to_string()));
    match address {
        Ok(address) => Some(Mailbox { name, address }),
        Err(text) => {
            notes.errors.add("from.email", text);
            None
        }
    }
}

/// The recipients without duplicates. An address that occurs in several fields stays in the first of `to`, `cc`, `bcc`.
#[derive(Debug, Default)]
pub struct RecipientLists {
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub bcc: Vec<Mailbox>,
    /// All recipients: the SMTP envelope.
    pub envelope: Vec<DraftRecipient>,
}

/// Parses `to`, `cc` and `bcc`.
pub fn read_recipients(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> RecipientLists {
    let mut all = RecipientLists::default();
    if !fields.is_present_or_misnamed("to") {
        notes.errors.add("to", "is required");
    }
    let mut remaining = RECIPIENTS_MAX;
    let mut addresses = HashSet::new();
    for (field, kind) in [("to", RecipientKind::To), ("cc", RecipientKind::Cc), ("bcc", RecipientKind::Bcc)] {
        let Some(value) = fields.value(field) else { continue };
        let mailboxes = match parse_mailboxes(value, field, remaining, notes) {
            Ok(mailboxes) => mailboxes,
            Err(TooManyAddresses) => {
                let text = format!("at most {RECIPIENTS_MAX} recipients in to, cc and bcc together");
                notes.errors.add(field, text);
                return all;
            }
        };
        remaining -= mailboxes.len();
        if field == "to" && value.get() == "[]" {
            notes.errors.add("to", "must contain at least one recipient");
        }
        for mailbox in mailboxes {
            if !addresses.insert(mailbox.address.clone()) {
                continue;
            }
            let address = mailbox.address.clone();
            all.envelope.push(DraftRecipient { address, kind, notify: DsnOptions::default() });
            match kind {
                RecipientKind::To => all.to.push(mailbox),
                RecipientKind::Cc => all.cc.push(mailbox),
                RecipientKind::Bcc => all.bcc.push(mailbox),
            }
        }
    }
    all
}

/// Parses `reply_to`.
pub fn read_reply_to(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Vec<Mailbox> {
    let Some(value) = fields.value("reply_to") else { return Vec::new() };
    parse_mailboxes(value, "reply_to", REPLY_TO_MAX, notes).unwrap_or_else(|TooManyAddresses| {
        notes.errors.add("reply_to", format!("has more than {REPLY_TO_MAX} entries"));
        Vec::new()
    })
}

struct TooManyAddresses;

/// Parses an address or a list of addresses. Invalid ones are recorded as errors and omitted.
fn parse_mailboxes(
    value: &RawValue,
    field: &str,
    entries_max: usize,
    notes: &mut FieldDiagnostics,
) -> Result<Vec<Mailbox>, TooManyAddresses> {
    match JsonKind::of_value(value) {
        JsonKind::Text if entries_max == 0 => Err(TooManyAddresses),
        JsonKind::Text => {
            Ok(parse_mailbox(value, USE_LIST_TEXT).map_err(|text| notes.errors.add(field, text)).into_iter().collect())
        }
        JsonKind::List => {
            let entries = fields::parse_list(value, entries_max).map_err(|_| TooManyAddresses)?;
            let mut mailboxes = Vec::with_capacity(entries.len());
            for (n, entry) in entries.into_iter().enumerate() {
                match parse_mailbox(entry, USE_LIST_TEXT) {
                    Ok(mailbox) => mailboxes.push(mailbox),
                    Err(text) => notes.errors.add(&format!("{field}[{n}]"), text),
                }
            }
            Ok(mailboxes)
        }
        _ => {
            notes.errors.add(field, "must be an address or a list of addresses");
            Ok(Vec::new())
        }
    }
}

/// Parses `ada@example.com` or `Ada <ada@example.com>`. Returns `several` if the text has more than one address.
fn parse_mailbox(value: &RawValue, several_text: &str) -> Result<Mailbox, String> {
    let text = fields::parse_text(value)?;
    model::tags::check_line(&text, MAILBOX_BYTES_MAX)?;
    let mailbox: Mailbox = text.parse().map_err(|error| address_error_text(&text, several_text, error))?;
    let Some(name) = &mailbox.name else { return Ok(mailbox) };
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the display name is longer than {NAME_BYTES_MAX} bytes"));
    }
    // `a <x@y>, b <z@w>` would parse as one mailbox with an odd name: reject it instead of silently dropping addresses.
    let quoted = text.trim_start().starts_with('"');
    if !quoted && (name.contains(['<', '>']) || (name.contains(',') && name.contains('@'))) {
        return Err(several_text.to_owned());
    }
    Ok(mailbox)
}

fn address_error_text(text: &str, several_text: &str, error: AddressError) -> String {
    if text.trim().is_empty() {
        return "is empty".to_owned();
    }
    if text.contains([',', ';']) && text.matches('@').count() != 1 {
        return several_text.to_owned();
    }
    error.to_string()
}
