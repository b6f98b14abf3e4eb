//! A secret that is shown once, and how to use it. Pages are never cached (`no-store`).

use hypertext::{Buffer, prelude::*};

use super::badge::Tone;
use super::code::Code;
use super::copy_button::CopyButton;
use super::notice::Notice;

/// One way to use a secret.
#[derive(Debug, Clone)]
pub struct SecretUse {
    pub title: &'static str,
    pub code: String,
}

#[derive(Debug, Clone, Copy)]
pub struct ShownSecret<'a> {
    /// `API key`, `Password`.
    pub label: &'a str,
    pub secret: &'a str,
    pub uses: &'a [SecretUse],
    /// Path and label of the page where to go on.
    pub next: (&'a str, &'a str),
}

impl Renderable for ShownSecret<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let Self { label, secret, uses, next } = *self;
        maud! {
            (Notice { tone: Tone::Warning, text: "Copy it now and store it like a password: it will never be shown \
                again." })
            div.card {
                h2 { (label) }
                p.secret {
                    code { (secret) }
                    (CopyButton { text: secret, label })
                }
                p { a.button href=(next.0) { (next.1) } }
            }
            (secret_uses(uses))
        }
        .render_to(buffer);
    }
}

/// Ways to use a secret, folded up but for the first.
pub fn secret_uses(uses: &[SecretUse]) -> impl Renderable {
    maud! {
        @if !uses.is_empty() {
            section {
                h2 { "How to use it" }
                div.card.folds {
                    @for (n, one) in uses.iter().enumerate() {
                        details open[n == 0] {
                            summary { (one.title) }
                            (Code::new(one.title, &one.code))
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::page::render;

    #[test]
    fn secrets_are_escaped_and_copied_as_they_are() {
        let uses = [SecretUse { title: "curl", code: "curl '<x>'".into() }];
        let shown = ShownSecret { label: "API key", secret: "a\"<b", uses: &uses, next: ("/dashboard", "Done") };
        let html = render(shown);
        assert!(html.contains("<code>a\"&lt;b</code>") && html.contains("data-copy=\"a&quot;&lt;b\""), "{html}");
        assert!(html.contains("&lt;x>") || html.contains("&lt;x&gt;"), "{html}");
    }
}
