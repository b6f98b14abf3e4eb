//! Emails: the list with its filters, one email with the answer to "why is it not there yet", and writing one.

mod attempt;
mod bulk;
mod change;
mod compose;
mod content;
mod detail;
mod export;
mod history;
mod list;
mod listed;
mod object;
mod standing;
#[cfg(test)]
mod tests;

use crate::dashboard::table::{FormRow, PageAccess, PageRow};

pub(super) use change::SentAnswer;
pub(super) use content::source;
pub(super) use listed::{day_start, domain_filter};

pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/emails",
        access: PageAccess::SignedIn,
        reads: &["list_emails"],
        show: |context| Box::pin(list::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/emails/export.csv",
        access: PageAccess::SignedIn,
        reads: &["list_emails"],
        show: |context| Box::pin(export::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/emails/selected",
        access: PageAccess::SignedIn,
        reads: &["get_email"],
        show: |context| Box::pin(bulk::show(context)),
        forms: &[
            FormRow { name: "cancel", operation: "cancel_email", submit: |context| Box::pin(bulk::cancel(context)) },
            FormRow { name: "resend", operation: "resend_email", submit: |context| Box::pin(bulk::resend(context)) },
        ],
    },
    PageRow {
        path: "/emails/new",
        access: PageAccess::SignedIn,
        reads: &["send_email"],
        show: |context| Box::pin(compose::show(context)),
        forms: &[FormRow { name: "send", operation: "send_email", submit: |context| Box::pin(compose::send(context)) }],
    },
    PageRow {
        path: "/emails/{id}",
        access: PageAccess::SignedIn,
        reads: &["get_email"],
        show: |context| Box::pin(detail::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/emails/{id}/attempts",
        access: PageAccess::SignedIn,
        reads: &["list_email_attempts"],
        show: |context| Box::pin(detail::show_attempts(context)),
        forms: &[],
    },
    PageRow {
        path: "/emails/{id}/html",
        access: PageAccess::SignedIn,
        reads: &["get_email"],
        show: |context| Box::pin(content::show_html(context)),
        forms: &[],
    },
    PageRow {
        path: "/emails/{id}/source",
        access: PageAccess::SignedIn,
        reads: &["get_email_raw"],
        show: |context| Box::pin(content::show_source(context)),
        forms: &[],
    },
    PageRow {
        path: "/emails/{id}/message.eml",
        access: PageAccess::SignedIn,
        reads: &["get_email_raw"],
        show: |context| Box::pin(content::download(context)),
        forms: &[],
    },
    PageRow {
        path: "/emails/{id}/attachments/{attachment}",
        access: PageAccess::SignedIn,
        reads: &["get_email", "get_email_attachment"],
        show: |context| Box::pin(content::download_attachment(context)),
        forms: &[],
    },
    PageRow {
        path: "/emails/{id}/cancel",
        access: PageAccess::SignedIn,
        reads: &["get_email", "cancel_email"],
        show: |context| Box::pin(change::show_cancel(context)),
        forms: &[FormRow {
            name: "cancel",
            operation: "cancel_email",
            submit: |context| Box::pin(change::cancel(context)),
        }],
    },
    PageRow {
        path: "/emails/{id}/reschedule",
        access: PageAccess::SignedIn,
        reads: &["get_email", "update_email"],
        show: |context| Box::pin(change::show_reschedule(context)),
        forms: &[FormRow {
            name: "reschedule",
            operation: "update_email",
            submit: |context| Box::pin(change::reschedule(context)),
        }],
    },
    PageRow {
        path: "/emails/{id}/resend",
        access: PageAccess::SignedIn,
        reads: &["get_email", "resend_email"],
        show: |context| Box::pin(change::show_resend(context)),
        forms: &[FormRow {
            name: "resend",
            operation: "resend_email",
            submit: |context| Box::pin(change::resend(context)),
        }],
    },
];

/// The path of the list.
const LIST: &str = "/dashboard/emails";

/// The path of an email.
pub(super) fn email_path(id: &str) -> String {
    format!("{LIST}/{}", super::encode(id))
}
