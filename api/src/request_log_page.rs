//! A page of logged requests that match filters. Filters by time are key ranges; others are applied to each request, of
//! which a bounded number is scanned, so that a page can be shorter than requested and still have a next page.

use model::id::RequestId;
use model::request_log::LoggedRequest;
use store::engine::ReadError;

/// Maximum number of requests scanned per page.
const SCANNED_ROWS_MAX: usize = 2_000;

/// A page, newest first.
#[derive(Debug)]
pub(crate) struct RequestLogPage {
    pub(crate) requests: Vec<LoggedRequest>,
    /// The request before which the next page begins; `None` on the last page.
    pub(crate) next: Option<RequestId>,
}

impl RequestLogPage {
    /// Scans for at most `limit` requests that `matches`; `fetch` lists those before an id, newest first.
    pub(crate) async fn scan<F>(
        limit: usize,
        mut before: Option<RequestId>,
        fetch: impl Fn(Option<RequestId>, usize) -> F,
        matches: impl Fn(&LoggedRequest) -> bool,
    ) -> Result<Self, ReadError>
    where
        F: Future<Output = Result<Vec<LoggedRequest>, ReadError>>,
    {
        let mut requests = Vec::with_capacity(limit + 1);
        // One more than requested shows whether there is another page. Without filters the first scan is enough.
        for rows_max in [limit + 1, SCANNED_ROWS_MAX - limit - 1] {
            let rows = fetch(before, rows_max).await?;
            let is_end = rows.len() < rows_max;
            for request in rows {
                before = Some(request.id);
                if matches(&request) {
                    requests.push(request);
                }
                if requests.len() > limit {
                    requests.truncate(limit);
                    let next = requests.last().map(|last| last.id);
                    return Ok(Self { requests, next });
                }
            }
            if is_end {
                return Ok(Self { requests, next: None });
            }
        }
        Ok(Self { requests, next: before })
    }
}
