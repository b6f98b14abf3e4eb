//! Open and click tracking: an email's HTML gets a pixel, and its links lead through us.
//!
//! ```text
//! <a href="https://shop/?a=1&amp;b=2"> ─► <a href="https://track.example.com/c/{token}">
//! … </body>                            ─► … <img src="https://track.example.com/o/{token}" …></body>
//! ```
//!
//! A token is signed and says whose it is: account, email, recipient (when the email has but one: all its
//! recipients share one body), and, for a link, its number and where it leads. So nothing is stored for a
//! link, and nobody can make us lead anywhere (no open redirect).
//!
//! Left alone: what is not `http` or `https` (`mailto:`, `tel:`, anchors, template tokens), our own pages
//! (the unsubscribe link), links that the author marked ([`UNTRACKED`]), links in comments (conditional
//! ones for Outlook too), scripts and style sheets, links longer than [`URL_BYTES_MAX`], links after the
//! first [`LINKS_MAX`], and plain text. Every byte that is not an address that is replaced stays as it is,
//! however broken the markup (`markup` finds tags, it does not parse). Who opened is judged by [`machine`],
//! and [`tally`] says what of it is worth a note.
//!
//! Cost: one pass, and one HMAC a link: some 0.5 ms for a newsletter of 100 KB with 100 links, 0.02 ms for a note
//! of 2 KB with three (`cargo bench -p mail --bench tracking`, on a busy machine).

mod markup;
mod reference;

pub mod location;
pub mod machine;
pub mod tally;

use std::ops::Range;

use crate::address::DomainName;
use crate::domain::DeliverySettings;
use crate::id::{AccountId, EmailId};
use crate::link::{TokenKey, TokenPurpose};

use self::markup::{TagKind, TagScanner};

/// The longest address that is tracked. The link that replaces it stays under 2,083 characters, which is
/// what the oldest clients take.
pub const URL_BYTES_MAX: usize = 1_400;
/// Links of an email that are tracked.
pub const LINKS_MAX: u16 = 1_000;
/// Attributes by which an author says "not this link": ours, and those of the services that customers come
/// from, so that their templates mean the same here.
pub const OPT_OUT_ATTRIBUTES: [(&str, &str); 4] =
    [("data-track", "off"), ("clicktracking", "off"), ("data-pm-no-track", ""), ("disable-tracking", "true")];

/// Pages of our own, which are never tracked: unsubscribe, clicks and opens.
const OWN_PAGES: [&str; 3] = ["/u/", "/c/", "/o/"];
/// The pixel before its address …
const PIXEL_START: &str = "<img src=\"";
/// … and after it. Not `display:none`: some clients do not load what they do not show.
const PIXEL_END: &str = "\" width=\"1\" height=\"1\" alt=\"\" style=\"border:0;width:1px;height:1px\">";
/// So many look-alikes of the pixel are looked at behind it.
const LOOK_ALIKES_MAX: usize = 8;
/// In place of a recipient, in a token of an email that has several.
const NO_RECIPIENT: u16 = u16::MAX;
/// What a token begins with: account, email, recipient.
const TARGET_BYTES: usize = 16 + 16 + 2;

/// Whose an open or a click is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrackingTarget {
    /// The account.
    pub account: AccountId,
    /// The email.
    pub email: EmailId,
    /// The recipient's place in the email; none when nobody can tell, because it has several.
    pub recipient: Option<u16>,
}

impl TrackingTarget {
    /// What the links of an email with so many recipients can name.
    #[must_use]
    pub fn new(account: AccountId, email: EmailId, recipients: usize) -> Self {
        Self { account, email, recipient: (recipients == 1).then_some(0) }
    }

    fn to_bytes(self) -> [u8; TARGET_BYTES] {
        let mut bytes = [0; TARGET_BYTES];
        let recipient = self.recipient.unwrap_or(NO_RECIPIENT).to_be_bytes();
        let parts = self.account.to_bytes().into_iter().chain(self.email.to_bytes()).chain(recipient);
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (account, rest) = bytes.split_first_chunk()?;
        let (email, rest) = rest.split_first_chunk()?;
        let (recipient, rest) = rest.split_first_chunk()?;
        let recipient = Some(u16::from_be_bytes(*recipient)).filter(|r| *r != NO_RECIPIENT);
        let (account, email) = (AccountId::from_bytes(*account), EmailId::from_bytes(*email));
        Some((Self { account, email, recipient }, rest))
    }
}

/// A link that leads through us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedLink {
    /// Whose it is.
    pub target: TrackingTarget,
    /// Its place among the email's tracked links, from 0.
    pub link: u16,
    /// Where it leads.
    pub url: String,
}

impl TrackedLink {
    /// The token in its address.
    #[must_use]
    pub fn token(&self, key: &TokenKey) -> String {
        let mut payload = Vec::with_capacity(TARGET_BYTES + 2 + self.url.len());
        payload.extend_from_slice(&self.target.to_bytes());
        payload.extend_from_slice(&self.link.to_be_bytes());
        payload.extend_from_slice(self.url.as_bytes());
        key.sign(TokenPurpose::Click, &payload)
    }

    /// Reads a token; none when it is not ours, or changed.
    #[must_use]
    pub fn read(key: &TokenKey, token: &str) -> Option<Self> {
        let payload = key.verify(TokenPurpose::Click, token)?;
        let (of, rest) = TrackingTarget::from_bytes(&payload)?;
        let (link, url) = rest.split_first_chunk()?;
        let url = String::from_utf8(url.to_vec()).ok()?;
        Some(Self { target: of, link: u16::from_be_bytes(*link), url })
    }
}

/// The token in the address of a pixel.
#[must_use]
pub fn pixel_token(key: &TokenKey, of: TrackingTarget) -> String {
    key.sign(TokenPurpose::Open, &of.to_bytes())
}

/// Reads the token of a pixel; none when it is not ours, or changed.
#[must_use]
pub fn verify_pixel_token(key: &TokenKey, token: &str) -> Option<TrackingTarget> {
    let payload = key.verify(TokenPurpose::Open, token)?;
    TrackingTarget::from_bytes(&payload).filter(|(_, rest)| rest.is_empty()).map(|(of, _)| of)
}

/// Where tracking links begin: the service's own address, or, when the domain has a tracking host, that
/// host behind the same scheme and port (its CNAME leads to the same listener).
#[must_use]
pub fn base_url(service: &str, tracking_host: Option<&DomainName>) -> String {
    let service = service.trim_end_matches('/');
    let (Some(host), Some((scheme, rest))) = (tracking_host, service.split_once("://")) else {
        return service.to_owned();
    };
    let authority = rest.split('/').next().unwrap_or_default();
    // Of `[::1]:8025` the last colon, not one of the address.
    let port = authority
        .rsplit_once(':')
        .map(|(_, port)| port)
        .filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    match port {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}

/// How the links of an email are made.
#[derive(Debug, Clone, Copy)]
pub struct LinkTracker<'a> {
    /// Signs them.
    pub key: &'a TokenKey,
    /// What they begin with: see [`base`].
    pub base: &'a str,
    /// The service's own address: pages of ours under it are not tracked either.
    pub service: &'a str,
    /// Whose they are.
    pub target: TrackingTarget,
}

impl LinkTracker<'_> {
    fn link_url(&self, link: u16, url: String) -> String {
        let token = TrackedLink { target: self.target, link, url }.token(self.key);
        format!("{}/c/{token}", self.base)
    }

    fn pixel_html(&self) -> String {
        format!("{PIXEL_START}{}/o/{}{PIXEL_END}", self.base, pixel_token(self.key, self.target))
    }

    fn is_own_page(&self, url: &str) -> bool {
        [self.base, self.service]
            .iter()
            .filter_map(|base| url.strip_prefix(base.trim_end_matches('/')))
            .any(|path| OWN_PAGES.iter().any(|page| path.starts_with(page)))
    }

    /// The address in an attribute's value, when it is one to be tracked.
    fn trackable_url(&self, value: &str) -> Option<String> {
        let decoded = reference::decode(value)?;
        // What browsers take out of an address before they read it (WHATWG URL 4.4).
        let url: String =
            decoded.trim_matches(|c: char| c <= ' ').chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
        let fits = url.len() <= URL_BYTES_MAX && !url.chars().any(char::is_control);
        // `{{…}}` is a token that something else fills in, after us.
        let whole = fits && is_web(&url) && !url.contains("{{") && !self.is_own_page(&url);
        whole.then_some(url)
    }
}

/// `http://` or `https://`, and a host.
fn is_web(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    web && rest.starts_with(|c: char| !matches!(c, '/' | '\\' | '?' | '#'))
}

/// The characters of an address that no way of quoting an attribute minds.
fn is_plain(base: &str) -> bool {
    base.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'&' | b'<' | b'>' | b'`' | b'='))
}

/// Puts the pixel into an email's HTML (`opens`) and lets its links lead through us (`clicks`). Every
/// other byte stays.
#[must_use]
pub fn rewrite_html(html: &str, tracking: &LinkTracker<'_>, opens: bool, clicks: bool) -> String {
    if !(opens || clicks) || html.trim().is_empty() || !is_plain(tracking.base) {
        return html.to_owned();
    }
    let mut out = HtmlRewriter { html, out: String::with_capacity(html.len() + html.len() / 2), copied: 0 };
    let mut tags = TagScanner::new(html);
    let (mut links, mut body_end, mut html_end) = (0, None, None);
    while let Some(tag) = tags.next() {
        match tag.kind {
            TagKind::Link if clicks && links < LINKS_MAX => {
                let Some(value) = href_range(html, &tags) else { continue };
                if let Some(url) = html.get(value.clone()).and_then(|value| tracking.trackable_url(value)) {
                    out.replace(value, &tracking.link_url(links, url));
                    links += 1;
                }
            }
            TagKind::Link => {}
            TagKind::BodyEnd => body_end = Some(out.copy_up_to(tag.start)),
            TagKind::HtmlEnd => html_end = Some(out.copy_up_to(tag.start)),
        }
    }
    let end = out.copy_up_to(tags.end());
    out.copy_up_to(html.len());
    if opens {
        out.out.insert_str(body_end.or(html_end).unwrap_or(end), &tracking.pixel_html());
    }
    out.out
}

/// An email's HTML under the settings of its domain: see [`rewrite_html`]. `service` is our own address.
#[must_use]
pub fn rewrite_with_settings(
    html: &str,
    settings: &DeliverySettings,
    service: &str,
    key: &TokenKey,
    of: TrackingTarget,
) -> String {
    let base = base_url(service, settings.tracking_link_host());
    let tracking = LinkTracker { key, base: &base, service, target: of };
    rewrite_html(html, &tracking, settings.open_tracking, settings.click_tracking)
}

/// HTML as it was before it was tracked, whatever its links began with: for showing an email as its author
/// wrote it, and for sending it again, tracked anew. `&` comes back as `&amp;`, quotes as references.
#[must_use]
pub fn restore_html(html: &str, key: &TokenKey) -> String {
    let mut out = HtmlRewriter { html, out: String::with_capacity(html.len()), copied: 0 };
    let mut tags = TagScanner::new(html);
    while let Some(tag) = tags.next() {
        if tag.kind == TagKind::Link
            && let Some(value) = href_range(html, &tags)
            && let Some((_, token)) = html.get(value.clone()).and_then(|value| value.rsplit_once("/c/"))
            && let Some(click) = TrackedLink::read(key, token)
        {
            out.replace(value, &reference::encode(&click.url));
        }
    }
    out.copy_up_to(html.len());
    let mut restored = out.out;
    if let Some(pixel) = find_pixel(&restored, key) {
        restored.replace_range(pixel, "");
    }
    restored
}

/// Where our pixel stands: it is the last, if there are several that look like it.
fn find_pixel(html: &str, key: &TokenKey) -> Option<Range<usize>> {
    html.rmatch_indices(PIXEL_END).take(LOOK_ALIKES_MAX).find_map(|(address_end, _)| {
        let before = html.get(..address_end)?;
        let start = before.rfind(PIXEL_START)?;
        let (_, token) = before.get(start..)?.rsplit_once("/o/")?;
        verify_pixel_token(key, token).map(|_| start..address_end + PIXEL_END.len())
    })
}

/// The inside of a link's address, unless the link is marked. Of two addresses the first counts.
fn href_range(html: &str, tags: &TagScanner<'_>) -> Option<Range<usize>> {
    let text = |range: &Range<usize>| html.get(range.clone()).unwrap_or_default();
    let marked = tags.attributes().iter().any(|attribute| {
        OPT_OUT_ATTRIBUTES.iter().any(|(name, value)| {
            text(&attribute.name).eq_ignore_ascii_case(name)
                && (value.is_empty() || text(&attribute.value).trim().eq_ignore_ascii_case(value))
        })
    });
    let href = tags.attributes().iter().find(|a| text(&a.name).eq_ignore_ascii_case("href"));
    href.filter(|_| !marked).map(|attribute| attribute.value.clone())
}

/// A copy with replacements, from left to right.
struct HtmlRewriter<'a> {
    html: &'a str,
    out: String,
    copied: usize,
}

impl HtmlRewriter<'_> {
    /// Copies up to a place of the original; says where that is in the copy.
    fn copy_up_to(&mut self, at: usize) -> usize {
        self.out.push_str(self.html.get(self.copied..at).unwrap_or_default());
        self.copied = self.copied.max(at);
        self.out.len()
    }

    fn replace(&mut self, range: Range<usize>, by: &str) {
        self.copy_up_to(range.start);
        self.out.push_str(by);
        self.copied = range.end;
    }
}

#[cfg(test)]
mod tests;
