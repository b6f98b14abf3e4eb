//! Layout of all portal pages: head, navigation, messages, footer.

use std::sync::LazyLock;

use ::affiliate::partner_emails::website_host;
use ::affiliate::portal::login::PartnerSession;
use mail::affiliate::partner::PartnerStatus;
use mail::affiliate::portal::PortalToken;
use sha2::{Digest as _, Sha256};

use super::html::{Html, html, push};
use super::request::{FormFields, PortalRequest};

pub(super) const STYLE: &str = include_str!("style.css");
/// The pages of a signed-in partner, in the order of the navigation.
const TABS: [(&str, &str); 6] = [
    ("home", "Overview"),
    ("links", "Links"),
    ("referrals", "Referrals"),
    ("earnings", "Earnings"),
    ("payouts", "Payouts"),
    ("settings", "Settings"),
];

/// Hash of the style sheet in its URL, so that browsers may cache it indefinitely.
fn style_version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let hash = Sha256::digest(STYLE.as_bytes());
        hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    });
    &VERSION
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
    notice: Html,
    /// The relative path to the other pages.
    parent_path: &'static str,
}

impl<'a> PageContext<'a> {
    pub(super) fn new(session: &'a PartnerSession, token: &PortalToken, request: &'a PortalRequest) -> Self {
        Self { session, request, csrf: token.csrf(), error: None, notice: Html::new(), parent_path: "" }
    }

    /// For a page one path segment below the others.
    pub(super) fn nested(mut self) -> Self {
        self.parent_path = "../";
        self
    }

    /// Shows the page again after a rejected form.
    pub(super) fn with_error(mut self, form: &'a str, reason: String) -> Self {
        self.error = Some((form, reason));
        self
    }

    /// Adds a notice that is shown once.
    pub(super) fn with_notice(mut self, notice: Html) -> Self {
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
    pub(super) fn csrf_field(&self) -> Html {
        html! { "<input type=\"hidden\" name=\"csrf\" value=\"" (self.csrf) "\">" }
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
    pub(super) fn render(&self, tab: &'static str, title: &str, content: &Html) -> Html {
        let site = website_host(&self.session.program);
        let mut head = html! { "<header><div><span class=\"site\">" (site) "<small>Partner portal</small></span>" };
        push!(head, "<form method=\"post\" action=\"" (self.parent_path) "sign-out\">" [self.csrf_field()]);
        push!(head, "<button type=\"submit\">Sign out</button></form><nav aria-label=\"Portal\">");
        for (name, label) in TABS {
            push!(head, "<a href=\"" (self.parent_path) (name) "\"");
            if name == tab {
                head.raw(" aria-current=\"page\"");
            }
            push!(head, ">" (label) "</a>");
        }
        head.raw("</nav></div></header>\n");
        let mut main = html! { "<h1>" (title) "</h1>\n" [self.status_banner()] [self.notice] };
        main.put(content);
        let footer = html! { "Signed in as " (self.session.partner.email) };
        html_document(&format!("{title} · {site}"), self.parent_path, "", &head, &main, &footer)
    }

    /// The result of the last form, and a notice about the partner's status.
    fn status_banner(&self) -> Html {
        let mut banner = Html::new();
        if let Some((_, reason)) = &self.error {
            push!(banner, "<p class=\"note bad\" role=\"alert\">" (reason) "</p>\n");
        } else if let Some(text) = success_text(&self.request.query) {
            push!(banner, "<p class=\"note\" role=\"status\">" (text) "</p>\n");
        }
        match self.session.partner.status {
            PartnerStatus::Invited => banner.put(&self.invitation_form()),
            PartnerStatus::Pending => banner.raw(
                "<p class=\"note warn\">Your application is under review. You can view the portal; your links start to \
                 work once it is approved.</p>\n",
            ),
            PartnerStatus::Suspended => banner.raw(
                "<p class=\"note warn\">Your account is suspended: your links do not work and no payouts are made. You \
                 can view your data but cannot change it.</p>\n",
            ),
            PartnerStatus::Active | PartnerStatus::Rejected => {}
        }
        banner
    }

    /// The form that accepts an invitation.
    fn invitation_form(&self) -> Html {
        let mut form = html! {
            "<section class=\"card\"><h2>You have been invited to become a partner of "
            (website_host(&self.session.program))
            "</h2><p>Accept the invitation to activate your link.</p><form method=\"post\" action=\""
            (self.parent_path) "accept\">" [self.csrf_field()]
        };
        form.put(&terms_box(self.session.program.settings.terms_url.as_deref()));
        form.raw("<button type=\"submit\">Accept the invitation</button></form></section>\n");
        form
    }
}

/// The checkbox that accepts the terms; empty if the program has no terms.
pub(super) fn terms_box(terms_url: Option<&str>) -> Html {
    let Some(url) = terms_url else { return Html::new() };
    html! {
        "<label class=\"tick\"><input type=\"checkbox\" name=\"terms\" value=\"on\" required><span>I accept the \
         <a href=\"" (url) "\" rel=\"noopener noreferrer\" target=\"_blank\">terms of the program</a></span></label>"
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

pub(super) fn signed_out_page(title: &str, up: &'static str, content: &Html) -> Html {
    let main = html! { "<h1>" (title) "</h1>\n" [content] };
    html_document(title, up, "narrow", &Html::new(), &main, &Html::new())
}

/// A page with one message.
pub(super) fn message_page(up: &'static str, title: &str, text: &str) -> Html {
    signed_out_page(title, up, &html! { "<div class=\"card\"><p>" (text) "</p></div>" })
}

fn html_document(title: &str, up: &'static str, class: &'static str, head: &Html, main: &Html, footer: &Html) -> Html {
    let mut page = html! {
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" (title) "</title>\n\
         <link rel=\"stylesheet\" href=\"" (up) "style.css?v=" (style_version()) "\">\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to content</a>\n"
        [head] "<main id=\"main\" class=\"" (class) "\">\n" [main] "</main>\n"
    };
    if !footer.is_empty() {
        push!(page, "<footer>" [footer] "</footer>\n");
    }
    page.raw("</body>\n</html>\n");
    page
}

/// Relative path from a nested page to the other pages.
pub(super) const PARENT_PATH: &str = "../";

/// Returns whether the partner may change anything in the portal.
pub(super) fn can_edit(partner_session: &PartnerSession) -> bool {
    partner_session.partner.status == PartnerStatus::Active
}
