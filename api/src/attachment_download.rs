//! An attachment of an email: its path, and the answer with it.

use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, X_CONTENT_TYPE_OPTIONS};
use httpd::response::{IntoResponse, Response, attachment_disposition};
use model::received::attachment_index;

use crate::prelude::*;

/// The path of an attachment of an email, which has the path `P`.
#[derive(Debug)]
pub struct AttachmentPath<P> {
    pub(crate) email: P,
    /// The attachment's position in the email, from 0.
    pub(crate) index: usize,
}

impl<P: FromRequest> FromRequest for AttachmentPath<P> {
    fn parameters() -> Vec<Value> {
        let attachment = schema::path_parameter("att_id", "The attachment's id (`att_0` is the first)");
        [P::parameters(), vec![attachment]].concat()
    }

    fn read(call: &Request) -> Result<Self> {
        let email = P::read(call)?;
        let index = attachment_index(call.path_parameter("att_id"));
        Ok(Self { email, index: index.ok_or_else(|| Problem::not_found("attachment"))? })
    }
}

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

    fn into_response(self) -> Result<Response> {
        Ok(Response::new(
            StatusCode::OK,
            Self::MEDIA_TYPE,
            vec![
                (CONTENT_DISPOSITION, attachment_disposition(&self.name)),
                (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            ],
            Bytes::from(self.data),
        ))
    }
}
