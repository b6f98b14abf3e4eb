//! "Same as": the calls of a page on the command line and in the languages of the SDKs.

use hypertext::{Buffer, prelude::*};

use crate::dashboard::backend::{Call, CallBody};
use crate::reference::operation::ApiTable;

/// The calls of a page.
#[derive(Debug, Clone, Copy)]
pub struct SameAs<'a> {
    pub calls: &'a [Call],
    pub base_url: &'a str,
}

impl Renderable for SameAs<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let _ = (self.base_url, CallBody::None);
        let table = ApiTable::load();
        let shown: Vec<_> = self.calls.iter().filter(|call| table.operation(call.operation).is_some()).collect();
        maud! {
            details.same-as {
                summary { "Same as" }
                @for call in &shown { p { code { (call.operation) } } }
            }
        }
        .render_to(buffer);
    }
}
