//! Which recipient a complaint is about.
//!
//! A return path of ours in it says so, and cannot be made up. Without one there is the email's `Message-ID`,
//! which for mail that we composed holds the email's id; that everybody has who got the email, so it is enough
//! for an email to one recipient, and else only with the recipient's address, in a report of their own provider's.

use mail::address::{Address, Name};
use mail::arrival::Arrival;
use mail::id::EmailId;
use mail::returned::Complaint;
use mail::sending_name::organisation;
use mail::task::TaskId;

use super::book::News;
use super::{About, Returned, ReturnedError};

impl Returned {
    /// Books a complaint that came to where complaints come in.
    pub(super) async fn complain(
        &self,
        complaint: Complaint,
        arrival: &Arrival,
    ) -> Result<&'static str, ReturnedError> {
        let about = match self.by_return_path(&complaint).await? {
            Some(about) => Some(about),
            None => self.by_message_id(&complaint, arrival).await?,
        };
        let Some(about) = about else { return Ok("unknown") };
        self.book(about, &News::Complaint(complaint), arrival.received_at).await
    }

    async fn by_return_path(&self, complaint: &Complaint) -> Result<Option<About>, ReturnedError> {
        for path in &complaint.return_paths {
            if let Some(about) = self.whose(path).await? {
                return Ok(Some(about));
            }
        }
        Ok(None)
    }

    async fn by_message_id(
        &self,
        complaint: &Complaint,
        arrival: &Arrival,
    ) -> Result<Option<About>, ReturnedError> {
        let Some((id, domain)) = complaint.message_id.as_deref().and_then(|id| id.rsplit_once('@')) else {
            return Ok(None);
        };
        let Ok(email) = format!("{}{}", EmailId::PREFIX, id.to_ascii_uppercase()).parse::<EmailId>() else {
            return Ok(None);
        };
        let Some(account) = self.account_of(domain.parse().ok()).await? else { return Ok(None) };
        let Some(found) = store::email::get(&self.worker.store, account, email).await? else {
            return Ok(None);
        };
        let vouches = |address: &Address| arrival.authenticated.iter().any(|name| stands_for(name, address));
        let recipient = match found.recipients.as_slice() {
            [one] => Some(one),
            several => several.iter().find(|one| {
                let is_named = complaint.recipients.iter().any(|named| same(named, &one.address));
                is_named && vouches(&one.address)
            }),
        };
        Ok(recipient.map(|one| About { account, task: TaskId { email, recipient: one.index } }))
    }
}

fn same(one: &Address, other: &Address) -> bool {
    one.domain() == other.domain() && one.local().eq_ignore_ascii_case(other.local())
}

/// Whether a domain speaks for an address: it is of the same organisation.
fn stands_for(name: &Name, address: &Address) -> bool {
    organisation(name) == organisation(address.domain())
}
