//! People: those of the latest events, and what one person did and received.
use crate::dashboard::prelude::*;

mod list;
mod person;
#[cfg(test)]
mod tests;

const LIST: &str = "/dashboard/people";

pub const PAGES: &[PageRow] = page_rows! {
    "/people" => list::show, reads ["list_events"];
    "/people/person" => person::show, reads ["list_events"];
};
