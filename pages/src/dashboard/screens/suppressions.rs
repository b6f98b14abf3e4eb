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

pub(super) use object::Suppression;

use crate::dashboard::prelude::*;

const LIST: &str = "/dashboard/suppressions";
const OPT_OUTS: &str = "/dashboard/suppressions/opt-outs";

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
pub const PAGES: &[PageRow] = page_rows! {
    "/suppressions" => list::show, reads ["list_suppressions"];
    "/suppressions/export.csv" => list::export, reads ["export_suppressions"];
    "/suppressions/new" => add::show, reads ["create_suppression"], forms {
        "add" => add::add, calls "create_suppression";
    };
    "/suppressions/check" => check::show, reads ["check_suppressions"], forms {
        "check" => check::check, calls "check_suppressions";
    };
    "/suppressions/selected" => selected::show, reads ["get_suppression", "delete_suppression"], forms {
        "remove" => selected::remove, calls "delete_suppression";
    };
    "/suppressions/import" => import::show, reads ["import_suppressions", "dry_run_suppression_import"], forms {
        "dry-run" => import::dry_run, calls "dry_run_suppression_import";
        "import" => import::import, calls "import_suppressions";
    };
    "/suppressions/imports" => import_report::show_list, reads ["list_suppression_imports"];
    "/suppressions/imports/{id}" => import_report::show, reads ["get_suppression_import"];
    "/suppressions/{id}" => detail::show, reads ["get_suppression"];
    "/suppressions/{id}/delete" => detail::show_remove, reads ["get_suppression", "delete_suppression"], forms {
        "remove" => detail::remove, calls "delete_suppression";
    };
};

pub const OPT_OUT_PAGES: &[PageRow] = page_rows! {
    "/suppressions/opt-outs" => opt_outs::show, reads ["list_category_opt_outs"];
    "/suppressions/opt-outs/new" => opt_outs::show_new, reads ["create_category_opt_out"], forms {
        "add" => opt_outs::add, calls "create_category_opt_out";
    };
    "/suppressions/opt-outs/{id}/delete" => opt_outs::show_remove, reads ["list_category_opt_outs", "delete_category_opt_out"], forms {
        "remove" => opt_outs::remove, calls "delete_category_opt_out";
    };
};
