//! Layout of all portal pages: head, navigation, messages, footer.

use std::sync::LazyLock;

use ::affiliate::partner_emails::website_host;
use ::affiliate::portal::login::PartnerSession;
use html::badge::Tone;
use html::document::{Document, PageStyle, RenderedPage};
use html::fragment::Fragment;
use html::message::Sentence;
use html::notice::{Notice, alert};
use html::style::{self, BASE, CONTROLS, KIT};
use hypertext::prelude::*;
use model::affiliate::partner::PartnerStatus;
use model::affiliate::portal::PortalToken;

use super::field::CheckField;
use super::request::{FormFields, PortalRequest};

/// The pages of a signed-in partner, in the order of the navigation.
const TABS: [(&str, &str); 6] = [
    ("home", "Overview"),
    ("links", "Links"),
    ("referrals", "Referrals"),
    ("earnings", "Earnings"),
    ("payouts", "Payouts"),
    ("settings", "Settings"),
];

/// The style sheet: what all pages of the server share, and the portal's own layout.
pub(super) fn style_sheet() -> &'static str {
    static SHEET: LazyLock<String> = LazyLock::new(|| style::join(&[BASE, CONTROLS, KIT, include_str!("style.css")]));
    &SHEET
}

/// The address of the style sheet. It contains a hash of the text, so that browsers may cache it indefinitely.
fn style_path(up: &str) -> String {
    static VERSION: LazyLock<String> = LazyLock::new(|| style::hex_hash(style_sheet().as_bytes()));
    format!("{up}style.css?v={}", *VERSION)
}

/// The context in which a page of a signed-in partner is rendered.
pub(super) struct PageContext<'a> {
    pub(super) session: &'a PartnerSession,
    pub(super) request: &'a PortalRequest,
    /// The CSRF token of the session, for the forms.
    csrf: String,
    /// The rejected form, and the reason.
    error: Option<(&'a str, String)>,
    /// A notice that is shown only in this response.
    notice: Fragment,
    /// The relative path to the other pages.
    parent_path: &'static str,
}

impl<'a> PageContext<'a> {
    pub(super) fn new(session: &'a PartnerSession, token: &PortalToken, request: &'a PortalRequest) -> Self {
        Self { session, request, csrf: token.csrf(), error: None, notice: Fragment::default(), parent_path: "" }
    }

    /// For a page one path segment below the others.
    pub(super) fn nested(mut self) -> Self {
        self.parent_path = PARENT_PATH;
        self
    }

    /// Shows the page again after a rejected form.
    pub(super) fn with_error(mut self, form: &'a str, reason: String) -> Self {
        self.error = Some((form, reason));
        self
    }

    /// Adds a notice that is shown once.
    pub(super) fn with_notice(mut self, notice: Fragment) -> Self {
        self.notice = notice;
        self
    }

    /// The relative path to the other pages.
    pub(super) fn parent_path(&self) -> &'static str {
        self.parent_path
    }

    /// Returns whether the partner may change anything.
    pub(super) fn can_edit(&self) -> bool {
        can_edit(self.session)
    }

    /// The hidden CSRF field of every form.
    pub(super) fn csrf_field(&self) -> impl Renderable + use<'_> {
        maud! { input type="hidden" name="csrf" value=(self.csrf); }
    }

    /// The value of a form field: the typed text if this form was rejected, else the stored value.
    pub(super) fn field_value(&self, form: &str, name: &str, now: &str) -> String {
        match &self.error {
            Some((failed, _)) if *failed == form => self.request.form.get(name).to_owned(),
            _ => now.to_owned(),
        }
    }

    /// Returns whether this form was rejected.
    pub(super) fn has_error(&self, form: &str) -> bool {
        self.error.as_ref().is_some_and(|(failed, _)| *failed == form)
    }

    /// Renders the page with head, navigation, messages and footer.
    pub(super) fn render(&self, tab: &'static str, title: &str, content: impl Renderable) -> RenderedPage {
        let (site, up) = (website_host(&self.session.program), self.parent_path);
        let document_title = format!("{title} · {site}");
        let body = maud! {
            a.skip href="#main" { "Skip to content" }
            header.portal {
                div {
                    p.site { strong { (site) } span { "Partner portal" } }
                    form method="post" action={ (up) "sign-out" } {
                        (self.csrf_field())
                        button.button.quiet type="submit" { "Sign out" }
                    }
                    nav.tabs aria-label="Portal" {
                        @for (name, label) in TABS {
                            a href={ (up) (name) } aria-current=[(name == tab).then_some("page")] { (label) }
                        }
                    }
                }
            }
            main #main tabindex="-1" {
                h1 { (title) }
                (self.status_banner())
                (self.notice)
                (content)
            }
            footer { p { "Signed in as " (self.session.partner.email.to_string()) } }
        };
        Document { title: &document_title, style: PageStyle::File(&style_path(up)), class: "portal", body }.render()
    }

    /// The result of the last form, and a notice about the partner's status.
    fn status_banner(&self) -> Fragment {
        let reason = self.error.as_ref().map(|(_, reason)| reason.as_str());
        let done = if reason.is_none() { success_text(&self.request.query) } else { None };
        let status = self.session.partner.status;
        let status_text = match status {
            PartnerStatus::Pending => Some(
                "Your application is under review. You can view the portal; your links start to work once it is \
                 approved.",
            ),
            PartnerStatus::Suspended => Some(
                "Your account is suspended: your links do not work and no payouts are made. You can view your data \
                 but cannot change it.",
            ),
            PartnerStatus::Invited | PartnerStatus::Active | PartnerStatus::Rejected => None,
        };
        Fragment::new(maud! {
            @if let Some(reason) = reason { (alert(reason)) }
            @if let Some(text) = done { (Notice { tone: Tone::Good, text }) }
            @if status == PartnerStatus::Invited { (self.invitation_form()) }
            @if let Some(text) = status_text { div.notice.warning { p { (text) } } }
        })
    }

    /// The form that accepts an invitation.
    fn invitation_form(&self) -> impl Renderable + use<'_> {
        let program = &self.session.program;
        maud! {
            section.card {
                h2 { "You have been invited to become a partner of " (website_host(program)) }
                p { "Accept the invitation to activate your link." }
                form.form method="post" action={ (self.parent_path) "accept" } {
                    (self.csrf_field())
                    (terms_box(program.settings.terms_url.as_deref()))
                    (submit_button("Accept the invitation"))
                }
            }
        }
    }
}

/// The main button of a form.
pub(super) fn submit_button(label: &str) -> impl Renderable + use<'_> {
    maud! { div.buttons { button.button.primary type="submit" { (label) } } }
}

/// The checkbox that accepts the terms; empty if the program has no terms.
pub(super) fn terms_box(terms_url: Option<&str>) -> impl Renderable + use<'_> {
    let label = |url| {
        maud! {
            "I accept the " a href=(url) rel="noopener noreferrer" target="_blank" { "terms of the program" }
        }
    };
    maud! {
        @if let Some(url) = terms_url {
            (CheckField {
                name: "terms",
                label: label(url),
                help: None,
                is_checked: false,
                is_required: true,
                is_disabled: false,
            })
        }
    }
}

/// The message for the `done` parameter of a redirect.
fn success_text(query: &FormFields) -> Option<&'static str> {
    Some(match query.get("done") {
        "accepted" => "Welcome! You are now a partner.",
        "link-added" => "The link was added.",
        "link-changed" => "The link was changed.",
        "payout-asked" => {
            "Check your email: payouts go to the new destination once you open the link in it, within one hour."
        }
        "profile-changed" => "Your details were changed.",
        "postback-changed" => "The postback URL was changed.",
        "postback-sent" => "A test postback was sent. The log shows the result.",
        "mail-changed" => "Your email preference was saved.",
        _ => return None,
    })
}

/// A page for visitors without a session: a heading and a card.
pub(super) fn signed_out_page(
    title: &str,
    up: &'static str,
    error: Option<&str>,
    content: impl Renderable,
) -> RenderedPage {
    let body = maud! {
        main #main {
            h1 { (title) }
            @if let Some(error) = error { (alert(error)) }
            div.card { (content) }
        }
    };
    Document { title, style: PageStyle::File(&style_path(up)), class: "portal signed-out", body }.render()
}

pub(super) fn message_page(up: &'static str, title: &str, text: &str) -> RenderedPage {
    signed_out_page(title, up, None, Sentence(text))
}

/// Relative path from a nested page to the other pages.
pub(super) const PARENT_PATH: &str = "../";

/// Returns whether the partner may change anything in the portal.
pub(super) fn can_edit(partner_session: &PartnerSession) -> bool {
    partner_session.partner.status == PartnerStatus::Active
}
