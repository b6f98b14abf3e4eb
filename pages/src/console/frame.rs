//! The frame of a page: head, navigation, title, notices, "same as" commands.

use hypertext::prelude::*;

use super::command::command_line;
use super::done::done_text;
use super::router::SIGN_IN;
use super::{ASSETS, PATH};
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::{Context, raw};
use crate::dashboard::frame::{NavigationGroups, document, sidebar, trail};
use crate::dashboard::kit::badge::Tone;
use crate::dashboard::kit::copy_button::copy_button;
use crate::dashboard::kit::notice::Notice;
use crate::dashboard::page::{Fragment, Page, render};
use crate::display_text::display_text;

/// The navigation: path below `/console`, and title.
const NAVIGATION: NavigationGroups = &[
    ("", &[("", "Overview"), ("/doctor", "Checks"), ("/server", "Server")]),
    ("Queue", &[("/queue", "By destination"), ("/mail", "Queued mail"), ("/emails", "All emails")]),
    ("Delivery", &[("/destinations", "Destinations"), ("/pools", "Pools"), ("/replies", "Replies")]),
    ("Customers", &[("/accounts", "Accounts")]),
    ("Console", &[("/commands", "Commands")]),
];

/// Renders a page in its frame. Characters that make a text look like another one are replaced.
pub fn render_page(context: &Context<'_>, page: &Page) -> String {
    let chrome = maud! {
        @if context.viewer.is_some() {
            (console_header(context))
            (sidebar("Console", PATH, NAVIGATION, &context.request.path, |_| true))
        }
    };
    let main = maud! {
        main #content tabindex="-1" data-location=[page.location.as_deref()] {
            (console_title_bar(page))
            @if let Some(text) = done_text(context.query().get("done")) { (Notice { tone: Tone::Good, text }) }
            @if let Some(failure) = context.stray_failure() {
                div.notice.bad role="alert" { p { (failure.message.replace('`', "")) } }
            }
            (raw(&page.body))
            (same_commands(&page.same_as))
        }
    };
    let title = format!("{} · postrider console", page.title);
    display_text(&render(document(&title, context, ASSETS.paths(), chrome, main))).into_owned()
}

fn console_header(context: &Context<'_>) -> impl Renderable {
    maud! {
        header.top {
            input #menu type="checkbox" aria-label="Show the navigation";
            a.brand href=(PATH) { span.mark aria-hidden="true" {} span { "postrider " span.where { "console" } } }
            form.sign-out method="post" action=(SIGN_IN) {
                input type="hidden" name="csrf" value=(context.csrf());
                input type="hidden" name="form" value="sign-out";
                button.button type="submit" { "Sign out" }
            }
            label.menu for="menu" aria-hidden="true" { "Menu" }
        }
    }
}

fn console_title_bar(page: &Page) -> impl Renderable {
    maud! {
        div.title {
            (trail(page))
            div.title-row {
                h1 { (page.title) }
                @if !page.actions.is_empty() { div.actions { (raw(&page.actions)) } }
            }
            @if let Some(lead) = &page.lead { p.lead { (lead) } }
        }
    }
}

/// The commands that show or do the same.
fn same_commands(calls: &[Call]) -> Fragment {
    let lines: Vec<_> = calls.iter().filter_map(command_line).collect();
    if lines.is_empty() {
        return Fragment::default();
    }
    let text = lines.join("\n");
    Fragment::new(maud! {
        details.same-as id="same-as" {
            summary { "Same as" }
            figure.code {
                figcaption { "Command line" (copy_button(&text, "the commands")) }
                pre tabindex="0" role="group" aria-label="Command line" { code { (text) } }
            }
        }
    })
}

/// A page that says why there is no other.
pub fn failure_page(failure: &Failure) -> Page {
    let title = match failure.status {
        404 => "Not found",
        409 => "Busy",
        429 => "Too many attempts",
        _ => "Something went wrong",
    };
    let body = maud! {
        div.empty {
            p { (failure.message.replace('`', "")) }
            p { a.button href=(PATH) { "Go to the overview" } }
        }
    };
    Page::new(title, body)
}
