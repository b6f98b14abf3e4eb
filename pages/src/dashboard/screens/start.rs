//! The start page: the first steps with their state, and what needs attention.

use hypertext::prelude::*;

use crate::dashboard::backend::Failure;
use crate::dashboard::context::Context;
use crate::dashboard::page::Page;
use crate::dashboard::table::{PageAccess, PageRow, View};

pub const PAGES: &[PageRow] = &[PageRow {
    path: "",
    access: PageAccess::SignedIn,
    reads: &[],
    show: |context| Box::pin(show(context)),
    forms: &[],
}];

async fn show(_: &Context<'_>) -> Result<View, Failure> {
    Ok(Page::new("Start", maud! { p { "Welcome." } }).into())
}
