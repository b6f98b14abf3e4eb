//! Queries of the program's lists: page and filters.

use store::affiliate::listing::ListPageRequest;

use crate::prelude::*;

/// Converts the page parameters to a store query.
pub(super) fn page_query(page: &PageParameters, kind: u8) -> Result<ListPageRequest> {
    Ok(ListPageRequest { before: page.before_id(kind)?, limit: page.limit, from: None })
}
