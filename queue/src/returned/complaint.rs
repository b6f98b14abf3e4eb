//! Which recipient a complaint is about, and whether it is to be believed.
//!
//! ```text
//! a return path of ours in it    ─► that recipient: nobody can make one up
//! the email's Message-ID         ─► the email, if the report proves that it stands on it:
//!     a reporter that the operator trusts (DKIM or SPF, aligned) wrote it, or
//!     a DKIM signature of ours is in the enclosed header, as we made it
//! ```
//!
//! A `Message-ID` by itself is no proof: it stands in archives and in quoted replies, and a complaint suppresses
//! for good (RFC 6449 5.2: who consumes reports checks who sent them). Of an email to several, all of whom have
//! the same header, the report must come from a trusted reporter, and name which one it is about: each of the others
//! has the signature, too. What proves nothing is counted, logged, and changes nothing.

use bytes::Bytes;
use mail::address::Address;
use mail::arrival::InboundMessage;
use mail::id::EmailId;
use mail::message;
use mail::recipient::Recipient;
use mail::returned::reporter::{self, FeedbackReporter};
use mail::returned::{Complaint, dkim_signature_values};
use mail::task::TaskId;
use store::email::EmailWithRecipients;

use super::book::BounceReport;
use super::{BounceError, BounceProcessor, BouncedRecipient};

/// Why a complaint is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComplaintProof {
    /// A reporter that the operator trusts wrote it.
    Reporter,
    /// It has a signature that only those have who got the email.
    Signature,
}

impl BounceProcessor {
    /// Books a complaint that came to where complaints come in.
    pub(super) async fn apply_complaint(
        &self,
        complaint: Complaint,
        arrival: &InboundMessage,
        trusted: &[FeedbackReporter],
    ) -> Result<&'static str, BounceError> {
        let about = match self.find_by_return_path(&complaint).await? {
            Some(about) => about,
            None => {
                let Some(found) = self.find_by_message_id(&complaint).await? else { return Ok("unknown") };
                let proof = self.find_proof(&found, &complaint, (arrival, trusted)).await?;
                let meant = proof.and_then(|proof| complained_recipient(&found, &complaint, proof));
                let Some(meant) = meant else {
                    tracing::info!(email.id = %found.email.id, peer = %arrival.peer, proof = ?proof,
                        "a complaint that does not prove whose it is changes nothing");
                    return Ok("unproven");
                };
                let task = TaskId { email: found.email.id, recipient: meant.index };
                BouncedRecipient { account: found.email.account, task }
            }
        };
        self.apply(
            about,
            &BounceReport::Complaint(complaint.with_default_arrival(arrival.received_at)),
            arrival.received_at,
        )
        .await
    }

    async fn find_by_return_path(&self, complaint: &Complaint) -> Result<Option<BouncedRecipient>, BounceError> {
        for path in &complaint.return_paths {
            if let Some(about) = self.find_recipient(path).await? {
                return Ok(Some(about));
            }
        }
        Ok(None)
    }

    /// The email whose `Message-ID` is in it: that of mail that we composed holds the email's id.
    async fn find_by_message_id(&self, complaint: &Complaint) -> Result<Option<EmailWithRecipients>, BounceError> {
        let Some((id, domain)) = complaint.message_id.as_deref().and_then(|id| id.rsplit_once('@')) else {
            return Ok(None);
        };
        let Ok(email) = format!("{}{}", EmailId::PREFIX, id.to_ascii_uppercase()).parse::<EmailId>() else {
            return Ok(None);
        };
        let Some(account) = self.find_account(domain.parse().ok()).await? else { return Ok(None) };
        Ok(store::email::get(&self.worker.store, account, email).await?)
    }

    async fn find_proof(
        &self,
        found: &EmailWithRecipients,
        complaint: &Complaint,
        (arrival, trusted): (&InboundMessage, &[FeedbackReporter]),
    ) -> Result<Option<ComplaintProof>, BounceError> {
        if reporter::is_trusted_author(trusted, arrival) {
            return Ok(Some(ComplaintProof::Reporter));
        }
        if complaint.signatures.is_empty() {
            return Ok(None);
        }
        let (store, email) = (&self.worker.store, &found.email);
        let sent = store::email::get_body(store, email.account, email.id).await?;
        let ours = sent.as_ref().map(header_bytes).map(dkim_signature_values).unwrap_or_default();
        let has_one = ours.iter().any(|ours| complaint.signatures.contains(ours));
        Ok(has_one.then_some(ComplaintProof::Signature))
    }
}

fn header_bytes(message: &Bytes) -> &[u8] {
    message.get(..message::parse_fields(message).1).unwrap_or_default()
}

/// The recipient that it is about.
fn complained_recipient<'f>(
    found: &'f EmailWithRecipients,
    complaint: &Complaint,
    proof: ComplaintProof,
) -> Option<&'f Recipient> {
    match (found.recipients.as_slice(), proof) {
        ([one], _) => Some(one),
        (several, ComplaintProof::Reporter) => {
            several.iter().find(|one| complaint.recipients.iter().any(|named| is_same_mailbox(named, &one.address)))
        }
        (_, ComplaintProof::Signature) => None,
    }
}

fn is_same_mailbox(one: &Address, other: &Address) -> bool {
    one.domain() == other.domain() && one.local_part().eq_ignore_ascii_case(other.local_part())
}
