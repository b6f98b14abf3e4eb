//! The unsubscribe pages: one file each, without scripts, so that they work in every mail program's browser.

use html::document::RenderedPage;
use html::fragment::Fragment;
use html::message::{MessagePage, Sentence};
use hypertext::prelude::*;
use model::email::Category;
use model::suppression::{OPTIONAL_CATEGORIES, category_label};
use model::unsubscribe::UnsubscribeScope;

use super::form::{FORM, NOTHING};

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

/// A page of the sender: it does not name this server.
fn page(title: &str, content: impl Renderable) -> RenderedPage {
    MessagePage { title, is_branded: false, content }.render()
}

impl UnsubscribePageContent {
    fn sender(&self) -> &str {
        self.sender.as_deref().unwrap_or("this sender")
    }

    /// The effect of the link, as a sentence.
    fn effect(&self) -> Fragment {
        Fragment::new(maud! {
            strong { (self.address) } " will no longer receive "
            @match self.scope {
                UnsubscribeScope::All => { "emails" }
                UnsubscribeScope::Category(category) => { "“" (category_label(category)) "” emails" }
            }
            " from " (self.sender()) "."
        })
    }

    /// The address of the preferences, relative to the link.
    fn preferences_path(&self) -> String {
        format!("{}/preferences", self.token)
    }
}

/// The page that asks for confirmation.
pub(super) fn confirm_page(content: &UnsubscribePageContent) -> RenderedPage {
    let rest = match content.scope {
        UnsubscribeScope::All => "This stops all email, including receipts and messages about an account.",
        UnsubscribeScope::Category(_) => "Receipts and messages about an account are still sent.",
    };
    page(
        "Unsubscribe?",
        maud! {
            p { (content.effect()) }
            p.soft { (rest) }
            form method="post" { button.button.primary type="submit" { "Unsubscribe" } }
            p.soft.small {
                a href=(content.preferences_path()) { "Choose which emails you receive instead" }
            }
        },
    )
}

/// The page after unsubscribing.
pub(super) fn done_page(content: &UnsubscribePageContent) -> RenderedPage {
    page(
        "You have been unsubscribed",
        maud! {
            div.notice.good role="status" { p { (content.effect()) } }
            p.soft { "Changed your mind? " a href=(content.preferences_path()) { "Manage preferences" } }
        },
    )
}

/// The page with the recipient's preferences and a form to change them.
pub(super) fn preferences_page(content: &UnsubscribePageContent, saved: bool) -> RenderedPage {
    let is_chosen = |category| !content.opted_out.contains(&category);
    page(
        "Email preferences",
        maud! {
            @if saved { div.notice.good role="status" { p { "Your preferences have been saved." } } }
            p { "Emails that " strong { (content.address) } " receives from " (content.sender()) ":" }
            @if content.blocked {
                p.soft {
                    "No email is sent to this address at the moment, because email to it bounced, was reported as \
                     spam, or was stopped by the sender. Only the sender can change that."
                }
            }
            form.form method="post" {
                input type="hidden" name=(FORM.0) value=(FORM.1);
                fieldset {
                    legend { "I want to receive" }
                    @for category in OPTIONAL_CATEGORIES {
                        (checkbox_choice(category.word(), category_label(category), is_chosen(category)))
                    }
                }
                @if !content.blocked {
                    fieldset {
                        legend { "Or" }
                        (checkbox_choice(NOTHING, "Do not send me any email, not even receipts and messages about my \
                            account", content.unsubscribed_from_all))
                    }
                }
                button.button.primary type="submit" { "Save" }
            }
        },
    )
}

/// A checkbox with its label.
fn checkbox_choice(name: &str, label: &str, is_checked: bool) -> impl Renderable {
    maud! {
        div.choice {
            input id=(name) type="checkbox" name=(name) checked[is_checked];
            label for=(name) { (label) }
        }
    }
}

/// The page for an invalid link.
pub(super) fn not_found_page() -> RenderedPage {
    let text = "It may be incomplete: open it again from the email, or copy the whole link.";
    page("This link does not work", Sentence(text))
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
        for page in [confirm_page(&content()), done_page(&content()), preferences_page(&content(), true)] {
            let text = page.as_str();
            assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
            assert!(text.contains("A &amp; B &lt;script&gt;") && text.contains("\"&lt;b&gt;\"@example.net"));
            assert!(!text.contains("style=") && !text.contains("onclick"), "the policy would refuse it");
        }
    }

    #[test]
    fn checkboxes_show_the_preferences() {
        let text = preferences_page(&content(), false).into_string();
        assert!(text.contains("name=\"product\" checked") && text.contains("name=\"newsletter\">"));
        assert!(text.contains("name=\"nothing\">") && !text.contains("role=\"status\""));
        let blocked = preferences_page(&UnsubscribePageContent { blocked: true, ..content() }, false).into_string();
        assert!(!blocked.contains("name=\"nothing\"") && blocked.contains("Only the sender"));
    }
}
