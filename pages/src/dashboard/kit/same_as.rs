//! "Same as": the calls of a page with curl, on the command line, and in the languages of the SDKs.

use hypertext::{Buffer, prelude::*};

use super::snippet::{SnippetLanguage, snippet};
use crate::dashboard::backend::Call;
use crate::highlight::tokens;

/// The calls of a page.
#[derive(Debug, Clone, Copy)]
pub struct SameAs<'a> {
    pub calls: &'a [Call],
    pub base_url: &'a str,
}

impl Renderable for SameAs<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let written = |language| {
            let calls = self.calls.iter().filter_map(move |call| snippet(call, language, self.base_url));
            calls.collect::<Vec<_>>().join("\n\n")
        };
        let shown: Vec<_> = SnippetLanguage::ALL.into_iter().map(|language| (language, written(language))).collect();
        if shown.iter().all(|(_, text)| text.is_empty()) {
            return;
        }
        maud! {
            details.same-as id="same-as" {
                summary { "Same as: curl, command line, Node, Python" }
                @for (language, text) in &shown {
                    figure.code {
                        figcaption {
                            (language.label())
                            button.button.quiet type="button" data-copy=(text) hidden { "Copy" }
                        }
                        pre tabindex="0" role="group" aria-label=(language.label()) {
                            code {
                                @for (role, piece) in tokens(language.code_language(), text) {
                                    @match role.class() {
                                        Some(class) => { span class=(class) { (piece) } }
                                        None => { (piece) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}
