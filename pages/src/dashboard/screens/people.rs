//! People: those of the latest events, and what one person did and received.

mod list;
mod person;
#[cfg(test)]
mod tests;

use crate::dashboard::table::{PageAccess, PageRow};

const LIST: &str = "/dashboard/people";

pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/people",
        access: PageAccess::SignedIn,
        reads: &["list_events"],
        show: |context| Box::pin(list::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/people/person",
        access: PageAccess::SignedIn,
        reads: &["list_events"],
        show: |context| Box::pin(person::show(context)),
        forms: &[],
    },
];
