//! `GET /r/{token}`: a partner's link that needs no script. Whoever follows it is led on to where the link leads, with the
//! visit in `stx_ref`; who only looks (HEAD, a prefetch, a crawler) is led on without one.

use std::sync::Arc;

use ::affiliate::visits::{Arrival, Brought, Way};
use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, LOCATION, REFERER,
};
use mail::address::Name;
use mail::affiliate::partner::Token;
use mail::affiliate::program::Program;
use serde_json::{Value, json};

use super::{Caller, TEXT_CHARS_MAX, URL_CHARS_MAX, header, refused};
use crate::call::{Also, Answer, Call, Input, PAGE, Reply, Takes};
use crate::page;
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

/// What a person sees whose link is no program's.
const NO_SUCH_LINK: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><title>No such link</title></head>\
    <body style=\"font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem\">\
    <h1>No such link</h1><p>This link is not valid. It may have been cut on its way to you: \
    open it again where you found it, or ask who gave it to you.</p></body></html>\n";

/// A link that is followed.
#[derive(Debug)]
pub struct Follow {
    caller: Caller,
    token: Option<Token>,
    key: Option<String>,
    host: Option<Name>,
    query: String,
    referrer: String,
    sub_id: Option<String>,
    wants_page: bool,
}

impl Input for Follow {
    fn describe(_: &mut Schemas) -> Takes {
        let text = || json!({"type": "string"});
        let parameters = vec![
            schema::path_parameter("token", "The token of a partner's link"),
            schema::query_parameter(
                "key",
                "The program's publishable key; its portal's host needs none",
                text(),
            ),
            schema::query_parameter("sub_id", "The partner's own tag", text()),
        ];
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        // A link is led on, whatever else somebody has put behind it.
        let given = page::parameters(&call.query).unwrap_or_default();
        let first = |name: &str| {
            let value = given.iter().find(|(given, _)| given == name).map(|(_, value)| value);
            value.map(|value| value.chars().take(TEXT_CHARS_MAX).collect::<String>())
        };
        let host = header(&call.headers, &HOST, TEXT_CHARS_MAX);
        let host = host.rsplit_once(':').map_or(host.as_str(), |(host, _)| host);
        Ok(Self {
            caller: Caller::of(call),
            token: call.path_text("token").and_then(|token| Token::exactly(&token).ok()),
            key: first("key"),
            host: host.to_ascii_lowercase().parse().ok(),
            query: format!("?{}", call.query.chars().take(URL_CHARS_MAX).collect::<String>()),
            referrer: header(&call.headers, &REFERER, URL_CHARS_MAX),
            sub_id: first("sub_id"),
            wants_page: header(&call.headers, &ACCEPT, TEXT_CHARS_MAX).contains("text/html"),
        })
    }
}

/// Where it leads.
#[derive(Debug)]
pub enum Led {
    /// There.
    To(HeaderValue),
    /// Nowhere: it is no program's.
    Nowhere,
}

impl Reply for Led {
    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";
    const STATUS: StatusCode = StatusCode::FOUND;
    const ALSO: &'static [Also] =
        &[Also { status: 404, media_type: Some(PAGE), about: "To a browser: the link is no program's" }];

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "maxLength": 0, "examples": [""], "description": "Nothing: `Location` says where it leads"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(match self {
            Self::To(_) => Bytes::new(),
            Self::Nowhere => Bytes::from_static(NO_SUCH_LINK.as_bytes()),
        })
    }

    fn answer(self) -> Result<Answer, Problem> {
        let mut headers = vec![
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow")),
        ];
        let (status, media_type) = match &self {
            Self::To(location) => {
                headers.push((LOCATION, location.clone()));
                (StatusCode::FOUND, Self::MEDIA_TYPE)
            }
            Self::Nowhere => {
                let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
                headers.push((CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)));
                (StatusCode::NOT_FOUND, PAGE)
            }
        };
        let media_type = HeaderValue::from_static(media_type);
        Ok(Answer { status, media_type, headers, body: self.write()?, more: None })
    }
}

async fn program_of(room: &Room, follow: &Follow) -> Result<Option<Program>, Problem> {
    let found = match (&follow.key, &follow.host) {
        (Some(key), _) => room.affiliate.program_of_key(key).await,
        (None, Some(host)) => room.affiliate.program_at(host).await,
        (None, None) => Ok(None),
    };
    found.map_err(|refusal| refused(room, refusal))
}

/// `GET /r/{token}`.
///
/// # Errors
/// It is no program's; the store cannot be read.
pub async fn follow(room: Arc<Room>, follow: Follow) -> Result<Led, Problem> {
    let Some(program) = program_of(&room, &follow).await? else {
        return if follow.wants_page {
            Ok(Led::Nowhere)
        } else {
            Err(Problem::new(Code::NOT_FOUND, "No such link"))
        };
    };
    let now = room.hall.clock().now();
    // Who comes too often is led on, and leaves nothing.
    let counts = !follow.caller.is_machine()
        && room.click_limits.address(follow.caller.from, now).is_ok()
        && room.click_limits.site(program.account, now).is_ok();
    let arrival = follow.token.clone().filter(|_| counts).map(|token| Arrival {
        brought: Brought::By(token),
        visitor: None,
        url: follow.query,
        referrer: follow.referrer,
        sub_id: follow.sub_id,
        from: follow.caller.from,
    });
    let way = room.affiliate.follow(&program, follow.token.as_ref(), arrival.as_ref()).await;
    let Way { location, .. } = way.map_err(|refusal| refused(&room, refusal))?;
    Ok(Led::To(HeaderValue::from_str(&location).map_err(Problem::internal)?))
}
