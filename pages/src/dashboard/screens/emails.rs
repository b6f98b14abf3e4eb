//! Emails: the list with its filters, one email with the answer to "why is it not there yet", and writing one.
use crate::dashboard::prelude::*;

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
mod past;
mod standing;
#[cfg(test)]
mod tests;

pub(super) use content::source;
pub(super) use listed::{day_start, domain_filter};
pub(super) use object::{EmailItem, sent_time};
pub(super) use past::EmailHistory;

pub const PAGES: &[PageRow] = page_rows! {
    "/emails" => list::show, reads ["list_emails"];
    "/emails/export.csv" => export::show, reads ["list_emails"];
    "/emails/selected" => bulk::show, reads ["get_email"], forms {
        "cancel" => bulk::cancel, calls "cancel_email";
        "resend" => bulk::resend, calls "resend_email";
    };
    "/emails/new" => compose::show, reads ["send_email"], forms {
        "send" => compose::send, calls "send_email";
    };
    "/emails/{id}" => detail::show, reads ["get_email"];
    "/emails/{id}/attempts" => detail::show_attempts, reads ["list_email_attempts"];
    "/emails/{id}/html" => content::show_html, reads ["get_email"];
    "/emails/{id}/source" => content::show_source, reads ["get_email_raw"];
    "/emails/{id}/message.eml" => content::download, reads ["get_email_raw"];
    "/emails/{id}/attachments/{attachment}" => content::download_attachment, reads ["get_email", "get_email_attachment"];
    "/emails/{id}/cancel" => change::show_cancel, reads ["get_email", "cancel_email"], forms {
        "cancel" => change::cancel, calls "cancel_email";
    };
    "/emails/{id}/reschedule" => change::show_reschedule, reads ["get_email", "update_email"], forms {
        "reschedule" => change::reschedule, calls "update_email";
    };
    "/emails/{id}/resend" => change::show_resend, reads ["get_email", "resend_email"], forms {
        "resend" => change::resend, calls "resend_email";
    };
};

/// The path of the list.
const LIST: &str = "/dashboard/emails";

pub(super) fn email_path(id: &str) -> String {
    format!("{LIST}/{}", encode(id))
}
