//! Received mail: the list, one mail with its proofs, reply, forward, delete.
use crate::dashboard::prelude::*;

mod answer;
mod detail;
mod list;
mod object;
#[cfg(test)]
mod tests;

pub const PAGES: &[PageRow] = page_rows! {
    "/received" => list::show, reads ["list_received_emails"];
    "/received/export.csv" => list::export, reads ["list_received_emails"];
    "/received/{id}" => detail::show, reads ["get_received_email"];
    "/received/{id}/html" => detail::show_html, reads ["get_received_email"];
    "/received/{id}/attachments/{attachment}" => detail::download_attachment, reads ["get_received_email", "get_received_email_attachment"];
    "/received/{id}/source" => detail::show_source, reads ["get_received_email_raw"];
    "/received/{id}/message.eml" => detail::download, reads ["get_received_email_raw"];
    "/received/{id}/reply" => answer::show_reply, reads ["get_received_email", "reply_to_received_email"], forms {
        "reply" => answer::reply, calls "reply_to_received_email";
    };
    "/received/{id}/forward" => answer::show_forward, reads ["get_received_email", "forward_received_email"], forms {
        "forward" => answer::forward, calls "forward_received_email";
    };
    "/received/{id}/delete" => answer::show_delete, reads ["get_received_email", "delete_received_email"], forms {
        "delete" => answer::delete, calls "delete_received_email";
    };
};

/// The path of the list.
const LIST: &str = "/dashboard/received";

/// The path of a received mail.
fn mail_path(id: &str) -> String {
    format!("{LIST}/{}", encode(id))
}
