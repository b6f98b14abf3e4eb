//! Received emails (completions-email.md 2.8): listed and polled ([`list`]), looked at, answered and passed on
//! ([`respond`]), deleted.
//!
//! Texts and files are read out of the message when they are asked for, apart from everything else and
//! bounded (`queue/src/inbound/read.rs`): what is read was written by anybody.

pub mod list;
pub mod respond;
pub mod view;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, StatusCode};
use mail::credential::Scope;
use mail::id::ReceivedId;
use mail::received::{Attachment, Received, attachment_place};
use queue::inbound::read;
use serde_json::{Value, json};
use store::access::Tenant;
use store::engine::{Batch, CommitError};
use store::received;

use self::view::{OneReceived, ReceivedDetail};
use crate::call::{Answer, Call, Input, Reply, Takes};
use crate::done::Done;
use crate::held::{Held, Place};
use crate::operations::{Operation, operation};
use crate::page;
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};
use crate::suppressions::not_written;

/// How often a deletion is tried when another email of the same message goes at the same time.
const TRIES_MAX: usize = 20;

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| {
        operation(method, path, id).about("received_emails", summary).of_a_domain()
    };
    let (get, post, full) = (Method::GET, Method::POST, Scope::Full);
    vec![
        of(
            get.clone(),
            "/received-emails",
            "list_received_emails",
            "List received emails, newest first or in the order of arrival",
        )
        .either(full, list::list),
        of(get.clone(), "/received-emails/{id}", "get_received_email", "Get a received email with its files")
            .either(full, get_one),
        of(
            get.clone(),
            "/received-emails/{id}/raw",
            "get_received_email_raw",
            "Get the message as it was received",
        )
        .either(full, raw),
        of(
            get,
            "/received-emails/{id}/attachments/{att_id}",
            "get_received_email_attachment",
            "Get one file of a received email",
        )
        .either(full, attachment),
        of(
            post.clone(),
            "/received-emails/{id}/reply",
            "reply_to_received_email",
            "Answer a received email, in its thread",
        )
        .fails(Code::SENDING)
        .either(full, respond::reply),
        of(
            post,
            "/received-emails/{id}/forward",
            "forward_received_email",
            "Pass a received email on, as a file",
        )
        .fails(Code::SENDING)
        .either(full, respond::forward),
        of(
            Method::DELETE,
            "/received-emails/{id}",
            "delete_received_email",
            "Delete a received email and its message",
        )
        .either(full, delete),
    ]
}

const ID: &str = "id";

pub(crate) fn id_parameter() -> Value {
    schema::path_parameter(ID, "The received email's id (`inb_…`)")
}

/// A received email's id, from the path.
#[derive(Debug, Clone, Copy)]
pub struct OfReceived(pub(crate) ReceivedId);

impl Input for OfReceived {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: vec![id_parameter()], ..Takes::default() }
    }

    /// What cannot be an id is the id of nothing.
    fn read(call: &Call) -> Result<Self, Problem> {
        call.path_parameter(ID).parse().map(Self).map_err(|_| no_such_email())
    }
}

fn no_such_email() -> Problem {
    Problem::new(Code::NOT_FOUND, "No such received email")
}

/// One of the tenant's own; for a key that is bound to a domain, of that domain's.
pub(crate) async fn find(room: &Room, tenant: &Tenant, id: ReceivedId) -> Result<Received, Problem> {
    let found = received::get(room.hall.store(), tenant.account().id, id).await?;
    let is_reached = |one: &Received| tenant.bound_to().is_none_or(|bond| bond == one.domain);
    found.filter(is_reached).ok_or_else(no_such_email)
}

/// Its message, with what we put on top.
pub(crate) async fn message(room: &Room, received: &Received) -> Result<Bytes, Problem> {
    let bytes = received::raw(room.hall.store(), received).await?;
    bytes.ok_or_else(|| Problem::new(Code::NOT_FOUND, "The message's bytes are not kept any more"))
}

/// What `GET /received-emails/{id}` takes.
#[derive(Debug)]
pub struct GetReceived {
    id: OfReceived,
    inline: bool,
}

impl Input for GetReceived {
    fn describe(schemas: &mut Schemas) -> Takes {
        let mut takes = OfReceived::describe(schemas);
        let words = json!({"type": "string", "enum": ["inline", "none"], "default": "inline"});
        let about = "`inline`: files come along in base 64; `none`: only what they are. Large ones are better \
                     fetched one by one";
        takes.parameters.push(schema::query_parameter("attachments", about, words));
        takes
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let inline = match page::one(&given, "attachments")? {
            None | Some("inline") => true,
            Some("none") => false,
            Some(_) => return Err(Problem::field("attachments", "must be `inline` or `none`")),
        };
        Ok(Self { id: OfReceived::read(call)?, inline })
    }
}

/// `GET /received-emails/{id}`.
///
/// # Errors
/// No such received email, or its bytes are not kept any more; the store cannot be read.
pub async fn get_one(
    room: Arc<Room>,
    tenant: Tenant,
    input: GetReceived,
) -> Result<Held<OneReceived>, Problem> {
    let GetReceived { id: OfReceived(id), inline } = input;
    let received = find(&room, &tenant, id).await?;
    let place = Place::of(received.size_bytes).await?;
    // A message that nobody can read is shown by what was kept of it; the rest is in its raw form.
    let reading = read::whole(message(&room, &received).await?).await.unwrap_or_default();
    Ok(place.holds(OneReceived { received_email: ReceivedDetail::of(&received, reading, inline) }))
}

/// A message as it was received.
#[derive(Debug)]
pub struct RawMessage(Bytes);

impl Reply for RawMessage {
    const MEDIA_TYPE: &'static str = "message/rfc822";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The message, header and body, with what we put on top"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.0)
    }
}

/// `GET /received-emails/{id}/raw`.
///
/// # Errors
/// No such received email, or its bytes are not kept any more; the store cannot be read.
pub async fn raw(
    room: Arc<Room>,
    tenant: Tenant,
    OfReceived(id): OfReceived,
) -> Result<Held<RawMessage>, Problem> {
    let received = find(&room, &tenant, id).await?;
    let place = Place::of(received.size_bytes).await?;
    message(&room, &received).await.map(|bytes| place.holds(RawMessage(bytes)))
}

/// What `GET /received-emails/{id}/attachments/{att_id}` takes.
#[derive(Debug)]
pub struct GetAttachment {
    id: OfReceived,
    place: usize,
}

fn no_such_file() -> Problem {
    Problem::new(Code::NOT_FOUND, "The received email has no such file")
}

impl Input for GetAttachment {
    fn describe(schemas: &mut Schemas) -> Takes {
        let mut takes = OfReceived::describe(schemas);
        takes.parameters.push(schema::path_parameter("att_id", "The file's id (`att_0` is the first)"));
        takes
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let id = OfReceived::read(call)?;
        let place = attachment_place(call.path_parameter("att_id")).ok_or_else(no_such_file)?;
        Ok(Self { id, place })
    }
}

/// A file. Whatever its sender says that it is, a browser is to keep it and not to show it.
#[derive(Debug)]
pub struct FileBytes(Attachment);

impl Reply for FileBytes {
    const MEDIA_TYPE: &'static str = "application/octet-stream";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "format": "binary", "description": "The file's bytes"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(Bytes::from(self.0.data))
    }

    fn answer(self) -> Result<Answer, Problem> {
        // RFC 6266 4.3, RFC 8187: a name in any script, and nothing that ends the field.
        let name: String = self.0.file.filename.bytes().map(percent_encoded).collect();
        let disposition = HeaderValue::try_from(format!("attachment; filename*=UTF-8''{name}"));
        let disposition = disposition.unwrap_or_else(|_| HeaderValue::from_static("attachment"));
        Ok(Answer {
            status: StatusCode::OK,
            media_type: HeaderValue::from_static(Self::MEDIA_TYPE),
            headers: vec![
                (CONTENT_DISPOSITION, disposition),
                (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            ],
            body: self.write()?,
            more: None,
        })
    }
}

fn percent_encoded(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}

/// `GET /received-emails/{id}/attachments/{att_id}`.
///
/// # Errors
/// No such received email, or it has no such file; the store cannot be read.
pub async fn attachment(
    room: Arc<Room>,
    tenant: Tenant,
    input: GetAttachment,
) -> Result<Held<FileBytes>, Problem> {
    let GetAttachment { id: OfReceived(id), place } = input;
    let received = find(&room, &tenant, id).await?;
    let held = Place::of(received.size_bytes).await?;
    let found = read::attachment(message(&room, &received).await?, place).await;
    found.map(|file| held.holds(FileBytes(file))).ok_or_else(no_such_file)
}

/// `DELETE /received-emails/{id}`.
///
/// # Errors
/// No such received email; the store cannot be used.
pub async fn delete(room: Arc<Room>, tenant: Tenant, OfReceived(id): OfReceived) -> Result<Done, Problem> {
    let store = room.hall.store();
    for _ in 0..TRIES_MAX {
        let received = find(&room, &tenant, id).await?;
        let mut batch = Batch::progress();
        received::delete(store, &mut batch, &received).await?;
        match store.commit(batch).await {
            Ok(()) => return Ok(Done::OK),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(not_written(error)),
        }
    }
    Err(Problem::busy())
}
