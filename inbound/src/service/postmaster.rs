//! Forwarding mail for the local mailboxes `postmaster` and `abuse` (RFC 5321 4.5.1, RFC 2142) to the operator.
//!
//! The message is attached to an email of the service, sent like sign-in links from the domain of `[service]
//! sandbox_sender`. Forwarding it under the original sender would fail DMARC at the next host. A message with
//! REQUIRETLS is forwarded with it: if the operator's mail host does not offer it, the email fails.

use message::address::Address;
use message::compose::Attachment;
use model::system_email::SystemEmail;
use queue::intake::Intake;
use queue::intake::system_mailer::SystemMailer;

use super::{InboundRejection, IncomingMessage};

/// Local part of the sender address.
const LOCAL_PART: &str = "mailer";

/// Sends an email of [`forwarding_email`].
pub(super) async fn forward_to_operator(intake: &Intake, email: SystemEmail) -> Result<(), InboundRejection> {
    let temporary = |cause: &dyn std::fmt::Display| {
        tracing::error!(%cause, "cannot forward mail to the postmaster");
        InboundRejection::Unavailable
    };
    let domain = intake
        .sender_authorization
        .service_domain()
        .ok_or_else(|| temporary(&"`sandbox_sender` in [service] is not set"))?;
    let from = Address::new(LOCAL_PART, domain.clone()).map_err(|error| temporary(&error))?;
    let mailer = SystemMailer::for_service(&intake.services.store, from).await.map_err(|error| temporary(&error))?;
    mailer.send(intake, email).await.map_err(|refusal| temporary(&refusal))
}

/// The email to the operator with the message attached. It keeps the message's REQUIRETLS (RFC 8689 4.2.1).
pub(super) fn forwarding_email(to: Address, mailbox: &Address, incoming: &IncomingMessage) -> SystemEmail {
    let sender = incoming.reverse_path.as_ref().map_or("<>".to_owned(), ToString::to_string);
    let text = format!("{sender} wrote to {mailbox}, from {}. The message is attached.\n", incoming.peer);
    SystemEmail {
        reply_to: incoming.reverse_path.clone(),
        forwarded_for: Some(mailbox.clone()),
        attachment: Some(Attachment {
            name: "message.eml".to_owned(),
            content_type: "message/rfc822".to_owned(),
            data: incoming.message.to_vec(),
            content_id: None,
        }),
        require_tls: incoming.require_tls,
        ..SystemEmail::new(to, format!("Mail to {mailbox}"), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn mail_to_the_postmaster_keeps_requiretls() {
        let (to, mailbox): (Address, Address) =
            ("op@remote.example".parse().unwrap(), "abuse@mx.example".parse().unwrap());
        let forwarded = |require_tls| {
            let incoming = IncomingMessage {
                peer: "192.0.2.1".parse().unwrap(),
                helo: "host.far.example".to_owned(),
                reverse_path: None,
                recipients: Vec::new(),
                message: Bytes::from_static(b"Subject: secret\r\n\r\nsecret\r\n"),
                require_tls,
                received: String::new(),
                is_dnsbl_listed: false,
            };
            let from: Address = "mailer@mx.example".parse().unwrap();
            forwarding_email(to.clone(), &mailbox, &incoming).into_draft(from.into()).envelope.require_tls
        };
        assert!(forwarded(true) && !forwarded(false));
    }
}
