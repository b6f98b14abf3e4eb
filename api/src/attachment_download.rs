//! The answer with one attachment of an email.

use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, X_CONTENT_TYPE_OPTIONS};
use httpd::response::{IntoResponse, Response};

use crate::prelude::*;

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

    fn into_body(self) -> Result<Bytes> {
        Ok(Bytes::from(self.data))
    }

    fn into_response(self) -> Result<Response> {
        // RFC 6266 4.3, RFC 8187: percent-encoding allows any script and keeps the name inside the field.
        let name: String = self.name.bytes().map(percent_encoded).collect();
        let disposition = HeaderValue::try_from(format!("attachment; filename*=UTF-8''{name}"));
        let disposition = disposition.unwrap_or_else(|_| HeaderValue::from_static("attachment"));
        Ok(Response::new(
            StatusCode::OK,
            Self::MEDIA_TYPE,
            vec![(CONTENT_DISPOSITION, disposition), (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))],
            self.into_body()?,
        ))
    }
}

fn percent_encoded(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}
