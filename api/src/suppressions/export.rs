//! `GET /suppressions/export`: suppressions as CSV, in the form that an import reads back.
//!
//! The answer is made while it is read: a page of the list at a time, the next one when the client has
//! taken the last, so that any number of suppressions takes the memory of a few pages.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, HeaderValue};
use mail::csv::{self, Cell};
use mail::id::{AccountId, SuppressionId};
use mail::suppression::Suppression;
use queue::accept::Hall;
use serde_json::{Value, json};
use store::access::Tenant;
use store::suppression::{Filter, Listed};
use tokio::sync::mpsc;

use super::select::Selection;
use crate::call::{Answer, Broken, Call, Input, Pieces, Reply, Takes};
use crate::emails::view::Moment;
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::Schemas;

/// Suppressions of one piece of the answer.
const PIECE_ROWS: usize = 500;
/// Pieces that wait for the client.
const PIECES_AHEAD: usize = 2;

const NAMES: &[&str] = &[
    "id",
    "email",
    "reason",
    "source",
    "email_id",
    "smtp_code",
    "enhanced_code",
    "note",
    "expires_at",
    "created_at",
];

/// Which suppressions.
#[derive(Debug)]
pub struct Export(Selection);

impl Input for Export {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: Selection::parameters(), ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Selection::read(&call.query).map(Self)
    }
}

/// The list, as it is made.
#[derive(Debug)]
pub struct Exported {
    beginning: Bytes,
    more: Option<Pieces>,
}

impl Reply for Exported {
    const MEDIA_TYPE: &'static str = "text/csv; charset=utf-8";

    fn describe(_: &mut Schemas) -> Value {
        let description = format!("A line of names, {}, and one for each suppression", NAMES.join(", "));
        json!({"type": "string", "description": description})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.beginning)
    }

    fn answer(self) -> Result<Answer, Problem> {
        let attached = HeaderValue::from_static("attachment; filename=\"suppressions.csv\"");
        Ok(Answer {
            status: StatusCode::OK,
            media_type: HeaderValue::from_static(Self::MEDIA_TYPE),
            headers: vec![(CONTENT_DISPOSITION, attached)],
            body: self.beginning,
            more: self.more,
        })
    }
}

/// `GET /suppressions/export`.
///
/// # Errors
/// The store cannot be read.
pub async fn export(room: Arc<Room>, tenant: Tenant, input: Export) -> Result<Exported, Problem> {
    let Export(Selection { email, mut filter }) = input;
    filter.holding_at = Some(room.hall.clock().now());
    let mut beginning = String::new();
    csv::write(&mut beginning, &NAMES.iter().map(|name| Cell::text(name)).collect::<Vec<_>>());
    let account = tenant.account().id;
    if let Some(target) = email {
        let found = store::suppression::get(room.hall.store(), account, &target).await?;
        let found = found.map(|found| found.suppression).filter(|suppression| filter.takes(suppression));
        found.iter().for_each(|suppression| write_row(&mut beginning, suppression));
        return Ok(Exported { beginning: beginning.into(), more: None });
    }
    // The first piece decides whether there is an answer at all.
    let Listed { suppressions, next } =
        store::suppression::list(room.hall.store(), account, &filter, None, PIECE_ROWS).await?;
    suppressions.iter().for_each(|suppression| write_row(&mut beginning, suppression));
    let more = next.map(|next| {
        let (pieces, more) = mpsc::channel(PIECES_AHEAD);
        let hall = room.hall.clone();
        room.tasks.spawn(async move { write_rest(&hall, account, (&filter, next), &pieces).await });
        more
    });
    Ok(Exported { beginning: beginning.into(), more })
}

/// Goes on until there are no more, or nobody reads.
async fn write_rest(
    hall: &Hall,
    account: AccountId,
    (filter, mut next): (&Filter, SuppressionId),
    pieces: &mpsc::Sender<Result<Bytes, Broken>>,
) {
    loop {
        let piece =
            match store::suppression::list(hall.store(), account, filter, Some(next), PIECE_ROWS).await {
                Ok(listed) => {
                    let mut piece = String::new();
                    listed.suppressions.iter().for_each(|suppression| write_row(&mut piece, suppression));
                    let sent = pieces.send(Ok(piece.into())).await;
                    match (sent, listed.next) {
                        (Ok(()), Some(further)) => next = further,
                        _ => return,
                    }
                    continue;
                }
                Err(error) => {
                    tracing::error!(%error, "an export broke off");
                    Err(Broken)
                }
            };
        let _ = pieces.send(piece).await;
        return;
    }
}

/// Every cell is guarded against being computed, the address too: it may begin with `+`, `-` or `=` (RFC 5321 4.1.2). An
/// import takes the guard away again.
fn write_row(out: &mut String, suppression: &Suppression) {
    let detail = suppression.detail.as_ref();
    let or_empty = |value: Option<String>| Cell::made(value.unwrap_or_default());
    let smtp_code = detail.and_then(|detail| detail.smtp_code);
    let enhanced_code = detail.and_then(|detail| detail.enhanced_code);
    csv::write(
        out,
        &[
            Cell::made(suppression.id),
            Cell::made(&suppression.target),
            Cell::text(suppression.reason.word()),
            Cell::text(suppression.source.word()),
            or_empty(suppression.email.map(|id| id.to_string())),
            or_empty(smtp_code.map(|code| code.to_string())),
            or_empty(enhanced_code.map(|code| code.to_string())),
            Cell::text(suppression.note.as_deref().unwrap_or_default()),
            or_empty(suppression.expires_at.map(|end| Moment(end).to_string())),
            Cell::made(Moment(suppression.created_at)),
        ],
    );
}
