//! Conversions: sign-ups and subscriptions with their source, and the emails that the person got before.
use crate::dashboard::prelude::*;

mod detail;
mod list;
mod object;
#[cfg(test)]
mod tests;

const LIST: &str = "/dashboard/conversions";

pub const PAGES: &[PageRow] = page_rows! {
    "/conversions" => list::show, reads ["list_conversions"];
    "/conversions/export.csv" => list::export, reads ["list_conversions"];
    "/conversions/{id}" => detail::show, reads ["get_event"];
};
