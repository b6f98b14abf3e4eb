//! Open and click tracking: adds a pixel to an email's HTML and redirects its links through this server.
//!
//! ```text
//! <a href="https://shop/?a=1&amp;b=2"> ─► <a href="https://track.example.com/c/{token}">
//! … </body>                            ─► … <img src="https://track.example.com/o/{token}" …></body>
//! ```
//!
//! A signed token names the account, the email, the recipient (if the email has only one; all recipients share one
//! body), and, for a link, its number and its URL. So links need no storage, and there is no open redirect.
//!
//! Not tracked:
//!
//! - URLs other than `http` and `https`: `mailto:`, `tel:`, anchors, template placeholders
//! - the server's own pages, such as the unsubscribe link
//! - links that the author marked ([`OPT_OUT_ATTRIBUTES`])
//! - links in comments (including conditional ones for Outlook), scripts and style sheets
//! - URLs longer than [`URL_BYTES_MAX`], and links after the first [`LINKS_MAX`]
//! - plain text
//!
//! All other bytes are unchanged, even in malformed HTML (`html_tags` finds tags without parsing). [`bot_detection`]
//! distinguishes people from machines, and [`counters`] decides which fetches count.
//!
//! Cost: one pass, and one HMAC per link. A newsletter of 100 KB with 100 links takes about 0.5 ms, a note of 2 KB with
//! three links 0.02 ms (`cargo bench -p model --bench tracking`).

mod character_reference;
mod html_tags;

pub mod bot_detection;
pub mod counters;
pub mod location;

use std::ops::Range;

use message::address::DomainName;

use crate::domain::DeliverySettings;
use crate::id::{AccountId, EmailId};
use crate::signed_token::{TokenKey, TokenPurpose};

use self::html_tags::{TagKind, TagScanner};

/// Maximum length of a tracked URL. The link that replaces it stays under 2,083 characters, the limit of the oldest
/// clients.
pub const URL_BYTES_MAX: usize = 1_400;
/// Maximum number of tracked links of an email.
pub const LINKS_MAX: u16 = 1_000;
/// Attributes that exclude a link from tracking: this server's, and those of other services, so that their customers'
/// templates work unchanged.
pub const OPT_OUT_ATTRIBUTES: [(&str, &str); 4] =
    [("data-track", "off"), ("clicktracking", "off"), ("data-pm-no-track", ""), ("disable-tracking", "true")];

/// Paths of the server's own pages, which are never tracked: unsubscribe, clicks and opens.
const OWN_PAGES: [&str; 3] = ["/u/", "/c/", "/o/"];
/// HTML of the pixel before its URL.
const PIXEL_START: &str = "<img src=\"";
/// HTML of the pixel after its URL. It does not use `display:none`, because some clients do not load hidden images.
const PIXEL_END: &str = "\" width=\"1\" height=\"1\" alt=\"\" style=\"border:0;width:1px;height:1px\">";
/// Maximum number of pixel-like elements that are examined.
const LOOK_ALIKES_MAX: usize = 8;
/// Recipient value in the token of an email with several recipients.
const NO_RECIPIENT: u16 = u16::MAX;
/// Length of the token's fixed part: account, email, recipient.
const TARGET_BYTES: usize = 16 + 16 + 2;

/// The email, and the recipient if known, of an open or click.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrackingTarget {
    pub account: AccountId,
    pub email: EmailId,
    /// Index of the recipient; `None` if the email has several recipients.
    pub recipient: Option<u16>,
}

impl TrackingTarget {
    /// Creates the target for the links of an email with this many recipients.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedLink {
    pub target: TrackingTarget,
    /// Index among the email's tracked links, from 0.
    pub link: u16,
    /// The original URL.
    pub url: String,
}

impl TrackedLink {
    /// The token in the tracking URL.
    pub fn token(&self, key: &TokenKey) -> String {
        let mut payload = Vec::with_capacity(TARGET_BYTES + 2 + self.url.len());
        payload.extend_from_slice(&self.target.to_bytes());
        payload.extend_from_slice(&self.link.to_be_bytes());
        payload.extend_from_slice(self.url.as_bytes());
        key.sign(TokenPurpose::Click, &payload)
    }

    /// Verifies and parses a token; `None` if its signature is invalid.
    pub fn read(key: &TokenKey, token: &str) -> Option<Self> {
        let payload = key.verify(TokenPurpose::Click, token)?;
        let (target, rest) = TrackingTarget::from_bytes(&payload)?;
        let (link, url) = rest.split_first_chunk()?;
        let url = String::from_utf8(url.to_vec()).ok()?;
        Some(Self { target, link: u16::from_be_bytes(*link), url })
    }
}

/// The token in a pixel's URL.
pub fn pixel_token(key: &TokenKey, target: TrackingTarget) -> String {
    key.sign(TokenPurpose::Open, &target.to_bytes())
}

/// Verifies and parses a pixel's token; `None` if its signature is invalid.
pub fn verify_pixel_token(key: &TokenKey, token: &str) -> Option<TrackingTarget> {
    let payload = key.verify(TokenPurpose::Open, token)?;
    TrackingTarget::from_bytes(&payload).filter(|(_, rest)| rest.is_empty()).map(|(target, _)| target)
}

/// Base URL of tracking links: the service's URL, or the domain's tracking host with the same scheme and port, because
/// its CNAME leads to the same listener.
pub fn base_url(service: &str, tracking_host: Option<&DomainName>) -> String {
    let service = service.trim_end_matches('/');
    let (Some(host), Some((scheme, rest))) = (tracking_host, service.split_once("://")) else {
        return service.to_owned();
    };
    let authority = rest.split('/').next().unwrap_or_default();
    // The last colon precedes the port, even in `[::1]:8025`.
    let port = authority
        .rsplit_once(':')
        .map(|(_, port)| port)
        .filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    match port {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}

/// Creates the tracking links of an email.
#[derive(Debug, Clone, Copy)]
pub struct LinkTracker<'a> {
    /// Key that signs the tokens.
    pub key: &'a TokenKey,
    /// Base URL of the links: see [`base_url`].
    pub base: &'a str,
    /// The service's own URL: its pages under it are not tracked.
    pub service: &'a str,
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

    /// The URL in an attribute's value, if it is to be tracked.
    fn trackable_url(&self, value: &str) -> Option<String> {
        let decoded = character_reference::decode(value)?;
        // Browsers remove these characters before they parse a URL (WHATWG URL 4.4).
        let url: String =
            decoded.trim_matches(|c: char| c <= ' ').chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
        let fits = url.len() <= URL_BYTES_MAX && !url.chars().any(char::is_control);
        // `{{…}}` is a placeholder that is filled in later.
        let whole = fits && is_web(&url) && !url.contains("{{") && !self.is_own_page(&url);
        whole.then_some(url)
    }
}

/// Returns whether the URL is `http://` or `https://` with a host.
fn is_web(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    web && rest.starts_with(|c: char| !matches!(c, '/' | '\\' | '?' | '#'))
}

/// Returns whether the URL is safe in an attribute value with any quotes or none.
fn is_plain(base: &str) -> bool {
    base.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'&' | b'<' | b'>' | b'`' | b'='))
}

/// Adds the pixel to an email's HTML (`opens`) and redirects its links (`clicks`). All other bytes are unchanged.
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

/// Applies the domain's tracking settings to an email's HTML: see [`rewrite_html`]. `service` is the service's own URL.
pub fn rewrite_with_settings(
    html: &str,
    settings: &DeliverySettings,
    service: &str,
    key: &TokenKey,
    target: TrackingTarget,
) -> String {
    let base = base_url(service, settings.tracking_link_host());
    let tracking = LinkTracker { key, base: &base, service, target };
    rewrite_html(html, &tracking, settings.open_tracking, settings.click_tracking)
}

/// Removes tracking from HTML, with any base URL: for showing an email as its author wrote it, and for tracking it anew
/// when it is resent. Special characters in URLs are restored as character references, e.g. `&` as `&amp;`.
pub fn restore_html(html: &str, key: &TokenKey) -> String {
    let mut out = HtmlRewriter { html, out: String::with_capacity(html.len()), copied: 0 };
    let mut tags = TagScanner::new(html);
    while let Some(tag) = tags.next() {
        if tag.kind == TagKind::Link
            && let Some(value) = href_range(html, &tags)
            && let Some((_, token)) = html.get(value.clone()).and_then(|value| value.rsplit_once("/c/"))
            && let Some(click) = TrackedLink::read(key, token)
        {
            out.replace(value, &character_reference::encode(&click.url));
        }
    }
    out.copy_up_to(html.len());
    let mut restored = out.out;
    if let Some(pixel) = find_pixel(&restored, key) {
        restored.replace_range(pixel, "");
    }
    restored
}

/// Finds the pixel: the last pixel-like element with a valid token.
fn find_pixel(html: &str, key: &TokenKey) -> Option<Range<usize>> {
    html.rmatch_indices(PIXEL_END).take(LOOK_ALIKES_MAX).find_map(|(address_end, _)| {
        let before = html.get(..address_end)?;
        let start = before.rfind(PIXEL_START)?;
        let (_, token) = before.get(start..)?.rsplit_once("/o/")?;
        verify_pixel_token(key, token).map(|_| start..address_end + PIXEL_END.len())
    })
}

/// The range of a link's URL, unless the link is marked as untracked. If there are two `href`, the first counts.
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

/// Copies HTML with replacements, from left to right.
struct HtmlRewriter<'a> {
    html: &'a str,
    out: String,
    copied: usize,
}

impl HtmlRewriter<'_> {
    /// Copies up to an offset of the original and returns the offset in the copy.
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
