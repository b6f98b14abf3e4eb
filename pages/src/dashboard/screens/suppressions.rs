//! Suppressions: addresses and domains to which nothing is sent; and opt-outs of categories.
//!
//! ```text
//! /suppressions ─┬─► /new, /check, /export.csv
//!                ├─► /import (dry run) ─► /imports ─► /imports/{id} (progress and report)
//!                ├─► /selected (remove several)
//!                ├─► /{id} ─► /{id}/delete
//!                └─► /opt-outs ─► /new, /{id}/delete
//! ```

mod add;
mod check;
mod detail;
mod import;
mod import_report;
mod list;
mod object;
mod opt_outs;
mod selected;
#[cfg(test)]
mod tests;

use hypertext::prelude::*;

use super::encode;
use crate::dashboard::context::Context;
use crate::dashboard::table::{FormRow, PageAccess, PageRow};

const LIST: &str = "/dashboard/suppressions";
const OPT_OUTS: &str = "/dashboard/suppressions/opt-outs";
const SIGNED_IN: PageAccess = PageAccess::SignedIn;

/// The page of a suppression.
fn suppression_path(id: &str) -> String {
    format!("{LIST}/{}", encode(id))
}

/// The tabs of both lists.
fn tabs<'a>(context: &'a Context<'a>, current: &'a str) -> impl Renderable + use<'a> {
    let is_current = move |path: &str| (path == current).then_some("page");
    maud! {
        nav.tabs aria-label="Lists" {
            @if context.allows("list_suppressions") { a href=(LIST) aria-current=[is_current(LIST)] { "Suppressed" } }
            @if context.allows("list_category_opt_outs") { a href=(OPT_OUTS) aria-current=[is_current(OPT_OUTS)] { "Opted out of a category" } }
        }
    }
}

/// The pages of suppressions.
pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/suppressions",
        access: SIGNED_IN,
        reads: &["list_suppressions"],
        show: |context| Box::pin(list::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/suppressions/export.csv",
        access: SIGNED_IN,
        reads: &["export_suppressions"],
        show: |context| Box::pin(async move { Ok(list::export(context)) }),
        forms: &[],
    },
    PageRow {
        path: "/suppressions/new",
        access: SIGNED_IN,
        reads: &["create_suppression"],
        show: |context| Box::pin(async move { Ok(add::show(context)) }),
        forms: &[FormRow {
            name: "add",
            operation: "create_suppression",
            submit: |context| Box::pin(add::add(context)),
        }],
    },
    PageRow {
        path: "/suppressions/check",
        access: SIGNED_IN,
        reads: &["check_suppressions"],
        show: |context| Box::pin(async move { Ok(check::show(context)) }),
        forms: &[FormRow {
            name: "check",
            operation: "check_suppressions",
            submit: |context| Box::pin(check::check(context)),
        }],
    },
    PageRow {
        path: "/suppressions/selected",
        access: SIGNED_IN,
        reads: &["get_suppression", "delete_suppression"],
        show: |context| Box::pin(selected::show(context)),
        forms: &[FormRow {
            name: "remove",
            operation: "delete_suppression",
            submit: |context| Box::pin(selected::remove(context)),
        }],
    },
    PageRow {
        path: "/suppressions/import",
        access: SIGNED_IN,
        reads: &["import_suppressions", "dry_run_suppression_import"],
        show: |context| Box::pin(async move { Ok(import::show(context)) }),
        forms: &[
            FormRow {
                name: "dry-run",
                operation: "dry_run_suppression_import",
                submit: |context| Box::pin(import::dry_run(context)),
            },
            FormRow {
                name: "import",
                operation: "import_suppressions",
                submit: |context| Box::pin(import::import(context)),
            },
        ],
    },
    PageRow {
        path: "/suppressions/imports",
        access: SIGNED_IN,
        reads: &["list_suppression_imports"],
        show: |context| Box::pin(import_report::show_list(context)),
        forms: &[],
    },
    PageRow {
        path: "/suppressions/imports/{id}",
        access: SIGNED_IN,
        reads: &["get_suppression_import"],
        show: |context| Box::pin(import_report::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/suppressions/{id}",
        access: SIGNED_IN,
        reads: &["get_suppression"],
        show: |context| Box::pin(detail::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/suppressions/{id}/delete",
        access: SIGNED_IN,
        reads: &["get_suppression", "delete_suppression"],
        show: |context| Box::pin(detail::show_remove(context)),
        forms: &[FormRow {
            name: "remove",
            operation: "delete_suppression",
            submit: |context| Box::pin(detail::remove(context)),
        }],
    },
];

/// The pages of opt-outs.
pub const OPT_OUT_PAGES: &[PageRow] = &[
    PageRow {
        path: "/suppressions/opt-outs",
        access: SIGNED_IN,
        reads: &["list_category_opt_outs"],
        show: |context| Box::pin(opt_outs::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/suppressions/opt-outs/new",
        access: SIGNED_IN,
        reads: &["create_category_opt_out"],
        show: |context| Box::pin(async move { Ok(opt_outs::show_new(context)) }),
        forms: &[FormRow {
            name: "add",
            operation: "create_category_opt_out",
            submit: |context| Box::pin(opt_outs::add(context)),
        }],
    },
    PageRow {
        path: "/suppressions/opt-outs/{id}/delete",
        access: SIGNED_IN,
        reads: &["list_category_opt_outs", "delete_category_opt_out"],
        show: |context| Box::pin(opt_outs::show_remove(context)),
        forms: &[FormRow {
            name: "remove",
            operation: "delete_category_opt_out",
            submit: |context| Box::pin(opt_outs::remove(context)),
        }],
    },
];
