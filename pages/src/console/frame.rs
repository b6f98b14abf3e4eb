//! The frame of a page: head, navigation, title, notices, "same as" commands.

use hypertext::{Buffer, prelude::*};

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

pub struct ConsoleFrame<'f> {
    pub context: &'f Context<'f>,
    pub page: &'f Page,
}

impl ConsoleFrame<'_> {
    /// Renders the page to HTML. Characters that make a text look like another one are replaced.
    pub fn render(&self) -> String {
        let html = render(self);
        display_text(&html).into_owned()
    }
}

impl Renderable for ConsoleFrame<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (page, context) = (self.page, self.context);
        let chrome = maud! {
            @if context.viewer.is_some() {
                (console_header(self))
                (sidebar("Console", PATH, NAVIGATION, &context.request.path, |_| true))
            }
        };
        let main = maud! {
            main #content tabindex="-1" data-location=[page.location.as_deref()] {
                (console_title_bar(self))
                @if let Some(text) = done_text(context.query().get("done")) { (Notice { tone: Tone::Good, text }) }
                @if let Some(failure) = context.stray_failure() {
                    div.notice.bad role="alert" { p { (failure.message.replace('`', "")) } }
                }
                (raw(&page.body))
                (same_commands(&page.same_as))
            }
        };
        document(&format!("{} · postrider console", page.title), context, ASSETS.paths(), chrome, main)
            .render_to(buffer);
    }
}

fn console_header(frame: &ConsoleFrame<'_>) -> impl Renderable {
    let context = frame.context;
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

fn console_title_bar(frame: &ConsoleFrame<'_>) -> impl Renderable {
    let page = frame.page;
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
