//! Forwarding mail for the local mailboxes `postmaster` and `abuse` (RFC 5321 4.5.1, RFC 2142) to the operator.
//!
//! The message is attached to an email of the service, sent like sign-in links from the domain of `[service]
//! sandbox_sender`. Forwarding it under the original sender would fail DMARC at the next host.

use message::address::Address;
use message::compose::Attachment;
use model::system_email::SystemEmail;
use queue::intake::Intake;
use queue::intake::system_mailer::SystemMailer;

use super::{InboundRejection, IncomingMessage};

/// Local part of the sender address.
const LOCAL_PART: &str = "mailer";

/// Forwards a message to the operator.
pub(super) async fn forward_to_operator(
    intake: &Intake,
    to: Address,
    mailbox: &Address,
    incoming: &IncomingMessage,
) -> Result<(), InboundRejection> {
    let temporary = |cause: &dyn std::fmt::Display| {
        tracing::error!(%cause, "cannot forward mail for {}", mailbox.local_part());
        InboundRejection::Unavailable
    };
    let domain = intake
        .sender_authorization
        .service_domain()
        .ok_or_else(|| temporary(&"`sandbox_sender` in [service] is not set"))?;
    let from = Address::new(LOCAL_PART, domain.clone()).map_err(|error| temporary(&error))?;
    let mailer = SystemMailer::for_service(&intake.services.store, from).await.map_err(|error| temporary(&error))?;
    let sender = incoming.reverse_path.as_ref().map_or("<>".to_owned(), ToString::to_string);
    let text = format!("{sender} wrote to {mailbox}, from {}. The message is attached.\n", incoming.peer);
    let email = SystemEmail {
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
    mailer.send(intake, email).await.map_err(|refusal| temporary(&refusal))
}
