//! `GET /stx.js`: the browser script, the same bytes for everybody. It is made of `web/stx.src.js`; `docs/STX.md` is for
//! those who use it.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::header;
use crate::call::{Also, Answer, Call, Input, Reply, Takes};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// What browsers run.
const SCRIPT: &str = include_str!("../../../../web/stx.js");
/// For how long they may keep it without asking; a day longer, while they ask.
const SCRIPT_KEPT: &str = "public, max-age=3600, stale-while-revalidate=86400";
/// An `If-None-Match` that is longer names none of ours.
const TAGS_CHARS_MAX: usize = 1_000;

/// What it is told apart by (RFC 9110 8.8.3).
static TAG: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::digest(SCRIPT.as_bytes());
    let digits = digest.iter().take(8).flat_map(|byte| [byte >> 4, byte & 15]);
    let hex: String = digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect();
    format!("\"{hex}\"")
});

/// Who asks for it, and has it perhaps.
#[derive(Debug)]
pub struct GetScript {
    has_it: bool,
}

impl Input for GetScript {
    fn describe(_: &mut Schemas) -> Takes {
        let known = schema::header_parameter("If-None-Match", "The `ETag` of the script that one has");
        Takes { parameters: vec![known], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let known = header(&call.headers, &IF_NONE_MATCH, TAGS_CHARS_MAX);
        let is_it = |tag: &str| tag.trim().trim_start_matches("W/") == *TAG || tag.trim() == "*";
        Ok(Self { has_it: known.split(',').any(is_it) })
    }
}

/// The script, or that it is the same.
#[derive(Debug)]
pub struct Script {
    is_known: bool,
}

impl Reply for Script {
    const MEDIA_TYPE: &'static str = "text/javascript; charset=utf-8";
    const ALSO: &'static [Also] = &[Also { status: 304, media_type: None, about: "It is the same" }];

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The script"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(if self.is_known { Bytes::new() } else { Bytes::from_static(SCRIPT.as_bytes()) })
    }

    fn answer(self) -> Result<Answer, Problem> {
        let tag = HeaderValue::from_str(&TAG).map_err(Problem::internal)?;
        let headers = vec![
            (ETAG, tag),
            (CACHE_CONTROL, HeaderValue::from_static(SCRIPT_KEPT)),
            // Any site may have it, also one that asks for it with CORS or keeps others' things out (COEP).
            (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                HeaderValue::from_static("cross-origin"),
            ),
        ];
        let status = if self.is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
        let media_type = HeaderValue::from_static(Self::MEDIA_TYPE);
        Ok(Answer { status, media_type, headers, body: self.write()?, more: None })
    }
}

/// `GET /stx.js`.
///
/// # Errors
/// None.
pub async fn get(_: Arc<Room>, asked: GetScript) -> Result<Script, Problem> {
    Ok(Script { is_known: asked.has_it })
}
