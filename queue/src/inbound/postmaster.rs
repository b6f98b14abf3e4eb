//! Mail to our own mailboxes, `postmaster` and `abuse` (RFC 5321 4.5.1, RFC 2142): passed on to the operator.
//!
//! As a file in a message of the service's own, from the domain of `[service] sandbox_sender`, as sign-in links
//! are: what a stranger wrote is not sent on under the stranger's name, which would fail DMARC at the next host.

use mail::address::Address;
use mail::compose::Attachment;
use mail::letter::SystemEmail;

use super::{InboundRejection, IncomingMessage};
use crate::accept::Intake;
use crate::postman::SystemMailer;

/// Who passes it on.
const LOCAL_PART: &str = "mailer";

/// Passes a message on.
pub(super) async fn forward_to_operator(
    hall: &Intake,
    to: Address,
    mailbox: &Address,
    incoming: &IncomingMessage,
) -> Result<(), InboundRejection> {
    let later = |cause: &dyn std::fmt::Display| {
        tracing::error!(%cause, "mail to {} cannot be passed on", mailbox.local_part());
        InboundRejection::Unavailable
    };
    let domain = hall.service_domain().ok_or_else(|| later(&"`sandbox_sender` in [service] is not set"))?;
    let from = Address::new(LOCAL_PART, domain).map_err(|error| later(&error))?;
    let postman = SystemMailer::for_service(hall, from).await.map_err(|error| later(&error))?;
    let sender = incoming.reverse_path.as_ref().map_or("<>".to_owned(), ToString::to_string);
    let text = format!("{sender} wrote to {mailbox}, from {}. The message is attached.\n", incoming.peer);
    let letter = SystemEmail {
        reply_to: incoming.reverse_path.clone(),
        forwarded_for: Some(mailbox.clone()),
        attachment: Some(Attachment {
            name: "message.eml".to_owned(),
            content_type: "message/rfc822".to_owned(),
            data: incoming.message.to_vec(),
            content_id: None,
        }),
        ..SystemEmail::new(to, format!("Mail to {mailbox}"), text)
    };
    postman.send(hall, letter).await.map_err(|refusal| later(&refusal))
}
