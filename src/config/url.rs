//! Check of a URL that the configuration names.

use net::http_client::{UrlRules, UrlTarget};

/// Returns why this is not an absolute http or https URL without user name and password.
pub(super) fn url_fault(url: &str) -> Option<String> {
    let begins_with = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if !begins_with("https://") && !begins_with("http://") {
        return Some("the URL must begin with https:// or http://".to_owned());
    }
    // The operator may name private hosts.
    UrlTarget::parse(url, UrlRules { allow_private: true, allow_http: true }).err()
}

#[cfg(test)]
mod tests {
    use crate::config::from_text;

    fn problems(section: &str) -> Vec<String> {
        let text = format!("hostname = \"mx.example.net\"\n[ops]\nlisten = \"127.0.0.1:1\"\n{section}");
        from_text(&text, []).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_absolute_urls_without_a_login_are_accepted() {
        for (section, key) in [
            ("api", "base_url"),
            ("billing", "upgrade_url"),
            ("sms", "url"),
            ("conversions", "url"),
            ("mx", "rspamd_url"),
        ] {
            for (url, reason) in [
                ("api.example.net", "must begin with https://"),
                ("", "must begin with https://"),
                ("ftp://api.example.net", "must begin with https://"),
                ("javascript:alert(1)", "must begin with https://"),
                ("//api.example.net", "must begin with https://"),
                ("https://", "invalid URL"),
                ("https://api example.net", "invalid URL"),
                ("https://user:secret-word@api.example.net", "must not contain a user name"),
            ] {
                let found = problems(&format!("[{section}]\n{key} = {url:?}\n"));
                assert_eq!(found.len(), 1, "{url}: {found:?}");
                assert!(found[0].starts_with(&format!("line 5: `{key}` in [{section}]: ")), "{found:?}");
                assert!(found[0].contains(reason) && found[0].contains("(example: \"http"), "{url}: {found:?}");
                assert!(!found[0].contains("secret-word"), "{found:?}");
            }
            for url in ["https://api.example.net", "HTTP://127.0.0.1:8025/path"] {
                assert_eq!(problems(&format!("[{section}]\n{key} = {url:?}\n")), Vec::<String>::new());
            }
        }
        assert_eq!(problems("[billing]\nupgrade_url = \"/settings/billing\"\n"), Vec::<String>::new());
        for url in ["https://api.example.net/?x=1", "https://api.example.net/#x"] {
            assert_eq!(problems(&format!("[api]\nbase_url = {url:?}\n")).len(), 1);
        }
    }
}
