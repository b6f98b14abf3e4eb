//! The answer with one attachment of an email.

use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, X_CONTENT_TYPE_OPTIONS};
use httpd::response::{IntoResponse, Response, attachment_disposition};

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
        Ok(Response::new(
            StatusCode::OK,
            Self::MEDIA_TYPE,
            vec![
                (CONTENT_DISPOSITION, attachment_disposition(&self.name)),
                (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            ],
            self.into_body()?,
        ))
    }
}
