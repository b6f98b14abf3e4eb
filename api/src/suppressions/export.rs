//! `GET /suppressions/export`: suppressions as CSV, in the format that the import accepts.
//!
//! The response is streamed: one page of the list at a time, the next one when the client has read the last. So any
//! number of suppressions needs the memory of a few pages.

use http::header::{CONTENT_DISPOSITION, HeaderValue};
use httpd::response::{BodyStream, BodyStreamError, IntoResponse, Response};
use model::csv::{self, CsvCell};
use model::suppression::Suppression;
use store::engine::Store;
use store::suppression::{SuppressionFilter, SuppressionPage};
use tokio::sync::mpsc;

use super::query::SuppressionQuery;
use crate::prelude::*;

/// Suppressions in one chunk of the response.
const CHUNK_ROWS: usize = 500;
/// Chunks that wait for the client.
const CHUNKS_BUFFERED: usize = 2;

const NAMES: &[&str] =
    &["id", "email", "reason", "source", "email_id", "smtp_code", "enhanced_code", "note", "expires_at", "created_at"];

/// The CSV response: its first chunk, and the stream of the others.
#[derive(Debug)]
pub struct SuppressionsCsv {
    first_chunk: Bytes,
    stream: Option<BodyStream>,
}

impl IntoResponse for SuppressionsCsv {
    const MEDIA_TYPE: &'static str = "text/csv; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        let description = format!("A header line, {}, and a line for each suppression", NAMES.join(", "));
        json!({"type": "string", "description": description})
    }

    fn into_response(self) -> Result<Response> {
        let attached = HeaderValue::from_static("attachment; filename=\"suppressions.csv\"");
        Ok(Response {
            status: StatusCode::OK,
            media_type: HeaderValue::from_static(Self::MEDIA_TYPE),
            headers: vec![(CONTENT_DISPOSITION, attached)],
            body: self.first_chunk,
            stream: self.stream,
        })
    }
}

/// `GET /suppressions/export`.
pub async fn export(state: State, tenant: Tenant, input: SuppressionQuery) -> Result<SuppressionsCsv> {
    let SuppressionQuery { email, mut filter } = input;
    filter.holding_at = Some(state.services.clock.now());
    let mut first_chunk = String::new();
    csv::write_record(&mut first_chunk, &NAMES.iter().map(|name| CsvCell::text(name)).collect::<Vec<_>>());
    let account = tenant.account().id;
    if let Some(target) = email {
        let found = store::suppression::get(&state.services.store, account, &target).await?;
        let found = found.map(|found| found.suppression).filter(|suppression| filter.matches(suppression));
        found.iter().for_each(|suppression| write_row(&mut first_chunk, suppression));
        return Ok(SuppressionsCsv { first_chunk: first_chunk.into(), stream: None });
    }
    // The first chunk is read before the response begins, so an unreadable store is still answered 503.
    let SuppressionPage { suppressions, next } =
        store::suppression::list(&state.services.store, account, &filter, None, CHUNK_ROWS).await?;
    suppressions.iter().for_each(|suppression| write_row(&mut first_chunk, suppression));
    let stream = next.map(|next| {
        let (sender, stream) = mpsc::channel(CHUNKS_BUFFERED);
        let store = state.services.store.clone();
        state.background.tasks.spawn(async move { stream_rest(&store, account, &filter, next, &sender).await });
        stream
    });
    Ok(SuppressionsCsv { first_chunk: first_chunk.into(), stream })
}

/// Sends the remaining chunks until the list ends or the client disconnects.
async fn stream_rest(
    store: &Store,
    account: AccountId,
    filter: &SuppressionFilter,
    mut next: SuppressionId,
    sender: &mpsc::Sender<Result<Bytes, BodyStreamError>>,
) {
    loop {
        let chunk = match store::suppression::list(store, account, filter, Some(next), CHUNK_ROWS).await {
            Ok(listed) => {
                let mut chunk = String::new();
                listed.suppressions.iter().for_each(|suppression| write_row(&mut chunk, suppression));
                let sent = sender.send(Ok(chunk.into())).await;
                match (sent, listed.next) {
                    (Ok(()), Some(following)) => next = following,
                    _ => return,
                }
                continue;
            }
            Err(error) => {
                tracing::error!(%error, "suppression export aborted: the store cannot be read");
                Err(BodyStreamError)
            }
        };
        let _ = sender.send(chunk).await;
        return;
    }
}

/// Every cell is guarded against formula injection, also the address: it may begin with `+`, `-` or `=` (RFC 5321
/// 4.1.2). The import removes the guard.
fn write_row(out: &mut String, suppression: &Suppression) {
    let detail = suppression.detail.as_ref();
    let or_empty = |value: Option<String>| CsvCell::from_display(value.unwrap_or_default());
    let smtp_code = detail.and_then(|detail| detail.smtp_code);
    let enhanced_code = detail.and_then(|detail| detail.enhanced_code);
    csv::write_record(
        out,
        &[
            CsvCell::from_display(suppression.id),
            CsvCell::from_display(&suppression.target),
            CsvCell::text(suppression.reason.word()),
            CsvCell::text(suppression.source.word()),
            or_empty(suppression.email.map(|id| id.to_string())),
            or_empty(smtp_code.map(|code| code.to_string())),
            or_empty(enhanced_code.map(|code| code.to_string())),
            CsvCell::text(suppression.note.as_deref().unwrap_or_default()),
            or_empty(suppression.expires_at.map(|end| JsonTimestamp(end).to_string())),
            CsvCell::from_display(JsonTimestamp(suppression.created_at)),
        ],
    );
}
