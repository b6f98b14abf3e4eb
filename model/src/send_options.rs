//! Options of a send, as the API, SMTP header fields and automations set them.

use std::time::Duration;

use jiff::Timestamp;

use crate::email::{Priority, SourceTemplate};
use crate::id::{AutomationId, EmailId, RunId};

/// Handling of an email that has suppressed or opted-out recipients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnSuppressed {
    /// No recipient gets the email.
    #[default]
    Fail,
    /// The other recipients get the email.
    Skip,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SendOptions {
    /// Send at this time instead of now.
    pub scheduled_at: Option<Timestamp>,
    /// Lifetime: the email fails after this time. By default it gets the highest priority class.
    pub expires_in: Option<Duration>,
    /// Priority; derived from the category if `None`.
    pub priority: Option<Priority>,
    pub on_suppressed: OnSuppressed,
    /// Managed unsubscribe; derived from the category if `None`.
    pub unsubscribe: Option<bool>,
    /// The email that this one resends.
    pub resent_from: Option<EmailId>,
    pub template: Option<SourceTemplate>,
    /// The automation run that sends the email.
    pub run: Option<(AutomationId, RunId)>,
    /// True for an email of the service that counts against the account's plan, because the account caused it.
    pub metered: bool,
    /// True for an email of the service with a link that only its recipient may use.
    pub has_secret_link: bool,
}
