//! `EventStream`: the webhook events of the account as they happen, over server-sent events (WHATWG HTML 9.2).
//!
//! A lost connection is made again, with backoff, behind the last event that was received. An error of the API ends it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;

use crate::client::{ApiClient, Call};
use crate::cursor_trail::CursorTrail;
use crate::error::CliError;
use mcp::arguments::encode;

/// The server sends a comment more often than this.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const BACKOFF_FIRST: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(15);
/// One event is smaller than this.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// Entries of a page when older events are looked for.
const PAGE: usize = 100;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// Position behind this event.
    pub cursor: String,
    /// `{id, type, created_at, data}`; null for a position without an event.
    pub event: Value,
}

/// The live events of an account.
#[derive(Debug)]
pub struct EventStream<'a> {
    client: &'a ApiClient,
    types: Vec<String>,
    /// Position behind the last event; `None` before the first, if only new events are wanted.
    cursor: Option<String>,
    body: Option<Incoming>,
    parser: SseParser,
    /// Events that were received together.
    ready: VecDeque<StreamEvent>,
    failures: u32,
    /// Begin of the connection that is open.
    opened_at: Option<tokio::time::Instant>,
    /// True once a connection was open.
    has_opened: bool,
    /// True once the newest event was looked for.
    has_begun: bool,
    /// Events before this time are skipped.
    not_before: Option<jiff::Timestamp>,
}

impl<'a> EventStream<'a> {
    /// Events of these types (all if empty) after a position, or new ones.
    pub fn new(client: &'a ApiClient, types: Vec<String>, cursor: Option<String>) -> Self {
        let parser = SseParser::default();
        Self {
            client,
            types,
            cursor,
            body: None,
            parser,
            ready: VecDeque::new(),
            failures: 0,
            opened_at: None,
            has_opened: false,
            has_begun: false,
            not_before: None,
        }
    }

    /// Events from a time on, then new ones.
    pub async fn since(client: &'a ApiClient, types: Vec<String>, time: jiff::Timestamp) -> Result<Self, CliError> {
        let mut stream = Self { not_before: Some(time), ..Self::new(client, types, None) };
        let mut trail = CursorTrail::default();
        loop {
            let page = stream.page("desc", PAGE).await?;
            let is_older = |event: &Value| created_at(event).is_some_and(|at| at < time);
            let has_older = page.events.iter().any(is_older);
            let Some(next) = page.next_cursor.filter(|next| stream.cursor.as_ref() != Some(next)) else { break };
            trail.add(&next)?;
            stream.cursor = Some(next);
            if has_older {
                return Ok(stream);
            }
        }
        // All events are newer, so there are few: begin with the oldest.
        stream.cursor = None;
        stream.read_all().await?;
        stream.has_begun = true;
        Ok(stream)
    }

    /// Reads all events from the oldest on.
    async fn read_all(&mut self) -> Result<(), CliError> {
        let mut trail = CursorTrail::default();
        loop {
            let page = self.page("asc", PAGE).await?;
            let Some(next) = page.next_cursor else { return Ok(()) };
            let events = page.events.into_iter().map(|event| StreamEvent { cursor: next.clone(), event });
            self.ready.extend(events);
            self.cursor = Some(next.clone());
            if !page.has_more {
                return Ok(());
            }
            trail.add(&next)?;
        }
    }

    /// Notes the newest event, so that events from now on are not lost.
    pub async fn begin(&mut self) -> Result<(), CliError> {
        self.find_position().await
    }

    /// Finds the newest event, so that a connection that is lost before the next event loses none.
    async fn find_position(&mut self) -> Result<(), CliError> {
        if self.cursor.is_some() {
            return Ok(());
        }
        if self.has_begun {
            // There was no event when the stream began, so all are new.
            return self.read_all().await;
        }
        self.cursor = self.page("desc", 1).await?.next_cursor;
        self.has_begun = true;
        Ok(())
    }

    async fn page(&self, order: &str, limit: usize) -> Result<EventPage, CliError> {
        let cursor = self.cursor.as_deref().map(|cursor| format!("&cursor={}", encode(cursor))).unwrap_or_default();
        let types =
            if self.types.is_empty() { String::new() } else { format!("&types={}", encode(&self.types.join(","))) };
        let target = format!("/webhook-events?order={order}&limit={limit}{cursor}{types}");
        let page = self.client.call(&Call::get(target)).await?.json()?;
        Ok(EventPage {
            events: page["events"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|event| event.is_object())
                .cloned()
                .collect(),
            has_more: page["has_more"] == true,
            next_cursor: page["next_cursor"].as_str().map(str::to_owned),
        })
    }

    /// Waits for the next event. A lost connection is made again for ever.
    ///
    /// # Errors
    /// The API refuses the stream, or the first connection fails.
    pub async fn next(&mut self) -> Result<StreamEvent, CliError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.cursor = Some(event.cursor.clone());
                let is_early = self.not_before.is_some_and(|time| created_at(&event.event).is_some_and(|at| at < time));
                if is_early || event.event.is_null() {
                    continue;
                }
                return Ok(event);
            }
            if self.body.is_none() {
                self.connect().await?;
            }
            let Some(body) = &mut self.body else { continue };
            match tokio::time::timeout(SILENCE_MAX, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Some(chunk) = frame.data_ref() {
                        self.ready.extend(self.parser.push(chunk)?);
                    }
                    if !self.ready.is_empty() {
                        self.failures = 0;
                    }
                }
                // The end, an error, or silence: the connection is lost.
                Ok(None | Some(Err(_))) | Err(_) => self.lose_connection().await,
            }
        }
    }

    async fn connect(&mut self) -> Result<(), CliError> {
        let Err(error) = self.open().await else { return Ok(()) };
        let lasts = match &error {
            CliError::Api(error) => !error.is_temporary(),
            CliError::UnexpectedResponse { status, .. } => !matches!(status, 0 | 408 | 429 | 500..),
            CliError::Connection(..) | CliError::Timeout(_) | CliError::Unconfirmed { .. } => false,
            CliError::Usage(_) | CliError::Io(_) | CliError::Failed(_) | CliError::Differences(_) => true,
        };
        // A stream that never began fails at once, so that the person sees why.
        if lasts || !self.has_opened {
            return Err(error);
        }
        self.back_off(error.retry_after()).await;
        Ok(())
    }

    /// Forgets the connection. A server that ends each one at once is not asked without a pause.
    async fn lose_connection(&mut self) {
        self.body = None;
        match self.opened_at.take() {
            Some(opened_at) if opened_at.elapsed() >= BACKOFF_MAX => self.failures = 0,
            _ => self.back_off(None).await,
        }
    }

    /// Waits before the next connection, and not less than the server asked for.
    async fn back_off(&mut self, retry_after_s: Option<u64>) {
        let wait = BACKOFF_MAX.min(BACKOFF_FIRST.saturating_mul(2_u32.saturating_pow(self.failures)));
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(wait.max(Duration::from_secs(retry_after_s.unwrap_or(0)))).await;
    }

    /// Opens a connection behind the last event.
    async fn open(&mut self) -> Result<(), CliError> {
        self.find_position().await?;
        self.parser = SseParser::default();
        let types = self.types.iter().map(|kind| encode(kind)).collect::<Vec<_>>().join(",");
        let mut call = Call::get(if types.is_empty() {
            "/webhook-events".to_owned()
        } else {
            format!("/webhook-events?types={types}")
        });
        call.headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        // Events that are ready are shown before those of this connection.
        let position = self.ready.back().map(|event| event.cursor.as_str()).or(self.cursor.as_deref());
        if let Some(cursor) = position.and_then(|cursor| HeaderValue::from_str(cursor).ok()) {
            call.headers.insert(LAST_EVENT_ID, cursor);
        }
        let response = self.client.open_stream(&call).await?;
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !media_type.starts_with("text/event-stream") {
            let message =
                "the response is not an event stream; is the base URL that of the API, or did a proxy answer?";
            return Err(CliError::unexpected_response(200, message));
        }
        self.body = Some(response.into_body());
        self.has_opened = true;
        self.opened_at = Some(tokio::time::Instant::now());
        Ok(())
    }
}

struct EventPage {
    events: Vec<Value>,
    has_more: bool,
    next_cursor: Option<String>,
}

fn created_at(event: &Value) -> Option<jiff::Timestamp> {
    event["created_at"].as_str()?.parse().ok()
}

/// Splits a byte stream into events.
#[derive(Debug, Default)]
struct SseParser {
    buffer: BytesMut,
    /// Bytes of the buffer in which no event ends.
    searched: usize,
}

impl SseParser {
    /// Adds bytes and returns the events that are complete.
    fn push(&mut self, chunk: &[u8]) -> Result<Vec<StreamEvent>, CliError> {
        self.buffer.extend_from_slice(chunk);
        let mut events = Vec::new();
        while let Some(end) = self.end_of_event() {
            let block = self.buffer.split_to(end);
            self.searched = 0;
            events.extend(Self::parse(&block));
        }
        if self.buffer.len() > EVENT_BYTES_MAX {
            let message = "the event stream has an unterminated event; did a proxy answer?";
            return Err(CliError::unexpected_response(200, message));
        }
        Ok(events)
    }

    /// The length of the first event, with the empty line behind it.
    fn end_of_event(&mut self) -> Option<usize> {
        let rest = self.buffer.get(self.searched..)?;
        let end = rest.windows(2).position(|two| two == b"\n\n").map(|at| self.searched + at + 2);
        // The last byte may be the first of the two.
        self.searched = self.buffer.len().saturating_sub(1);
        end
    }

    fn parse(block: &[u8]) -> Option<StreamEvent> {
        let text = std::str::from_utf8(block).ok()?;
        let (mut cursor, mut data) = (None, String::new());
        for line in text.lines() {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "id" => cursor = Some(value.to_owned()),
                "data" => {
                    if !data.is_empty() {
                        data.push('\n');
                    }
                    data.push_str(value);
                }
                // Comments and other fields.
                _ => {}
            }
        }
        // Without data, it tells the position alone.
        let event = if data.is_empty() { Value::Null } else { serde_json::from_str(&data).ok()? };
        (event.is_null() || event.is_object()).then_some(StreamEvent { cursor: cursor?, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_split_wherever_chunks_end() {
        let stream = b": hello\n\n:\nid: c0\n\nid: c1\nevent: email.sent\ndata: {\"type\":\ndata: \"email.sent\"}\n\n:\n\nid: c2\ndata: {}\n\n";
        for size in 1..stream.len() {
            let mut parser = SseParser::default();
            let events: Vec<StreamEvent> = stream.chunks(size).flat_map(|chunk| parser.push(chunk).unwrap()).collect();
            assert_eq!(events.len(), 3, "{size}");
            assert!(events[0].event.is_null());
            assert_eq!((events[1].cursor.as_str(), events[1].event["type"].as_str()), ("c1", Some("email.sent")));
        }
        assert!(SseParser::default().push(&vec![b'x'; EVENT_BYTES_MAX + 1]).is_err());
        // An event is an object.
        assert!(SseParser::default().push(b"id: c\ndata: 5\n\nid: c\ndata: {\n\n").unwrap().is_empty());
    }
}
