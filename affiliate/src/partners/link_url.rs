//! Address of a partner link: a page of the program's website, with the link's token.

use model::affiliate::partner::PartnerLink;
use url::{Url, form_urlencoded};

/// Query parameter that carries the token.
const VIA: &str = "via";

/// Returns a link's address: its destination on the website, with its token. A destination that is invalid since the
/// website was changed falls back to the front page.
pub fn link_url(website_url: &str, link: &PartnerLink) -> String {
    let found = parse_destination(website_url, link.destination_url.as_deref().unwrap_or_default());
    let mut url = match found.or_else(|_| parse_destination(website_url, "")) {
        Ok(url) => url,
        // Cannot happen: the website's URL was validated when it was set.
        Err(_) => return website_url.to_owned(),
    };
    // The destination may have been copied with another partner's token.
    let is_other_parameter =
        |pair: &&str| form_urlencoded::parse(pair.as_bytes()).next().is_none_or(|(name, _)| name != VIA);
    let other_parameters: Vec<&str> =
        url.query().into_iter().flat_map(|query| query.split('&')).filter(is_other_parameter).collect();
    let other_parameters = Some(other_parameters.join("&")).filter(|other_parameters| !other_parameters.is_empty());
    url.set_query(other_parameters.as_deref());
    url.query_pairs_mut().append_pair(VIA, link.token.as_str());
    url.into()
}

/// Resolves a destination: a path, or a URL on the same site.
///
/// # Errors
/// The reason why it is invalid, worded to follow the field's name.
pub(crate) fn parse_destination(website_url: &str, text: &str) -> Result<Url, String> {
    let website = Url::parse(website_url).map_err(|_| "belongs to a website with an invalid URL".to_owned())?;
    let destination = website.join(text).map_err(|error| format!("is not a path or URL: {error}"))?;
    let site = |url: &Url| url.host_str().map(|host| host.strip_prefix("www.").unwrap_or(host).to_owned());
    let on_site = match (site(&website), site(&destination)) {
        (Some(own_host), Some(requested)) => requested == own_host || requested.ends_with(&format!(".{own_host}")),
        _ => false,
    };
    let is_web = matches!(destination.scheme(), "https" | "http");
    if !on_site || !is_web || !destination.username().is_empty() || destination.password().is_some() {
        return Err(format!("must be a path or an address on {website_url}"));
    }
    Ok(destination)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use model::affiliate::partner::PartnerLinkToken;
    use model::id::{AccountId, PartnerId, PartnerLinkId};

    fn link(destination: Option<&str>) -> PartnerLink {
        PartnerLink {
            id: PartnerLinkId::new(Timestamp::UNIX_EPOCH, 1),
            account: AccountId::new(Timestamp::UNIX_EPOCH, 1),
            partner: PartnerId::new(Timestamp::UNIX_EPOCH, 1),
            token: PartnerLinkToken::parse("ada").unwrap(),
            destination_url: destination.map(str::to_owned),
            label: None,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn links_carry_their_token_to_the_website() {
        let url_to = |to| link_url("https://shop.example", &link(to));
        assert_eq!(url_to(None), "https://shop.example/?via=ada");
        assert_eq!(url_to(Some("/pricing?plan=pro#top")), "https://shop.example/pricing?plan=pro&via=ada#top");
        assert_eq!(url_to(Some("https://www.shop.example/x")), "https://www.shop.example/x?via=ada");
        assert_eq!(
            url_to(Some("/x?via=bob&a=%20b&%76ia=eve#top")),
            "https://shop.example/x?a=%20b&via=ada#top",
            "a destination with another partner's token"
        );
        assert_eq!(url_to(Some("/x?via=bob")), "https://shop.example/x?via=ada");
        assert_eq!(url_to(Some("https://evil.example/x")), "https://shop.example/?via=ada", "the website was changed");
    }

    #[test]
    fn links_to_other_sites_are_rejected() {
        for destination in [
            "https://evil.example/",
            "//evil.example/x",
            "javascript:alert(1)",
            "https://shop.example@evil.example/",
            "https://ada:x@shop.example/",
            "https://notshop.example/",
            "\\\\evil.example\\x",
        ] {
            assert!(parse_destination("https://shop.example", destination).is_err(), "{destination}");
        }
        for allowed in ["", "/a/b", "a", "?q=1", "https://blog.shop.example/x", "http://shop.example/"] {
            assert!(parse_destination("https://shop.example", allowed).is_ok(), "{allowed}");
        }
    }
}
