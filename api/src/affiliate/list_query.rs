//! Queries of the program's lists: page and filters.

use httpd::paging::{self, PageParameters};
use httpd::problem::Problem;
use serde_json::{Value, json};
use store::affiliate::listing::ListPageRequest;

/// Converts the page parameters to a store query.
pub(super) fn page_query(page: &PageParameters, kind: u8) -> Result<ListPageRequest, Problem> {
    Ok(ListPageRequest { before: page.before_id(kind)?, limit: page.limit, from: None })
}

/// Query parameter that filters by a closed set of values, comma-separated.
pub(super) fn list_filter_parameter(name: &str, words: &[&str], description: &str) -> Value {
    let items = json!({"type": "array", "items": {"type": "string", "enum": words}});
    let mut parameter = schema::query_parameter(name, description, items);
    (parameter["style"], parameter["explode"]) = (json!("form"), json!(false));
    parameter
}

/// Parses an optional filter with a single value.
pub(super) fn parse_filter<T: std::str::FromStr>(
    parameters: &[(String, String)],
    name: &str,
    expected: &str,
) -> Result<Option<T>, Problem> {
    let text = paging::single_value(parameters, name)?;
    let refused = || Problem::field(name, format!("must be {expected}"));
    text.map(|text| text.trim().parse().map_err(|_| refused())).transpose()
}
