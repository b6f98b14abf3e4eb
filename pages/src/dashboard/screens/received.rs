//! Received mail: the list, one mail with its proofs, reply, forward, delete.

mod answer;
mod detail;
mod list;
mod object;
#[cfg(test)]
mod tests;

use crate::dashboard::table::{FormRow, PageAccess, PageRow};

pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/received",
        access: PageAccess::SignedIn,
        reads: &["list_received_emails"],
        show: |context| Box::pin(list::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/received/export.csv",
        access: PageAccess::SignedIn,
        reads: &["list_received_emails"],
        show: |context| Box::pin(list::export(context)),
        forms: &[],
    },
    PageRow {
        path: "/received/{id}",
        access: PageAccess::SignedIn,
        reads: &["get_received_email"],
        show: |context| Box::pin(detail::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/received/{id}/html",
        access: PageAccess::SignedIn,
        reads: &["get_received_email"],
        show: |context| Box::pin(detail::show_html(context)),
        forms: &[],
    },
    PageRow {
        path: "/received/{id}/attachments/{attachment}",
        access: PageAccess::SignedIn,
        reads: &["get_received_email", "get_received_email_attachment"],
        show: |context| Box::pin(detail::download_attachment(context)),
        forms: &[],
    },
    PageRow {
        path: "/received/{id}/source",
        access: PageAccess::SignedIn,
        reads: &["get_received_email_raw"],
        show: |context| Box::pin(detail::show_source(context)),
        forms: &[],
    },
    PageRow {
        path: "/received/{id}/message.eml",
        access: PageAccess::SignedIn,
        reads: &["get_received_email_raw"],
        show: |context| Box::pin(detail::download(context)),
        forms: &[],
    },
    PageRow {
        path: "/received/{id}/reply",
        access: PageAccess::SignedIn,
        reads: &["get_received_email", "reply_to_received_email"],
        show: |context| Box::pin(answer::show_reply(context)),
        forms: &[FormRow {
            name: "reply",
            operation: "reply_to_received_email",
            submit: |context| Box::pin(answer::reply(context)),
        }],
    },
    PageRow {
        path: "/received/{id}/forward",
        access: PageAccess::SignedIn,
        reads: &["get_received_email", "forward_received_email"],
        show: |context| Box::pin(answer::show_forward(context)),
        forms: &[FormRow {
            name: "forward",
            operation: "forward_received_email",
            submit: |context| Box::pin(answer::forward(context)),
        }],
    },
    PageRow {
        path: "/received/{id}/delete",
        access: PageAccess::SignedIn,
        reads: &["get_received_email", "delete_received_email"],
        show: |context| Box::pin(answer::show_delete(context)),
        forms: &[FormRow {
            name: "delete",
            operation: "delete_received_email",
            submit: |context| Box::pin(answer::delete(context)),
        }],
    },
];

/// The path of the list.
const LIST: &str = "/dashboard/received";

/// The path of a received mail.
fn mail_path(id: &str) -> String {
    format!("{LIST}/{}", super::encode(id))
}
