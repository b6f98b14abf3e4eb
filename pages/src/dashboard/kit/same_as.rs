//! "Same as": the calls of a page with curl, on the command line, and in the languages of the SDKs.

use hypertext::prelude::*;

use super::snippet::{SnippetLanguage, snippet};
use crate::dashboard::backend::Call;
use crate::dashboard::page::Fragment;
use crate::highlight::tokens;

/// The calls of a page.
pub fn same_as(calls: &[Call], base_url: &str) -> Fragment {
    let written = |language| {
        let calls = calls.iter().filter_map(move |call| snippet(call, language, base_url));
        calls.collect::<Vec<_>>().join("\n\n")
    };
    let shown: Vec<_> = SnippetLanguage::ALL.into_iter().map(|language| (language, written(language))).collect();
    if shown.iter().all(|(_, text)| text.is_empty()) {
        return Fragment::default();
    }
    Fragment::new(maud! {
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
    })
}
