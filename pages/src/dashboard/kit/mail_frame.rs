//! The HTML of a mail in a sandboxed frame. Pictures of other hosts are loaded only after a click, because loading one
//! tells its host that the mail was read.

use hypertext::{Buffer, prelude::*};

use crate::dashboard::context::Context;

/// The query field that asks for remote pictures.
pub const REMOTE: &str = "pictures";

/// A frame of a page that answers [`View::Foreign`](crate::dashboard::table::View::Foreign).
#[derive(Clone, Copy)]
pub struct MailFrame<'c> {
    pub context: &'c Context<'c>,
    /// Path of the foreign HTML.
    pub path: &'c str,
    /// Whether the HTML names files of other hosts.
    pub has_remote: bool,
}

impl<'c> MailFrame<'c> {
    pub fn new(context: &'c Context<'c>, path: &'c str, html: &str) -> Self {
        Self { context, path, has_remote: has_remote(html) }
    }
}

/// Whether HTML can load files of other hosts. Errs to yes: the answer only decides whether the button is shown.
fn has_remote(html: &str) -> bool {
    let html = html.to_ascii_lowercase();
    ["src=", "srcset=", "background=", "url(", "<link", "@import"].iter().any(|mark| html.contains(mark))
        && ["http:", "https:", "//"].iter().any(|mark| html.contains(mark))
}

/// The HTML of a mail as the frame shows it: links open in a window of their own.
pub fn framed_html(html: &str) -> String {
    const BASE: &str = "<base target=\"_blank\">";
    // A document type stays first: without it, browsers lay out as they did in 1998.
    let trimmed = html.trim_start();
    let doctype_end = trimmed
        .get(..9)
        .filter(|start| start.eq_ignore_ascii_case("<!doctype"))
        .and_then(|_| trimmed.find('>'))
        .map_or(0, |at| at + 1);
    let (doctype, rest) = trimmed.split_at(doctype_end);
    format!("{doctype}{BASE}{rest}")
}

impl Renderable for MailFrame<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let request = self.context.request;
        let is_remote = request.query.get(REMOTE) == "show";
        let source = if is_remote { format!("{}?{REMOTE}=show", self.path) } else { self.path.to_owned() };
        maud! {
            div.mail-frame {
                @if self.has_remote {
                    p.small.soft {
                        @if is_remote {
                            "Remote images are shown. " a href=(request.target_with(REMOTE, "")) { "Hide them" }
                        } @else {
                            "Remote images are not loaded: their hosts would learn that you have opened this email. "
                            a href=(request.target_with(REMOTE, "show")) { "Show images" }
                        }
                    }
                }
                iframe sandbox="allow-popups allow-popups-to-escape-sandbox" src=(source) title="The email as HTML"
                    loading="lazy" referrerpolicy="no-referrer" {}
            }
        }
        .render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_files_are_found() {
        assert!(has_remote("<IMG SRC=\"HTTPS://example.net/a.png\">") && has_remote("<td background='//x/y'>"));
        assert_eq!(framed_html(" <!DOCTYPE html><p>x"), "<!DOCTYPE html><base target=\"_blank\"><p>x");
        assert_eq!(framed_html("<p>é"), "<base target=\"_blank\"><p>é");
        assert!(!has_remote("<a href=\"https://example.net\">x</a>") && !has_remote("<img src=\"data:image/png,\">"));
    }
}
