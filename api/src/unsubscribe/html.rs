//! The unsubscribe pages: accessible HTML without scripts.
//!
//! All text from outside is escaped. The Content-Security-Policy allows only this style sheet, by its hash.

use std::fmt::Write as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail::email::Category;
use mail::suppression::{OPTIONAL_CATEGORIES, category_label, category_word};
use mail::unsubscribe::UnsubscribeScope;
use sha2::{Digest, Sha256};

use super::form::{FORM, NOTHING};

/// The content of a page.
#[derive(Debug)]
pub(super) struct UnsubscribePageContent {
    pub(super) token: String,
    /// The recipient's address.
    pub(super) address: String,
    /// Name or address of the sender; `None` when the email was deleted.
    pub(super) sender: Option<String>,
    /// The scope of the link.
    pub(super) scope: UnsubscribeScope,
    /// The recipient has unsubscribed from everything.
    pub(super) unsubscribed_from_all: bool,
    /// The address is suppressed for another reason than unsubscribing.
    pub(super) blocked: bool,
    /// The categories that the recipient opted out of.
    pub(super) opted_out: Vec<Category>,
}

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--paper:#fff;--room:#f3f4f6;--line:#d0d7de;--act:#0b57d0;--on:#fff}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4b0;--paper:#161b22;--room:#0d1117;--line:#30363d;--act:#8ab4f8;--on:#0d1117}}\
*{box-sizing:border-box}\
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--room);color:var(--ink);\
font:1rem/1.55 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\
main{width:100%;max-width:30rem;background:var(--paper);border:1px solid var(--line);border-radius:.75rem;padding:1.75rem}\
h1{margin:0 0 .75rem;font-size:1.35rem;line-height:1.3}\
p{margin:0 0 1rem;overflow-wrap:anywhere}\
p:last-child{margin-bottom:0}\
.soft{color:var(--soft);font-size:.9rem}\
button{width:100%;min-height:2.75rem;margin:.25rem 0 1rem;border:0;border-radius:.5rem;background:var(--act);color:var(--on);\
font:inherit;font-weight:600;cursor:pointer}\
a{color:var(--act)}\
:focus-visible{outline:3px solid var(--act);outline-offset:2px}\
fieldset{margin:0 0 1rem;padding:0;border:0}\
legend{padding:0;margin-bottom:.5rem;font-weight:600}\
label{display:flex;gap:.75rem;align-items:flex-start;padding:.6rem 0;border-top:1px solid var(--line)}\
input{width:1.25rem;height:1.25rem;margin:.15rem 0 0;flex:none;accent-color:var(--act)}\
[role=status]{padding:.6rem .8rem;border-left:4px solid var(--act);background:var(--room)}";

/// Content-Security-Policy: this style sheet and forms of the same origin.
pub(super) fn content_security_policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; \
             frame-ancestors 'none'"
        )
    });
    &POLICY
}

/// Escapes text for element content and quoted attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

fn page(title: &str, main: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{main}</main>\n\
         </body>\n</html>\n"
    )
}

impl UnsubscribePageContent {
    fn sender(&self) -> String {
        self.sender.as_deref().map_or_else(|| "this sender".to_owned(), escaped)
    }

    fn address(&self) -> String {
        format!("<strong>{}</strong>", escaped(&self.address))
    }

    /// The scope as part of a sentence.
    fn scope_text(&self) -> String {
        match self.scope {
            UnsubscribeScope::All => "emails".to_owned(),
            UnsubscribeScope::Category(category) => {
                format!("“{}” emails", category_label(category))
            }
        }
    }
}

/// The page that asks for confirmation.
pub(super) fn confirm_page(content: &UnsubscribePageContent) -> String {
    let (sender, address, scope) = (content.sender(), content.address(), content.scope_text());
    let rest = match content.scope {
        UnsubscribeScope::All => "This stops all email, including receipts and messages about an account.",
        UnsubscribeScope::Category(_) => "Receipts and messages about an account are still sent.",
    };
    let token = escaped(&content.token);
    page(
        "Unsubscribe?",
        &format!(
            "<p>{address} will no longer receive {scope} from {sender}.</p>\n<p class=\"soft\">{rest}</p>\n\
             <form method=\"post\"><button type=\"submit\">Unsubscribe</button></form>\n\
             <p class=\"soft\"><a href=\"{token}/preferences\">Choose which emails you receive instead</a></p>\n"
        ),
    )
}

/// The page after unsubscribing.
pub(super) fn done_page(content: &UnsubscribePageContent) -> String {
    let (sender, address, scope) = (content.sender(), content.address(), content.scope_text());
    let token = escaped(&content.token);
    page(
        "You are unsubscribed",
        &format!(
            "<p role=\"status\">{address} will no longer receive {scope} from {sender}.</p>\n\
             <p class=\"soft\">Changed your mind? <a href=\"{token}/preferences\">Manage preferences</a></p>\n"
        ),
    )
}

/// The page with the recipient's preferences and a form to change them.
pub(super) fn preferences_page(content: &UnsubscribePageContent, saved: bool) -> String {
    let mut main = String::new();
    if saved {
        main.push_str("<p role=\"status\">Your preferences were saved.</p>\n");
    }
    let _ = writeln!(main, "<p>Emails that {} receives from {}:</p>", content.address(), content.sender());
    if content.blocked {
        main.push_str(
            "<p class=\"soft\">No email is sent to this address at the moment, because email to it bounced, was \
             reported as spam, or was stopped by the sender. Only the sender can change that.</p>\n",
        );
    }
    let _ = writeln!(main, "<form method=\"post\"><input type=\"hidden\" name=\"{}\" value=\"{}\">", FORM.0, FORM.1);
    main.push_str("<fieldset><legend>I want to receive</legend>\n");
    for category in OPTIONAL_CATEGORIES {
        let checked = if content.opted_out.contains(&category) { "" } else { " checked" };
        let (name, label) = (category_word(category), category_label(category));
        let _ = writeln!(main, "<label><input type=\"checkbox\" name=\"{name}\"{checked}><span>{label}</span></label>");
    }
    main.push_str("</fieldset>\n");
    if !content.blocked {
        let checked = if content.unsubscribed_from_all { " checked" } else { "" };
        let _ = writeln!(
            main,
            "<fieldset><legend>Or</legend>\n<label><input type=\"checkbox\" name=\"{NOTHING}\"{checked}>\
             <span>Send me no email at all, not even receipts and messages about my account</span></label></fieldset>"
        );
    }
    main.push_str("<button type=\"submit\">Save</button></form>\n");
    page("Email preferences", &main)
}

/// The page for an invalid link.
pub(super) fn not_found_page() -> String {
    page("This link does not work", "<p>It may be incomplete: open it again from the email, or copy all of it.</p>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> UnsubscribePageContent {
        UnsubscribePageContent {
            token: "T0k-en_".to_owned(),
            address: "\"<b>\"@example.net".to_owned(),
            sender: Some("A & B <script>".to_owned()),
            scope: UnsubscribeScope::Category(Category::Newsletter),
            unsubscribed_from_all: false,
            blocked: false,
            opted_out: vec![Category::Newsletter],
        }
    }

    #[test]
    fn foreign_text_is_escaped() {
        for text in [confirm_page(&content()), done_page(&content()), preferences_page(&content(), true)] {
            assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
            assert!(text.contains("A &amp; B &lt;script&gt;") && text.contains("&quot;&lt;b&gt;&quot;@example.net"));
            assert!(!text.contains("style=") && !text.contains("onclick"), "the policy would refuse it");
        }
    }

    #[test]
    fn checkboxes_show_the_preferences() {
        let text = preferences_page(&content(), false);
        assert!(text.contains("name=\"product\" checked") && text.contains("name=\"newsletter\">"));
        assert!(text.contains("name=\"nothing\">") && !text.contains("role=\"status\""));
        let blocked = preferences_page(&UnsubscribePageContent { blocked: true, ..content() }, false);
        assert!(!blocked.contains("name=\"nothing\"") && blocked.contains("Only the sender"));
    }

    #[test]
    fn the_policy_names_the_style_sheet() {
        assert!(
            content_security_policy().contains("style-src 'sha256-") && !content_security_policy().contains("unsafe")
        );
    }
}
