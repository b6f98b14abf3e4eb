//! The answer with one attachment of an email.

use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use httpd::problem::Problem;
use httpd::response::{IntoResponse, Response};
use schema::Schemas;
use serde_json::{Value, json};

/// An attachment. It is always sent as a download of an opaque type, so that a browser does not render it.
#[derive(Debug)]
pub struct AttachmentDownload {
    pub name: String,
    pub data: Vec<u8>,
}

impl IntoResponse for AttachmentDownload {
    const MEDIA_TYPE: &'static str = "application/octet-stream";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "format": "binary", "description": "The attachment's bytes"})
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        Ok(Bytes::from(self.data))
    }

    fn into_response(self) -> Result<Response, Problem> {
        // RFC 6266 4.3, RFC 8187: percent-encoding allows any script and keeps the name inside the field.
        let name: String = self.name.bytes().map(percent_encoded).collect();
        let disposition = HeaderValue::try_from(format!("attachment; filename*=UTF-8''{name}"));
        let disposition = disposition.unwrap_or_else(|_| HeaderValue::from_static("attachment"));
        Ok(Response {
            status: StatusCode::OK,
            media_type: HeaderValue::from_static(Self::MEDIA_TYPE),
            headers: vec![
                (CONTENT_DISPOSITION, disposition),
                (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            ],
            body: self.into_body()?,
            stream: None,
        })
    }
}

fn percent_encoded(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}
