//! Fingerprint of a send request.
//!
//! It covers the parsed email, not the body's bytes: `"x"` equals `["x"]`, an alias equals its canonical name, and tags
//! are equal as object or list in any order. Ignored fields count by name, because the response names them.

use super::send_email::SendEmail;
use crate::request_fingerprint::RequestFingerprint;

/// Adds a parsed email.
pub(super) fn add_email(fingerprint: &mut RequestFingerprint, email: &SendEmail, warnings: &[String]) {
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
    fingerprint.add_mailboxes(from.as_slice());
    for field in [&people.to, &people.cc, &people.bcc, reply_to] {
        fingerprint.add_mailboxes(field);
    }
    for content in [subject, html, text] {
        fingerprint.add_optional(content.as_ref());
    }
    fingerprint.add_pairs(headers.iter().map(|header| (header.name(), header.value())));
    fingerprint.add_pairs(tags.iter().map(|tag| (tag.name.as_str(), tag.value.as_str())));
    fingerprint.add_count(attachments.len());
    for file in attachments {
        fingerprint.add(&file.name);
        fingerprint.add(&file.content_type);
        fingerprint.add_optional(file.content_id.as_ref());
        fingerprint.add(&file.data);
    }
    fingerprint.add_optional(category.map(|category| [category as u8]));
    fingerprint.add_options(options);
    fingerprint.add_template(template.as_ref());
    fingerprint.add_count(warnings.len());
    warnings.iter().for_each(|warning| fingerprint.add(warning));
}

/// The fingerprint of one email.
pub(super) fn email_fingerprint(email: &SendEmail, warnings: &[String]) -> String {
    let mut fingerprint = RequestFingerprint::new();
    add_email(&mut fingerprint, email, warnings);
    fingerprint.finish()
}
