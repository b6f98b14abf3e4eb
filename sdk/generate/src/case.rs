//! Spellings of names: `snake_case`, `camelCase`, `PascalCase`, `kebab-case`, `SCREAMING_CASE` and Go's.

/// Words that Go writes in capitals.
const INITIALISMS: &[&str] = &[
    "api", "css", "csv", "dkim", "dmarc", "dns", "html", "http", "https", "id", "ip", "json", "mx", "smtp", "spf",
    "tls", "ttl", "uri", "url", "utm", "uuid",
];

/// The words of a name in lower case, whatever its spelling.
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut begins_word = true;
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() {
            begins_word = true;
            continue;
        }
        if letter.is_uppercase() && was_lower {
            begins_word = true;
        }
        let lower = letter.to_lowercase();
        match words.last_mut() {
            Some(word) if !begins_word => word.extend(lower),
            _ => words.push(lower.collect()),
        }
        begins_word = false;
        was_lower = letter.is_lowercase() || letter.is_ascii_digit();
    }
    words
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub fn snake(name: &str) -> String {
    words(name).join("_")
}

pub fn kebab(name: &str) -> String {
    words(name).join("-")
}

pub fn screaming(name: &str) -> String {
    snake(name).to_uppercase()
}

pub fn pascal(name: &str) -> String {
    words(name).iter().map(|word| capitalized(word)).collect()
}

pub fn camel(name: &str) -> String {
    let mut words = words(name).into_iter();
    let first = words.next().unwrap_or_default();
    first + &words.map(|word| capitalized(&word)).collect::<String>()
}

/// An exported name of Go: `domain_id` becomes `DomainID`, `allowed_ips` `AllowedIPs`.
pub fn go_name(name: &str) -> String {
    words(name).iter().map(|word| go_word(word)).collect()
}

fn go_word(word: &str) -> String {
    if INITIALISMS.contains(&word) {
        return word.to_uppercase();
    }
    match word.strip_suffix('s') {
        Some(singular) if INITIALISMS.contains(&singular) => singular.to_uppercase() + "s",
        _ => capitalized(word),
    }
}

/// The singular of an English plural, for the type of an array's items.
pub fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y");
    }
    for ending in ["sses", "xes", "ches", "shes"] {
        if name.ends_with(ending) {
            return name[..name.len() - 2].to_owned();
        }
    }
    match name.strip_suffix('s') {
        Some(stem) if !stem.ends_with(['s', 'u']) => stem.to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_respelled() {
        assert_eq!(words("dnsCredentials.save"), ["dns", "credentials", "save"]);
        assert_eq!(snake("rollBack"), "roll_back");
        assert_eq!(kebab("receivedEmails"), "received-emails");
        assert_eq!(screaming("email.delivered"), "EMAIL_DELIVERED");
        assert_eq!(pascal("send_email"), "SendEmail");
        assert_eq!(camel("created_at"), "createdAt");
        assert_eq!(go_name("domain_id"), "DomainID");
        assert_eq!(go_name("allowed_ips"), "AllowedIPs");
        assert_eq!(go_name("dns"), "DNS");
        assert_eq!(singular("categories"), "category");
        assert_eq!(singular("addresses"), "address");
        assert_eq!(singular("status"), "status");
    }
}
