//! What all pages of the portal have: the head, the way to the other pages, what just happened.

use std::sync::LazyLock;

use ::affiliate::letters::website_host;
use ::affiliate::portal::entrance::PartnerSession;
use mail::affiliate::partner::PartnerStatus;
use mail::affiliate::portal::PortalToken;
use sha2::{Digest as _, Sha256};

use super::asked::{FormFields, PortalRequest};
use super::html::{Html, html, push};

/// The style sheet.
pub(super) const STYLE: &str = include_str!("style.css");
/// The pages of who has signed in.
const TABS: [(&str, &str); 6] = [
    ("home", "Overview"),
    ("links", "Links"),
    ("referrals", "Referrals"),
    ("earnings", "Earnings"),
    ("payouts", "Payouts"),
    ("settings", "Settings"),
];

/// Changes with the style sheet's text, so that browsers may keep that for ever.
fn style_version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let hash = Sha256::digest(STYLE.as_bytes());
        hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    });
    &VERSION
}

/// What a page is shown to, and after what.
pub(super) struct PageContext<'a> {
    /// Who looks.
    pub(super) session: &'a PartnerSession,
    /// What came.
    pub(super) request: &'a PortalRequest,
    /// What the forms bring.
    csrf: String,
    /// The form that did not work, and why.
    error: Option<(&'a str, String)>,
    /// What is shown once.
    notice: Html,
    /// The way to the other pages.
    parent_path: &'static str,
}

impl<'a> PageContext<'a> {
    pub(super) fn new(session: &'a PartnerSession, token: &PortalToken, request: &'a PortalRequest) -> Self {
        Self { session, request, csrf: token.csrf(), error: None, notice: Html::new(), parent_path: "" }
    }

    /// The same, of a page one step below the others.
    pub(super) fn nested(mut self) -> Self {
        self.parent_path = "../";
        self
    }

    /// The same, after a form that did not work.
    pub(super) fn with_error(mut self, form: &'a str, why: String) -> Self {
        self.error = Some((form, why));
        self
    }

    /// The same, with something that is shown once.
    pub(super) fn with_notice(mut self, news: Html) -> Self {
        self.notice = news;
        self
    }

    /// The way to the other pages.
    pub(super) fn parent_path(&self) -> &'static str {
        self.parent_path
    }

    /// Whether who looks may change anything.
    pub(super) fn can_edit(&self) -> bool {
        super::can_edit(self.session)
    }

    /// The field that every form has.
    pub(super) fn csrf_field(&self) -> Html {
        html! { "<input type=\"hidden\" name=\"csrf\" value=\"" (self.csrf) "\">" }
    }

    /// What stands in a field: what was typed, when just this form did not work; else what is so.
    pub(super) fn field_value(&self, form: &str, name: &str, now: &str) -> String {
        match &self.error {
            Some((wrong, _)) if *wrong == form => self.request.form.get(name).to_owned(),
            _ => now.to_owned(),
        }
    }

    /// Whether this form did not work.
    pub(super) fn has_error(&self, form: &str) -> bool {
        self.error.as_ref().is_some_and(|(wrong, _)| *wrong == form)
    }

    /// The page.
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
        let foot = html! { "Signed in as " (self.session.partner.email) };
        html_document(&format!("{title} · {site}"), (self.parent_path, ""), &head, (&main, &foot))
    }

    /// What just happened, and where the partner stands.
    fn status_banner(&self) -> Html {
        let mut told = Html::new();
        if let Some((_, why)) = &self.error {
            push!(told, "<p class=\"note bad\" role=\"alert\">" (why) "</p>\n");
        } else if let Some(text) = success_text(&self.request.query) {
            push!(told, "<p class=\"note\" role=\"status\">" (text) "</p>\n");
        }
        match self.session.partner.status {
            PartnerStatus::Invited => told.put(&self.invitation_form()),
            PartnerStatus::Pending => told.raw(
                "<p class=\"note warn\">Your application is being looked at. Until then you can look around; your links \
                 begin to work when it is approved.</p>\n",
            ),
            PartnerStatus::Suspended => told.raw(
                "<p class=\"note warn\">Your account is suspended: your links lead nobody, and there are no payouts. You \
                 can look at everything, but change nothing.</p>\n",
            ),
            PartnerStatus::Active | PartnerStatus::Rejected => {}
        }
        told
    }

    /// The form by which an invitation is accepted.
    fn invitation_form(&self) -> Html {
        let mut form = html! {
            "<section class=\"card\"><h2>You are invited to be a partner of " (website_host(&self.session.program)) "</h2>\
             <p>Accept, and your link works at once.</p><form method=\"post\" action=\"" (self.parent_path) "accept\">"
            [self.csrf_field()]
        };
        form.put(&terms_box(self.session.program.settings.terms_url.as_deref()));
        form.raw("<button type=\"submit\">Accept the invitation</button></form></section>\n");
        form
    }
}

/// The box by which terms are accepted, where a program has any.
pub(super) fn terms_box(terms_url: Option<&str>) -> Html {
    let Some(url) = terms_url else { return Html::new() };
    html! {
        "<label class=\"tick\"><input type=\"checkbox\" name=\"terms\" value=\"on\" required><span>I accept the \
         <a href=\"" (url) "\" rel=\"noopener noreferrer\" target=\"_blank\">terms of the program</a></span></label>"
    }
}

/// What a form did, by the word in the address.
fn success_text(query: &FormFields) -> Option<&'static str> {
    Some(match query.get("done") {
        "accepted" => "Welcome: you are a partner now.",
        "link-added" => "The link was added.",
        "link-changed" => "The link was changed.",
        "payout-asked" => {
            "Almost done: we have sent you a mail. Payouts go there once you follow its link, within an hour."
        }
        "profile-changed" => "Your details were changed.",
        "postback-changed" => "The address was changed.",
        "postback-sent" => "A trial was sent; see the log for what came of it.",
        "mail-changed" => "Your wish was noted.",
        _ => return None,
    })
}

/// A page without a session.
pub(super) fn signed_out_page(title: &str, up: &'static str, content: &Html) -> Html {
    let main = html! { "<h1>" (title) "</h1>\n" [content] };
    html_document(title, (up, "narrow"), &Html::new(), (&main, &Html::new()))
}

/// A page that says one thing.
pub(super) fn message_page(up: &'static str, title: &str, text: &str) -> Html {
    signed_out_page(title, up, &html! { "<div class=\"card\"><p>" (text) "</p></div>" })
}

fn html_document(
    title: &str,
    (up, class): (&'static str, &'static str),
    head: &Html,
    (main, foot): (&Html, &Html),
) -> Html {
    let mut page = html! {
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" (title) "</title>\n\
         <link rel=\"stylesheet\" href=\"" (up) "style.css?v=" (style_version()) "\">\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the content</a>\n"
        [head] "<main id=\"main\" class=\"" (class) "\">\n" [main] "</main>\n"
    };
    if !foot.is_empty() {
        push!(page, "<footer>" [foot] "</footer>\n");
    }
    page.raw("</body>\n</html>\n");
    page
}
