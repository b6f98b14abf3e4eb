//! Code with its title. The script adds a button that copies it.

use hypertext::{Buffer, prelude::*};

use crate::display_text::display_text;
use crate::highlight::{CodeLanguage, tokens};

/// A figure with code.
#[derive(Debug, Clone, Copy)]
pub struct HtmlCode<'a> {
    pub title: &'a str,
    pub language: CodeLanguage,
    pub text: &'a str,
}

impl Renderable for HtmlCode<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let text = display_text(self.text);
        maud! {
            figure.code {
                figcaption { (display_text(self.title)) }
                pre role="group" tabindex="0" aria-label=(self.title) {
                    code {
                        @for (role, piece) in tokens(self.language, &text) {
                            @match role.class() {
                                Some(class) => { span class=(class) { (piece) } }
                                None => { (piece) }
                            }
                        }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}
