//! Conversions: sign-ups and subscriptions with their source, and the emails that the person got before.

mod detail;
mod list;
mod object;
#[cfg(test)]
mod tests;

use crate::dashboard::table::{PageAccess, PageRow};

const LIST: &str = "/dashboard/conversions";

pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/conversions",
        access: PageAccess::SignedIn,
        reads: &["list_conversions"],
        show: |context| Box::pin(list::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/conversions/export.csv",
        access: PageAccess::SignedIn,
        reads: &["list_conversions"],
        show: |context| Box::pin(list::export(context)),
        forms: &[],
    },
    PageRow {
        path: "/conversions/{id}",
        access: PageAccess::SignedIn,
        reads: &["get_event"],
        show: |context| Box::pin(detail::show(context)),
        forms: &[],
    },
];
