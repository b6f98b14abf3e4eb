//! `Idempotency-Key`: what was done with a key is done once, and answered the same (email-api.md, "Email
//! endpoints"; completions-email.md 2.3).
//!
//! ```text
//! key + fingerprint ─► at work? 409 ─► used before? replay, or 409 ─► do it ─[ what was done + the answer ]
//! ```
//!
//! `queue::once` does it for both doors; here a key is read and answered over HTTP. The fingerprint is taken of
//! what the request says, not of how it is written: fields by their canonical names and in any order, nulls
//! left out.

use std::fmt::Write as _;
use std::marker::PhantomData;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use mail::idempotency::{KEY_CHARS_MAX, Operation, Outcome, check_key};
use mail::usage::Left;
use queue::once::{self, Claim, NotNow, Slot};
use queue::refusal::Refusal;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use store::access::Tenant;
use store::engine::Batch;

use crate::call::{Answer, Reply};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The request's header field.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Says that an answer was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// How many emails the plan has left today.
const QUOTA_DAILY: HeaderName = HeaderName::from_static("x-quota-daily-remaining");
/// How many emails the plan has left this month.
const QUOTA_MONTHLY: HeaderName = HeaderName::from_static("x-quota-monthly-remaining");
/// When a request whose key is at work may be sent again.
const IN_PROGRESS_RETRY_S: u32 = 1;

/// The parameter of operations that take a key.
#[must_use]
pub fn parameter() -> Value {
    schema::header_parameter(
        "Idempotency-Key",
        "What is sent with a key is sent once: for 24 hours the same request with the same key gets the \
         same answer",
    )
}

/// The claim of a request, if it makes one.
///
/// # Errors
/// `invalid_idempotency_key`.
pub fn claim(
    headers: &http::HeaderMap,
    fingerprint: impl FnOnce() -> String,
) -> Result<Option<Claim>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let wrong = || {
        let text = format!("`Idempotency-Key` is one text of 1 to {KEY_CHARS_MAX} printable characters");
        Problem::new(Code::INVALID_IDEMPOTENCY_KEY, text)
    };
    let key = std::str::from_utf8(value.as_bytes()).map_err(|_| wrong())?.trim();
    if values.next().is_some() || check_key(key).is_err() {
        return Err(wrong());
    }
    Ok(Some(Claim { key: key.to_owned(), fingerprint: fingerprint() }))
}

/// Whether a request is to be carried out.
pub enum Turn {
    /// Carry it out, and keep the answer in the slot, if it came with a key.
    Go(Option<Box<Slot>>),
    /// It was: this was answered.
    Done(Bytes),
}

/// Looks at the key of a request, if it has one.
///
/// # Errors
/// It is at work, was used for something else, or the store cannot be read; or it stands for a send that
/// could not be confirmed.
pub async fn look(
    room: &Room,
    tenant: &Tenant,
    operation: Operation,
    claim: Option<Claim>,
) -> Result<Turn, Problem> {
    let Some(claim) = claim else { return Ok(Turn::Go(None)) };
    match Slot::look(&room.hall, tenant, operation, claim).await {
        Ok(once::Turn::Go(slot)) => Ok(Turn::Go(Some(slot))),
        Ok(once::Turn::Done(Outcome::Done(body))) => Ok(Turn::Done(Bytes::from(body))),
        Ok(once::Turn::Done(Outcome::Unconfirmed(id))) => {
            Err(Problem::unconfirmed(id).header(REPLAYED, "true"))
        }
        Err(NotNow::InProgress) => {
            let text = "A request with this `Idempotency-Key` is being carried out";
            let problem = Problem::new(Code::IDEMPOTENCY_IN_PROGRESS, text);
            Err(problem.header(http::header::RETRY_AFTER, IN_PROGRESS_RETRY_S.to_string()))
        }
        Err(NotNow::Conflict) => {
            let text = "This `Idempotency-Key` was used for another request; take a new one";
            Err(Problem::new(Code::IDEMPOTENCY_CONFLICT, text))
        }
        Err(NotNow::Unread(error)) => Err(error.into()),
    }
}

/// Brings a claimed request to its end: what was done at the same time elsewhere is replayed, a doubt
/// is kept.
///
/// # Errors
/// What the hall refused.
pub async fn conclude<T: Reply>(
    slot: Option<Box<Slot>>,
    room: &Room,
    result: Result<T, Refusal>,
) -> Result<Once<T>, Problem> {
    let refused = |refusal| Problem::of_refusal(refusal, &room.options.upgrade_url);
    match (result, slot) {
        (Ok(reply), _) => Once::first(reply),
        // Another node was quicker with this key: its answer counts.
        (Err(Refusal::DoneMeanwhile), Some(slot)) => match slot.meanwhile(room.hall.store()).await? {
            Some(Outcome::Done(body)) => Ok(Once::again(Bytes::from(body))),
            _ => Err(refused(Refusal::DoneMeanwhile)),
        },
        (Err(Refusal::Unconfirmed { id }), Some(slot)) => {
            // Should the email be there after all, so is its answer, and this conflicts: then that counts.
            let mut batch = Batch::progress();
            slot.keep(&mut batch, Outcome::Unconfirmed(id), room.hall.clock().now());
            if let Err(error) = room.hall.store().commit(batch).await {
                tracing::warn!(%error, email.id = %id, "a send that was not confirmed keeps no idempotency key");
            }
            Err(Problem::unconfirmed(id))
        }
        (Err(refusal), _) => Err(refused(refusal)),
    }
}

/// What is kept of an answer.
#[must_use]
pub fn done(answer: &impl serde::Serialize) -> Outcome {
    // Into memory, and of types that JSON has: this does not fail.
    Outcome::Done(serde_json::to_string(answer).unwrap_or_default())
}

/// An answer that may have been given before.
#[derive(Debug)]
pub struct Once<T> {
    body: Bytes,
    replayed: bool,
    headers: Vec<(HeaderName, HeaderValue)>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Reply> Once<T> {
    /// Given for the first time.
    ///
    /// # Errors
    /// A fault of our own.
    pub fn first(reply: T) -> Result<Self, Problem> {
        Ok(Self { body: reply.write()?, replayed: false, headers: Vec::new(), kind: PhantomData })
    }

    /// Given before.
    #[must_use]
    pub fn again(body: Bytes) -> Self {
        Self { body, replayed: true, headers: Vec::new(), kind: PhantomData }
    }

    /// With what is left of the plan, where it has caps (completions-email.md 2.2).
    #[must_use]
    pub fn with_quota(mut self, left: Left) -> Self {
        for (name, left) in [(QUOTA_DAILY, left.day), (QUOTA_MONTHLY, left.month)] {
            self.headers.extend(left.filter(|_| !self.replayed).map(|left| (name, left.into())));
        }
        self
    }
}

impl<T: Reply> Reply for Once<T> {
    fn describe(schemas: &mut Schemas) -> Value {
        T::describe(schemas)
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.body)
    }

    fn answer(self) -> Result<Answer, Problem> {
        let mut headers = self.headers;
        headers.extend(self.replayed.then(|| (REPLAYED, HeaderValue::from_static("true"))));
        let media_type = HeaderValue::from_static(T::MEDIA_TYPE);
        Ok(Answer { status: StatusCode::OK, media_type, headers, body: self.body, more: None })
    }
}

/// The fingerprint of an object's fields, which have their canonical names already; `aliases` are those of
/// the objects inside it.
#[must_use]
pub fn fingerprint(
    fields: &[(&'static str, &RawValue)],
    aliases: &'static [(&'static str, &'static str)],
) -> String {
    let mut members: Vec<(String, Sum)> = fields
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), sum_of(value, aliases)?)))
        .collect();
    let mut text = String::with_capacity(64);
    for byte in of_object(&mut members) {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

type Sum = [u8; 32];

fn sum_of(value: &RawValue, aliases: &'static [(&'static str, &'static str)]) -> Option<Sum> {
    // The grammar was checked; what can be wrong is half of a surrogate pair, which no field takes.
    Canonical(aliases).deserialize(&mut serde_json::Deserializer::from_str(value.get())).ok().flatten()
}

fn of_object(members: &mut [(String, Sum)]) -> Sum {
    members.sort();
    let mut sum = Sha256::new_with_prefix(b"{");
    for (name, value) in members {
        sum.update((name.len() as u64).to_le_bytes());
        sum.update(name.as_bytes());
        sum.update(&value[..]);
    }
    sum.finalize().into()
}

/// Sums up a value while it is read: nothing of it is built. None for null.
struct Canonical(&'static [(&'static str, &'static str)]);

impl<'de> DeserializeSeed<'de> for Canonical {
    type Value = Option<Sum>;
    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Option<Sum>, D::Error> {
        input.deserialize_any(self)
    }
}

fn tagged(tag: u8, bytes: &[u8]) -> Option<Sum> {
    let mut sum = Sha256::new_with_prefix([tag]);
    sum.update(bytes);
    Some(sum.finalize().into())
}

impl<'de> Visitor<'de> for Canonical {
    type Value = Option<Sum>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Option<Sum>, E> {
        Ok(tagged(b'b', &[value.into()]))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Option<Sum>, E> {
        Ok(tagged(b'n', value.to_string().as_bytes()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Option<Sum>, E> {
        Ok(tagged(b'n', value.to_string().as_bytes()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Option<Sum>, E> {
        Ok(tagged(b'n', value.to_string().as_bytes()))
    }
    fn visit_str<E>(self, value: &str) -> Result<Option<Sum>, E> {
        Ok(tagged(b's', value.as_bytes()))
    }
    fn visit_unit<E>(self) -> Result<Option<Sum>, E> {
        Ok(None)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Option<Sum>, A::Error> {
        let mut sum = Sha256::new_with_prefix(b"[");
        while let Some(entry) = entries.next_element_seed(Canonical(self.0))? {
            sum.update(entry.unwrap_or_default());
        }
        Ok(Some(sum.finalize().into()))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Sum>, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let canonical = self.0.iter().find(|(alias, _)| *alias == name).map(|(_, canonical)| *canonical);
            if let Some(sum) = map.next_value_seed(Canonical(self.0))? {
                members.push((canonical.map_or(name, str::to_owned), sum));
            }
        }
        Ok(Some(of_object(&mut members)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &'static str) -> String {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        fingerprint(&[("x", raw)], &[("filename", "name")])
    }

    #[test]
    fn what_is_said_counts_not_how() {
        assert_eq!(of(r#"{"a": 1, "b": ["x", null]}"#), of("{ \"b\":[\"\\u0078\",null],\"a\":1,\"c\":null}"));
        assert_eq!(of(r#"[{"filename": "f"}]"#), of(r#"[{"name": "f"}]"#));
        let different = [
            "1",
            "\"1\"",
            "true",
            "[1]",
            "{\"1\":1}",
            "[]",
            "{}",
            "\"\"",
            "[[],[]]",
            "[[[]]]",
            "1.5",
            "null",
        ];
        for (n, one) in different.iter().enumerate() {
            for other in &different[n + 1..] {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
    }
}
