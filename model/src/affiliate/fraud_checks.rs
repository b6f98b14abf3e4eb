//! Fraud flags of visits and people: pure rules over URLs and email addresses.
//!
//! A flag is a reason for a review, not a proof of fraud. Commissions of a flagged referral are frozen until the owner
//! decides.

use message::address::{Address, DomainName};
use message::domain_name::organizational_domain;
use message::word_list;

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
const FREE_MAIL: &str = include_str!("fraud_checks/free_mail.txt");

/// Providers of disposable addresses, sorted.
const DISPOSABLE: &str = include_str!("fraud_checks/disposable.txt");

fn matches_list(list: &str, name: &DomainName) -> bool {
    word_list::entries(list).any(|known| known == name.as_str())
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
            assert!(word_list::entries(list).is_sorted(), "a sorted list shows what it lacks");
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
