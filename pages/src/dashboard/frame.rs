//! The frame of a page: head, navigation, title, notices, "same as" lines.

use html::document::{Head, PageStyle};
use hypertext::prelude::*;

use super::backend::Failure;
use super::context::{Context, raw};
use super::form::plain;
use super::identity_proof::proof_field;
use super::kit::notice::{self, Notice};
use super::kit::same_as::same_as;
use super::page::{Page, render};
use super::router;
use super::screens::assets::ASSETS;
use super::table;
use super::viewer::Viewer;
use crate::display_text::display_text;
use crate::layout::ICON;

/// Groups of pages with a title: each page's path below that of the site, and its title.
pub type NavigationGroups = &'static [(&'static str, &'static [(&'static str, &'static str)])];

/// The navigation. A page that the role may not see is left out.
const NAVIGATION: NavigationGroups = &[
    ("", &[("", "Start"), ("/emails", "Emails"), ("/received", "Received"), ("/metrics", "Metrics")]),
    ("Content", &[("/templates", "Templates"), ("/automations", "Automations"), ("/suppressions", "Suppressions")]),
    (
        "Product",
        &[
            ("/events", "Events"),
            ("/people", "People"),
            ("/funnels", "Funnels"),
            ("/visits", "Visits"),
            ("/conversions", "Conversions"),
        ],
    ),
    (
        "Affiliate",
        &[
            ("/affiliate", "Program"),
            ("/affiliate/partners", "Partners"),
            ("/affiliate/campaigns", "Campaigns"),
            ("/affiliate/referrals", "Referrals"),
            ("/affiliate/commissions", "Commissions"),
            ("/affiliate/payouts", "Payouts"),
        ],
    ),
    (
        "Build",
        &[
            ("/domains", "Domains"),
            ("/api-keys", "API keys"),
            ("/smtp-credentials", "SMTP"),
            ("/webhooks", "Webhooks"),
            ("/connected-apps", "Connected apps"),
            ("/logs", "Request log"),
        ],
    ),
    (
        "Account",
        &[
            ("/team", "Team"),
            ("/approvals", "Approvals"),
            ("/audit-log", "Audit log"),
            ("/billing", "Plan"),
            ("/security", "Your sign-in"),
        ],
    ),
];

/// Renders a page in its frame. Characters that make a text look like another one are replaced.
pub fn render_page(context: &Context<'_>, page: &Page) -> String {
    let chrome = maud! {
        @if let Some(viewer) = context.viewer {
            (header(viewer))
            (navigation(context))
        } @else {
            header.signed-out-head { a.brand href="/dashboard" { span.mark aria-hidden="true" {} "postrider" } }
        }
    };
    let done = context.query().get("done");
    let main = maud! {
        main #content tabindex="-1" data-live=[page.live.then_some("/api/webhook-events")]
            data-location=[page.location.as_deref()] {
            (title_bar(page))
            @if let Some(text) = notice::done_text(done).filter(|_| !context.request.is_post) {
                (Notice { tone: notice::done_tone(done), text })
            }
            @if let Some(refused) = context.stray_failure() {
                div.notice.bad role="alert" { p { (plain(&refused.message)) } }
                @if proof_field(refused).is_some() { (router::confirm_form().within(context)) }
            }
            (raw(&page.body))
            @if !page.same_as.is_empty() {
                (same_as(&page.same_as, context.backend.base_url()))
            }
        }
    };
    let title = format!("{} · postrider", page.title);
    display_text(&render(document(&title, context, ASSETS.paths(), chrome, main))).into_owned()
}

/// The document of a page: its head, what surrounds the content, and the content. `assets`: the paths of style sheet and
/// script.
pub fn document(
    title: &str,
    context: &Context<'_>,
    assets: (&'static str, &'static str),
    chrome: impl Renderable,
    main: impl Renderable,
) -> impl Renderable {
    let (style, script) = assets;
    maud! {
        !DOCTYPE
        html lang="en" {
            head {
                (Head { title, style: PageStyle::File(style), icon: Some(ICON), is_indexed: false })
                script src=(script) defer {}
            }
            body.dashboard.signed-out[context.viewer.is_none()] data-user=[context.viewer.map(|viewer| &viewer.user_id)] {
                a.skip href="#content" { "Skip to content" }
                (chrome)
                (main)
            }
        }
    }
}

fn header(viewer: &Viewer) -> impl Renderable {
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
}

fn navigation(context: &Context<'_>) -> impl Renderable {
    let is_visible = |path: &str| {
        let found = table::find(path).filter(|(_, parameters)| parameters.is_empty());
        found.is_some_and(|(row, _)| row.reads.iter().all(|operation| context.allows(operation)))
    };
    sidebar("Dashboard", super::PATH, NAVIGATION, &context.request.path, is_visible)
}

/// The navigation of a site, whose pages are below `site`.
pub fn sidebar(
    label: &'static str,
    site: &'static str,
    groups: NavigationGroups,
    current: &str,
    is_visible: impl Fn(&str) -> bool,
) -> impl Renderable {
    let current = current.strip_prefix(site).unwrap_or_default();
    let is_above = |path: &&str| {
        let rest = current.strip_prefix(*path);
        rest.is_some_and(|rest| rest.is_empty() || (!path.is_empty() && rest.starts_with('/')))
    };
    let paths = groups.iter().flat_map(|(_, pages)| *pages).map(|(path, _)| *path);
    let shown = paths.filter(is_above).max_by_key(|path| path.len());
    maud! {
        nav.sidebar aria-label=(label) {
            @for (title, pages) in groups {
                @if pages.iter().any(|(path, _)| is_visible(path)) {
                    @if !title.is_empty() { p.group { (title) } }
                    ul {
                        @for (path, title) in pages.iter().filter(|(path, _)| is_visible(path)) {
                            li { a href={ (site) (path) } aria-current=[(shown == Some(*path)).then_some("page")] { (title) } }
                        }
                    }
                }
            }
        }
    }
}

/// The way to the pages above a page.
pub fn trail(page: &Page) -> impl Renderable {
    maud! {
        @if !page.trail.is_empty() {
            nav.trail aria-label="Above this page" {
                ol { @for (path, title) in &page.trail { li { a href=(path) { (title) } } } }
            }
        }
    }
}

fn title_bar(page: &Page) -> impl Renderable {
    maud! {
        div.title {
            (trail(page))
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
