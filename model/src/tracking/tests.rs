//! Tests of rewriting: which links are tracked, which are not, and that nothing else changes.

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

const BASE: &str = "https://track.example.com";
const SERVICE: &str = "https://api.example.net";

fn key() -> TokenKey {
    TokenKey::new([9; 32])
}

fn target_of(recipient: Option<u16>) -> TrackingTarget {
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    TrackingTarget { account: AccountId::new(now, 1), email: EmailId::new(now, 2), recipient }
}

fn rewritten(html: &str, opens: bool, clicks: bool) -> String {
    let key = key();
    let tracking = LinkTracker { key: &key, base: BASE, service: SERVICE, target: target_of(Some(0)) };
    rewrite_html(html, &tracking, opens, clicks)
}

/// Reverses the tracking: replaces every tracked link by `encode` of its URL, and returns the URLs.
fn undone(html: &str, encode: impl Fn(&str) -> String) -> (String, Vec<String>) {
    let start = format!("{BASE}/c/");
    let (mut out, mut urls, mut rest) = (String::new(), Vec::new(), html);
    while let Some((before, after)) = rest.split_once(&start) {
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))).unwrap_or(after.len());
        let click = TrackedLink::read(&key(), &after[..end]).expect("a token of ours");
        assert_eq!(usize::from(click.link), urls.len());
        assert_eq!(click.target, target_of(Some(0)));
        out.push_str(before);
        out.push_str(&encode(&click.url));
        urls.push(click.url);
        rest = &after[end..];
    }
    out.push_str(rest);
    (out, urls)
}

fn links(html: &str) -> Vec<String> {
    undone(&rewritten(html, false, true), str::to_owned).1
}

#[test]
fn every_form_of_a_link_is_tracked() {
    for (html, url) in [
        (r#"<a href="https://a.example/">x</a>"#, "https://a.example/"),
        ("<a href='https://a.example/'>x</a>", "https://a.example/"),
        ("<a href=https://a.example/>x</a>", "https://a.example/"),
        ("<a href=https://a.example/x class=b>x</a>", "https://a.example/x"),
        ("<A CLASS=b HREF = \"HTTPS://a.example/\">x</A>", "HTTPS://a.example/"),
        ("<area shape=rect href=\"http://a.example\">", "http://a.example"),
        ("<a\nhref\n=\n\"https://a.example/\"\n>x</a>", "https://a.example/"),
        ("<a/href=\"https://a.example/\">x</a>", "https://a.example/"),
        ("<a title='>' href=\"https://a.example/?a=1&amp;b=2\">x</a>", "https://a.example/?a=1&b=2"),
        ("<a href=\"https://a.example/?a=1&b=2&copy=3\">x</a>", "https://a.example/?a=1&b=2&copy=3"),
        ("<a href=\" https://a.example/\n  x \">x</a>", "https://a.example/  x"),
        ("<a href=\"https://a.example/?q='\">x</a>", "https://a.example/?q='"),
        ("<a href='https://a.example/?q=\"'>x</a>", "https://a.example/?q=\""),
        ("<a href=\"https://münchen.example/straße\">x</a>", "https://münchen.example/straße"),
        ("<a href=\"https://a.example/#part\">x</a>", "https://a.example/#part"),
        ("<a href=\"https://a.example/\" href=\"https://b.example/\">x</a>", "https://a.example/"),
        ("<![if !mso]><a href=\"https://a.example/\">x</a><![endif]>", "https://a.example/"),
        ("<!--[if !mso]><!--><a href=\"https://a.example/\">x</a><!--<![endif]-->", "https://a.example/"),
        ("1 < 2 <3 </ x> <?x?> </> <a href=\"https://a.example/\">x", "https://a.example/"),
        ("<style>a > b {}</style><a href=\"https://a.example/\">x", "https://a.example/"),
        ("<!--><a href=\"https://a.example/\">x", "https://a.example/"),
        ("<!-- a --!><a href=\"https://a.example/\">x", "https://a.example/"),
        ("<a data-track=on href=\"https://a.example/\">x", "https://a.example/"),
        ("<a =\"x\" href=\"https://a.example/\">x", "https://a.example/"),
        ("<a href=\"https://api.example.net/docs\">x", "https://api.example.net/docs"),
    ] {
        assert_eq!(links(html), [url], "{html}");
    }
}

#[test]
fn other_links_are_unchanged() {
    for html in [
        "<a href=\"mailto:a@b.example?subject=https://x\">x</a>",
        "<a href=tel:+491234>x</a>",
        "<a href=\"#part\">x</a><a href=\"\">x</a><a href>x</a><a>x</a>",
        "<a href=\"/path\">x</a><a href=\"//a.example/\">x</a><a href=\"https:a.example\">x</a>",
        "<a href=\"https://\">x</a><a href=\"https:///a\">x</a><a href=\"https://?a\">x</a>",
        "<a href=\"javascript:location='https://a.example'\">x</a>",
        "<a href=\"{{unsubscribe_url}}\">x</a><a href=\"https://a.example/{{token}}\">x</a>",
        "<a href=\"https://track.example.com/u/abc\">x</a><a href=\"https://api.example.net/u/abc\">x</a>",
        "<a href=\"https://track.example.com/c/abc\">x</a>",
        "<a data-track=\"off\" href=\"https://a.example/\">x</a>",
        "<a href=\"https://a.example/\" DATA-TRACK=off>x</a>",
        "<a href=\"https://a.example/\" clicktracking=off>x</a>",
        "<a href=\"https://a.example/\" data-pm-no-track>x</a>",
        "<!-- <a href=\"https://a.example/\">x</a> -->",
        "<!--[if mso]><v:roundrect href=\"https://a.example/\"><a href=\"https://a.example/\">x</a><![endif]-->",
        "<script>document.write('<a href=\"https://a.example/\">')</script>",
        "<style><a href=\"https://a.example/\"></style><title><a href=\"https://a.example/\"></title>",
        "<textarea><a href=\"https://a.example/\"></textarea><xmp><a href=\"https://a.example/\"></xmp>",
        "<SCRIPT src=x><a href=\"https://a.example/\"></scripts></SCRIPT >",
        "<link href=\"https://a.example/\"><base href=\"https://a.example/\"><img src=\"https://a.example/\">",
        "<abbr href=\"https://a.example/\">x</abbr><a-b href=\"https://a.example/\">",
        "</a href=\"https://a.example/\">",
        "<a hrefs=\"https://a.example/\" data-href=\"https://a.example/\">x</a>",
        "<a href=\"https://a.example/?b&lang;c\">x</a>",
        "<a href=\"https://a.example/\u{7}x\">x</a>",
        "https://a.example/ in text",
        // Unfinished tags are not tags.
        "<a href=\"https://a.example/",
        "<a href=https://a.example/",
        "<!-- <a href=\"https://a.example/\">x</a>",
        "<plaintext><a href=\"https://a.example/\">x</a></plaintext>",
    ] {
        assert_eq!(rewritten(html, false, true), html);
    }
}

#[test]
fn the_pixel_is_inserted_before_the_last_body_end_tag() {
    let key = key();
    let pixel = LinkTracker { key: &key, base: BASE, service: SERVICE, target: target_of(Some(0)) }.pixel_html();
    for (before, after) in [
        ("<html><body>x", "</body></html>"),
        ("<body>a</body>b<body>c", "</BODY >\n</html>\n"),
        ("<html>x", "</html>"),
        ("just text", ""),
        ("<p>x</p><!-- </body> --><script>'</body>'</script>", ""),
        ("x<p>", "<a href=\"https://a.example/"),
        ("x", "</"),
        ("x<", ""),
        ("x", "<!-- never ended </body>"),
        ("x", "<style>never ended </body>"),
    ] {
        let html = format!("{before}{after}");
        assert_eq!(rewritten(&html, true, false), format!("{before}{pixel}{after}"));
    }
    let token = pixel.split_once("/o/").unwrap().1.split_once('"').unwrap().0;
    assert_eq!(verify_pixel_token(&key, token), Some(target_of(Some(0))));
    assert!(TrackedLink::read(&key, token).is_none(), "an open is no click");
    assert_eq!(rewritten(" \n", true, true), " \n");
    assert_eq!(rewritten("<a href=\"https://a.example/\">x</a>", false, false), "<a href=\"https://a.example/\">x</a>");
}

#[test]
fn tracking_can_be_undone() {
    for html in [
        "<body><a href=\"https://a.example/?a=1&amp;b=2\">x</a><a href='tel:1'>y</a></body>",
        "<a href=https://a.example/&#32;&quot;&#39;&lt;x&gt; class=y>x</a>",
        "<a href=\"https://a.example/c/d\">x</a><img src=\"https://a.example/o/x\" width=\"1\">",
    ] {
        let tracked = rewritten(html, true, true);
        assert_ne!(tracked, html);
        assert_eq!(restore_html(&tracked, &key()), html);
        assert_eq!(restore_html(html, &key()), html);
        assert_eq!(restore_html(&tracked, &TokenKey::new([1; 32])), tracked, "another's tracking is not ours");
    }
    let settings = DeliverySettings {
        open_tracking: true,
        tracking_host: Some("track.example.com".parse().unwrap()),
        tracking_seen: Some("track.example.com".parse().unwrap()),
        ..DeliverySettings::default()
    };
    let tracked =
        rewrite_with_settings("<a href=\"https://a.example/\">x", &settings, SERVICE, &key(), target_of(None));
    assert!(tracked.starts_with("<a href=\"https://a.example/\">x<img src=\"https://track.example.com/o/"));
    let unseen = DeliverySettings { tracking_seen: None, ..settings };
    let tracked = rewrite_with_settings("<a href=\"https://a.example/\">x", &unseen, SERVICE, &key(), target_of(None));
    assert!(tracked.contains(&format!("<img src=\"{SERVICE}/o/")), "{tracked}");
    let none = DeliverySettings::default();
    assert_eq!(rewrite_with_settings("<p>x", &none, SERVICE, &key(), target_of(None)), "<p>x");
}

#[test]
fn link_count_and_size_are_bounded() {
    let link = |url: &str| format!("<a href=\"{url}\">x</a>");
    let longest = format!("https://a.example/{}", "x".repeat(URL_BYTES_MAX - 18));
    let tracked = rewritten(&link(&longest), false, true);
    assert_eq!(links(&link(&longest)), std::slice::from_ref(&longest));
    assert!(tracked.len() - link("").len() < 2_083, "{}", tracked.len());
    assert!(links(&link(&format!("{longest}x"))).is_empty());
    let many = link("https://a.example/").repeat(usize::from(LINKS_MAX) + 5);
    assert_eq!(links(&many).len(), usize::from(LINKS_MAX));
}

#[test]
fn tokens_identify_the_recipient() {
    let key = key();
    for recipient in [None, Some(0), Some(999)] {
        let click = TrackedLink { target: target_of(recipient), link: 7, url: "https://a.example/ü".to_owned() };
        assert_eq!(TrackedLink::read(&key, &click.token(&key)), Some(click));
        assert_eq!(verify_pixel_token(&key, &pixel_token(&key, target_of(recipient))), Some(target_of(recipient)));
    }
    let token = pixel_token(&key, target_of(None));
    assert_eq!(verify_pixel_token(&TokenKey::new([1; 32]), &token), None);
    assert_eq!(verify_pixel_token(&key, ""), None);
    // A validly signed token with another payload.
    assert_eq!(verify_pixel_token(&key, &key.sign(TokenPurpose::Open, b"short")), None);
    assert_eq!(TrackedLink::read(&key, &key.sign(TokenPurpose::Click, &target_of(None).to_bytes())), None);
    let (single, several) = (target_of(Some(0)), target_of(None));
    assert_eq!(TrackingTarget::new(single.account, single.email, 1), single);
    assert_eq!(TrackingTarget::new(single.account, single.email, 2), several);
}

#[test]
fn the_tracking_host_replaces_the_default_host() {
    let host: DomainName = "track.example.com".parse().unwrap();
    for (service, with_host) in [
        ("https://api.example.net", "https://track.example.com"),
        ("http://127.0.0.1:8025/", "http://track.example.com:8025"),
        ("http://[::1]:8025", "http://track.example.com:8025"),
        ("http://[::1]", "http://track.example.com"),
        ("https://api.example.net/mail", "https://track.example.com"),
    ] {
        assert_eq!(base_url(service, Some(&host)), with_host);
        assert_eq!(base_url(service, None), service.trim_end_matches('/'));
    }
    // A base URL that would break out of an attribute is not used.
    let key = key();
    let tracking = LinkTracker { key: &key, base: "https://a\"b", service: SERVICE, target: target_of(None) };
    let html = "<a href=\"https://a.example/\">x</a>";
    assert_eq!(rewrite_html(html, &tracking, true, true), html);
}

/// Random fragments of HTML, including malformed ones.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<a href=\"https://a.example/?a=1&b=2\">".to_owned()),
        Just("<a href='http://b.example/é'>".to_owned()),
        Just("<a href=https://c.example/>".to_owned()),
        Just("<a data-track=off href=https://d.example/>".to_owned()),
        Just("</a>".to_owned()),
        Just("<!--".to_owned()),
        Just("-->".to_owned()),
        Just("<![if !mso]>".to_owned()),
        Just("<style>".to_owned()),
        Just("</style>".to_owned()),
        Just("<script ".to_owned()),
        Just("</script>".to_owned()),
        Just("</body>".to_owned()),
        Just("</html>".to_owned()),
        "[ \\t\\n<>/='\"!?&;#a-c\\-\u{0}é]{0,8}",
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn all_other_bytes_are_unchanged(html in soup()) {
        let restored = restore_html(&rewritten(&html, true, true), &key());
        prop_assert_eq!(restored.replace("&amp;", "&"), html.as_str());
        // No URL here has a character reference, so restoring yields the original.
        let (back, _) = undone(&rewritten(&html, false, true), str::to_owned);
        prop_assert_eq!(back, html);
    }

    #[test]
    fn open_tracking_adds_only_the_pixel(html in soup()) {
        let key = key();
        let pixel = LinkTracker { key: &key, base: BASE, service: SERVICE, target: target_of(Some(0)) }.pixel_html();
        let with = rewritten(&html, true, true);
        let expected = usize::from(!html.trim().is_empty());
        prop_assert_eq!(with.matches(&pixel).count(), expected);
        prop_assert_eq!(with.replacen(&pixel, "", 1), rewritten(&html, false, true));
    }

    #[test]
    fn links_keep_their_targets(
        path in "[a-zA-Z0-9/?&=#%;:@.,~+!$*()'\"<>é -]{0,60}",
        quote in 0usize..3,
        decimal in any::<bool>(),
    ) {
        let url = format!("https://a.example/x{path}x");
        let mut value = String::new();
        for c in url.chars() {
            let as_it_is = c.is_ascii_alphanumeric() || matches!(c, '/' | ':' | '.' | '?' | '=');
            match c {
                '&' => value.push_str("&amp;"),
                _ if as_it_is => value.push(c),
                c if decimal => value.push_str(&format!("&#{};", u32::from(c))),
                c => value.push_str(&format!("&#x{:X};", u32::from(c))),
            }
        }
        let html = match quote {
            0 => format!("<p><a class=x href=\"{value}\">x</a>"),
            1 => format!("<p><a class=x href='{value}'>x</a>"),
            _ => format!("<p><a class=x href={value}>x</a>"),
        };
        prop_assert_eq!(links(&html), vec![url]);
    }
}
