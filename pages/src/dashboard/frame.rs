//! The frame of a page: head, navigation, title, notices, "same as" lines.

use html::document::{Head, PageStyle};
use hypertext::{Buffer, prelude::*};

use super::backend::Failure;
use super::context::{Context, raw};
use super::form::plain;
use super::identity_proof::proof_field;
use super::kit::badge::Tone;
use super::kit::notice::{self, Notice};
use super::kit::same_as::SameAs;
use super::page::{Page, render};
use super::router;
use super::screens::assets;
use super::table;
use crate::display_text::display_text;
use crate::layout::ICON;

struct NavigationGroup {
    title: &'static str,
    /// Path below `/dashboard`, and title.
    pages: &'static [(&'static str, &'static str)],
}

/// The navigation. A page that the role may not see is left out.
const NAVIGATION: &[NavigationGroup] = &[
    NavigationGroup {
        title: "",
        pages: &[("", "Start"), ("/emails", "Emails"), ("/received", "Received"), ("/metrics", "Metrics")],
    },
    NavigationGroup {
        title: "Content",
        pages: &[("/templates", "Templates"), ("/automations", "Automations"), ("/suppressions", "Suppressions")],
    },
    NavigationGroup {
        title: "Product",
        pages: &[
            ("/events", "Events"),
            ("/people", "People"),
            ("/funnels", "Funnels"),
            ("/visits", "Visits"),
            ("/conversions", "Conversions"),
        ],
    },
    NavigationGroup {
        title: "Affiliate",
        pages: &[
            ("/affiliate", "Program"),
            ("/affiliate/partners", "Partners"),
            ("/affiliate/campaigns", "Campaigns"),
            ("/affiliate/referrals", "Referrals"),
            ("/affiliate/commissions", "Commissions"),
            ("/affiliate/payouts", "Payouts"),
        ],
    },
    NavigationGroup {
        title: "Build",
        pages: &[
            ("/domains", "Domains"),
            ("/api-keys", "API keys"),
            ("/smtp-credentials", "SMTP"),
            ("/webhooks", "Webhooks"),
            ("/connected-apps", "Connected apps"),
            ("/logs", "Request log"),
        ],
    },
    NavigationGroup {
        title: "Account",
        pages: &[
            ("/team", "Team"),
            ("/approvals", "Approvals"),
            ("/audit-log", "Audit log"),
            ("/billing", "Plan"),
            ("/security", "Your sign-in"),
        ],
    },
];

pub struct Frame<'f> {
    pub context: &'f Context<'f>,
    pub page: &'f Page,
}

impl Frame<'_> {
    /// Renders the page to HTML. Characters that make a text look like another one are replaced.
    pub fn render(&self) -> String {
        let html = render(self);
        display_text(&html).into_owned()
    }

    fn is_current(&self, path: &str) -> bool {
        let current = self.context.request.path.strip_prefix(super::PATH).unwrap_or_default();
        let best = NAVIGATION.iter().flat_map(|group| group.pages).map(|(path, _)| *path).filter(|path| {
            current
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || (!path.is_empty() && rest.starts_with('/')))
        });
        best.max_by_key(|path| path.len()) == Some(path)
    }
}

impl Renderable for Frame<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (page, context) = (self.page, self.context);
        let (style, script) = assets::paths();
        let title = format!("{} · postrider", page.title);
        maud! {
            !DOCTYPE
            html lang="en" {
                head {
                    (Head { title: &title, style: PageStyle::File(style), icon: Some(ICON), is_indexed: false })
                    script src=(script) defer {}
                }
                body.dashboard.signed-out[context.viewer.is_none()] {
                    a.skip href="#content" { "Skip to content" }
                    @if context.viewer.is_some() { (Header(self)) (Navigation(self)) }
                    @if context.viewer.is_none() {
                        header.signed-out-head { a.brand href="/dashboard" { span.mark aria-hidden="true" {} "postrider" } }
                    }
                    main #content tabindex="-1" data-live=[page.live.then_some("/api/webhook-events")] {
                        (title_bar(self))
                        @if let Some(text) = notice::done_text(context.query().get("done")).filter(|_| !context.request.is_post) {
                            (Notice { tone: Tone::Good, text })
                        }
                        @if let Some(refused) = context.stray_failure() {
                            div.notice.bad role="alert" { p { (plain(&refused.message)) } }
                            @if proof_field(refused).is_some() { (router::confirm_form().within(context)) }
                        }
                        (raw(&page.body))
                        @if !page.same_as.is_empty() {
                            (SameAs { calls: &page.same_as, base_url: context.backend.base_url() })
                        }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}

struct Header<'f>(&'f Frame<'f>);

impl Renderable for Header<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let context = self.0.context;
        let Some(viewer) = context.viewer else { return };
        maud! {
            header.top {
                input #menu type="checkbox" aria-label="Show the navigation";
                a.brand href="/dashboard" { span.mark aria-hidden="true" {} "postrider" }
                button.palette type="button" data-palette="" hidden { "Search or go to… " kbd { "Ctrl K" } }
                div.account {
                    a.docs href="/docs" { "Docs" }
                    details.menu-box {
                        summary { span.email { (viewer.email) } }
                        div.menu-content {
                            p { (viewer.email) " · " (viewer.role) }
                            p { a href="/dashboard/security" { "Your sign-in" } }
                            form method="post" action="/dashboard/security" {
                                input type="hidden" name="csrf" value=(viewer.csrf);
                                input type="hidden" name="form" value="sign-out";
                                button.button type="submit" { "Sign out" }
                            }
                        }
                    }
                }
                label.menu for="menu" aria-hidden="true" { "Menu" }
            }
        }
        .render_to(buffer);
    }
}

struct Navigation<'f>(&'f Frame<'f>);

impl Renderable for Navigation<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let backend = self.0.context.backend;
        let is_visible = |path: &str| {
            let found = table::find(path).filter(|(_, parameters)| parameters.is_empty());
            found.is_some_and(|(row, _)| row.reads.iter().all(|operation| backend.allows(operation)))
        };
        maud! {
            nav.sidebar aria-label="Dashboard" {
                @for group in NAVIGATION {
                    @if group.pages.iter().any(|(path, _)| is_visible(path)) {
                        @if !group.title.is_empty() { p.group { (group.title) } }
                        ul {
                            @for (path, title) in group.pages.iter().filter(|(path, _)| is_visible(path)) {
                                li {
                                    a href={ (super::PATH) (path) }
                                        aria-current=[self.0.is_current(path).then_some("page")] { (title) }
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

fn title_bar(frame: &Frame<'_>) -> impl Renderable {
    let page = frame.page;
    maud! {
        div.title {
            @if !page.trail.is_empty() {
                nav.trail aria-label="Above this page" {
                    ol { @for (path, title) in &page.trail { li { a href=(path) { (title) } } } }
                }
            }
            div.title-row {
                div.title-text {
                    h1 { (page.title) }
                    @if let Some(lead) = &page.lead { p.lead { (lead) } }
                }
                @if !page.actions.is_empty() { div.actions { (raw(&page.actions)) } }
            }
        }
    }
}

/// A page that says why there is no other.
pub fn failure_page(failure: &Failure) -> Page {
    let title = match failure.status {
        403 => "Not allowed",
        404 => "Not found",
        429 => "Too many requests",
        503 => "Not available at the moment",
        _ => "Something went wrong",
    };
    let body = maud! {
        div.empty {
            p { (failure.message) }
            @if let Some(id) = &failure.request_id { p { "Request " code { (id) } } }
            p { a.button href="/dashboard" { "Go to the start page" } }
        }
    };
    Page::new(title, body)
}
