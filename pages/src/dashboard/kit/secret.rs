//! A secret that is shown once, and how to use it. Pages are never cached (`no-store`).

use hypertext::prelude::*;

use super::badge::Tone;
use super::code::Code;
use super::copy_button::copy_button;
use super::notice::Notice;

/// One way to use a secret.
#[derive(Debug, Clone)]
pub struct SecretUse {
    pub title: &'static str,
    pub code: String,
}

/// The secret with its uses. `label` is `API key` or `Password`, and `next` has path and label of the page where to go
/// on.
pub fn shown_secret(label: &str, secret: &str, uses: &[SecretUse], next: (&str, &str)) -> impl Renderable {
    maud! {
        (Notice { tone: Tone::Warning, text: "Copy it now and store it like a password: it will never be shown \
            again." })
        div.card {
            h2 { (label) }
            p.secret {
                code { (secret) }
                (copy_button(secret, label))
            }
            p { a.button href=(next.0) { (next.1) } }
        }
        (secret_uses(uses))
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
        let html = render(shown_secret("API key", "a\"<b", &uses, ("/dashboard", "Done")));
        assert!(html.contains("<code>a\"&lt;b</code>") && html.contains("data-copy=\"a&quot;&lt;b\""), "{html}");
        assert!(html.contains("&lt;x>") || html.contains("&lt;x&gt;"), "{html}");
    }
}
