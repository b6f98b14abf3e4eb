//! Mail to our own mailboxes, `postmaster` and `abuse` (RFC 5321 4.5.1, RFC 2142): passed on to the operator.
//!
//! As a file in a message of the service's own, from the domain of `[service] sandbox_sender`, as sign-in links
//! are: what a stranger wrote is not sent on under the stranger's name, which would fail DMARC at the next host.

use mail::address::{Address, Mailbox};
use mail::compose::{Attachment, Composition};
use mail::draft::{Content, Draft, DraftRecipient, Envelope, Wishes};
use mail::email::{Category, Door};
use mail::recipient::{Notify, RecipientKind};

use super::{Incoming, NotTaken};
use crate::accept::Hall;

/// Who passes it on.
const LOCAL_PART: &str = "mailer";

/// Passes a message on.
pub(super) async fn forward(
    hall: &Hall,
    to: Address,
    mailbox: &Address,
    incoming: &Incoming,
) -> Result<(), NotTaken> {
    let later = |cause: &dyn std::fmt::Display| {
        tracing::error!(%cause, "mail to {} cannot be passed on", mailbox.local());
        NotTaken::Unavailable
    };
    let domain = hall.service_domain().ok_or_else(|| later(&"`sandbox_sender` in [service] is not set"))?;
    let found = store::domain::by_name(hall.store(), &domain).await.map_err(|error| later(&error))?;
    let found = found.ok_or_else(|| later(&"nobody has the domain of `sandbox_sender`"))?;
    let tenant =
        store::access::by_service(hall.store(), found.account).await.map_err(|error| later(&error))?;
    let from = Address::new(LOCAL_PART, domain).map_err(|error| later(&error))?;
    let sender = incoming.reverse_path.as_ref().map_or("<>".to_owned(), ToString::to_string);
    let parts = Composition {
        from: Mailbox::from(from.clone()),
        to: vec![Mailbox::from(to.clone())],
        cc: Vec::new(),
        bcc: Vec::new(),
        reply_to: incoming.reverse_path.clone().map(Mailbox::from).into_iter().collect(),
        subject: format!("Mail to {mailbox}"),
        html: None,
        text: Some(format!(
            "{sender} wrote to {mailbox}, from {}. The message is attached.\n",
            incoming.peer
        )),
        headers: Vec::new(),
        attachments: vec![Attachment {
            name: "message.eml".to_owned(),
            content_type: "message/rfc822".to_owned(),
            data: incoming.message.to_vec(),
            content_id: None,
        }],
    };
    let draft = Draft {
        door: Door::System,
        from: Some(Mailbox::from(from)),
        envelope: Envelope::default(),
        recipients: vec![DraftRecipient { address: to, kind: RecipientKind::To, notify: Notify::default() }],
        content: Content::Parts(Box::new(parts)),
        tags: Vec::new(),
        category: Category::Transactional,
        wishes: Wishes::default(),
    };
    hall.accept(&tenant, draft).await.map(drop).map_err(|refusal| later(&refusal))
}
