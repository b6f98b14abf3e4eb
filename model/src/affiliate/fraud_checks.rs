//! Fraud flags of visits and people: pure rules over URLs and email addresses.
//!
//! A flag is a reason for a review, not a proof of fraud. Commissions of a flagged referral are frozen until the owner
//! decides.

use message::address::{Address, DomainName};
use message::domain_name::organizational_domain;

use super::partner::Partner;
use super::web_origin::host_of;

/// Query parameters that advertising networks add to landing page URLs.
const PAID_CLICKS: &[&str] = &[
    "gclid",
    "gbraid",
    "wbraid",
    "dclid",
    "fbclid",
    "msclkid",
    "ttclid",
    "twclid",
    "li_fat_id",
    "yclid",
    "epik",
    "scclid",
    "rdt_cid",
    "irclickid",
];

/// Free email providers, sorted. Two people with addresses there are not related.
const FREE_MAIL: &[&str] = &[
    "126.com",
    "163.com",
    "aol.com",
    "att.net",
    "bk.ru",
    "btinternet.com",
    "comcast.net",
    "duck.com",
    "fastmail.com",
    "fastmail.fm",
    "free.fr",
    "freenet.de",
    "gmail.com",
    "gmx.at",
    "gmx.ch",
    "gmx.com",
    "gmx.de",
    "gmx.net",
    "googlemail.com",
    "hey.com",
    "hotmail.co.uk",
    "hotmail.com",
    "hotmail.de",
    "hotmail.es",
    "hotmail.fr",
    "hotmail.it",
    "icloud.com",
    "inbox.ru",
    "laposte.net",
    "libero.it",
    "list.ru",
    "live.co.uk",
    "live.com",
    "live.fr",
    "mac.com",
    "mail.com",
    "mail.ru",
    "me.com",
    "msn.com",
    "naver.com",
    "o2.pl",
    "onet.pl",
    "orange.fr",
    "outlook.com",
    "outlook.de",
    "outlook.fr",
    "pm.me",
    "posteo.de",
    "proton.me",
    "protonmail.com",
    "qq.com",
    "rambler.ru",
    "rediffmail.com",
    "rocketmail.com",
    "seznam.cz",
    "sfr.fr",
    "sina.com",
    "t-online.de",
    "tuta.com",
    "tutanota.com",
    "verizon.net",
    "wanadoo.fr",
    "web.de",
    "wp.pl",
    "yahoo.ca",
    "yahoo.co.in",
    "yahoo.co.jp",
    "yahoo.co.uk",
    "yahoo.com",
    "yahoo.com.br",
    "yahoo.de",
    "yahoo.es",
    "yahoo.fr",
    "yahoo.it",
    "yandex.com",
    "yandex.ru",
    "ymail.com",
    "zoho.com",
];

/// Providers of disposable addresses, sorted.
const DISPOSABLE: &[&str] = &[
    "0-mail.com",
    "10minutemail.com",
    "10minutemail.net",
    "1secmail.com",
    "20minutemail.com",
    "33mail.com",
    "anonaddy.me",
    "anonbox.net",
    "burnermail.io",
    "byom.de",
    "discard.email",
    "discardmail.com",
    "dispostable.com",
    "dropmail.me",
    "emailfake.com",
    "emailondeck.com",
    "fakeinbox.com",
    "fakemail.net",
    "getairmail.com",
    "getnada.com",
    "grr.la",
    "guerrillamail.biz",
    "guerrillamail.com",
    "guerrillamail.de",
    "guerrillamail.info",
    "guerrillamail.net",
    "guerrillamail.org",
    "guerrillamailblock.com",
    "harakirimail.com",
    "inboxbear.com",
    "inboxkitten.com",
    "incognitomail.org",
    "jetable.org",
    "linshiyouxiang.net",
    "mail-temp.com",
    "mail.tm",
    "mail7.io",
    "mailcatch.com",
    "maildrop.cc",
    "mailexpire.com",
    "mailforspam.com",
    "mailinator.com",
    "mailinator.net",
    "mailinator2.com",
    "mailnesia.com",
    "mailnull.com",
    "mailpoof.com",
    "mailsac.com",
    "mailtemp.net",
    "meltmail.com",
    "mintemail.com",
    "minuteinbox.com",
    "moakt.com",
    "mohmal.com",
    "mytemp.email",
    "mytrashmail.com",
    "nada.email",
    "nowmymail.com",
    "owlymail.com",
    "pokemail.net",
    "sharklasers.com",
    "smailpro.com",
    "spam4.me",
    "spambog.com",
    "spambox.us",
    "spamex.com",
    "spamgourmet.com",
    "spamhole.com",
    "temp-mail.io",
    "temp-mail.org",
    "tempail.com",
    "tempinbox.com",
    "tempmail.com",
    "tempmail.dev",
    "tempmail.net",
    "tempmail.plus",
    "tempmailo.com",
    "tempr.email",
    "throwam.com",
    "throwawaymail.com",
    "tmail.ws",
    "tmpmail.net",
    "tmpmail.org",
    "trash-mail.com",
    "trashmail.com",
    "trashmail.de",
    "trashmail.me",
    "trashmail.net",
    "trbvm.com",
    "wegwerfmail.de",
    "wegwerfmail.net",
    "wegwerfmail.org",
    "yopmail.com",
    "yopmail.fr",
    "yopmail.net",
    "zetmail.com",
];

fn matches_list(list: &[&str], name: &DomainName) -> bool {
    let name = name.as_str().to_ascii_lowercase();
    list.binary_search(&name.as_str()).is_ok()
}

/// True if the domain offers addresses to the public.
fn is_free(name: &DomainName) -> bool {
    matches_list(FREE_MAIL, name) || matches_list(DISPOSABLE, name)
}

/// True if the URL has the click id of an advertising network.
pub fn is_paid_click(url: &str) -> bool {
    let query = url.split('#').next().unwrap_or_default().split_once('?').map_or("", |(_, query)| query);
    let mut names = query.split('&').filter_map(|pair| pair.split_once('='));
    names.any(|(name, value)| !value.is_empty() && PAID_CLICKS.iter().any(|paid| paid.eq_ignore_ascii_case(name)))
}

/// True if the referrer's host is a banned host or a subdomain of one.
pub fn is_banned_referrer(referrer: &str, banned: &[DomainName]) -> bool {
    let Some(host) = host_of(referrer) else { return false };
    banned.iter().any(|name| {
        let name = name.as_str();
        host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
    })
}

/// True if the address is at a disposable email provider or a subdomain of one.
pub fn is_disposable(person: &Address) -> bool {
    let name = person.domain();
    matches_list(DISPOSABLE, name) || matches_list(DISPOSABLE, &organizational_domain(name))
}

/// True if the person's domain is the domain of the partner's email address or website. Free email providers do not
/// count.
pub fn is_company_address(partner: &Partner, person: &Address) -> bool {
    let name = person.domain();
    if is_free(name) {
        return false;
    }
    let company = organizational_domain(name);
    let is_same_company = |other: &DomainName| !is_free(other) && organizational_domain(other) == company;
    let website = partner.website.as_deref().and_then(host_of).and_then(|host| host.parse::<DomainName>().ok());
    is_same_company(partner.email.domain()) || website.is_some_and(|website| is_same_company(&website))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for list in [FREE_MAIL, DISPOSABLE] {
            assert!(list.is_sorted(), "binary search requires sorted lists");
        }
    }

    #[test]
    fn paid_clicks_are_recognised_by_their_parameters() {
        for (url, paid) in [
            ("https://shop.example/?via=ada&gclid=x", true),
            ("https://shop.example/?FBCLID=x", true),
            ("https://shop.example/?ttclid=1#top", true),
            ("https://shop.example/?gclid=", false),
            ("https://shop.example/#?gclid=x", false),
            ("https://shop.example/gclid=x", false),
            ("", false),
        ] {
            assert_eq!(is_paid_click(url), paid, "{url}");
        }
    }

    #[test]
    fn banned_referrers_are_recognised() {
        let banned = ["coupons.example".parse().unwrap()];
        for (referrer, is_banned) in [
            ("https://coupons.example/shop", true),
            ("https://www.coupons.example", true),
            ("https://notcoupons.example/", false),
            ("https://coupons.example.org/", false),
            ("", false),
        ] {
            assert_eq!(is_banned_referrer(referrer, &banned), is_banned, "{referrer}");
        }
    }

    #[test]
    fn disposable_addresses_are_recognised() {
        let is_disposable_text = |address: &str| is_disposable(&address.parse().unwrap());
        assert!(
            is_disposable_text("x@mailinator.com")
                && is_disposable_text("x@sub.Mailinator.com")
                && is_disposable_text("x@yopmail.fr")
        );
        assert!(!is_disposable_text("x@example.com") && !is_disposable_text("x@gmail.com"));
    }
}
