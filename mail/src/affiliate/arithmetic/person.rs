//! Whether two addresses are one person's: who recruits, sells and buys at once earns nothing by it.

/// Domains whose mailboxes are the same whatever the dots before the `@`.
const WITHOUT_DOTS: [&str; 2] = ["gmail.com", "googlemail.com"];

/// The form in which people are compared: lower case, without a `+tag`, and at Gmail without dots.
#[must_use]
pub fn normalized(email: &str) -> String {
    let email = email.trim().to_lowercase();
    let Some((local, domain)) = email.rsplit_once('@') else { return email };
    let local = match local.split_once('+') {
        // What begins with a plus has no mailbox before its tag.
        Some((mailbox, _)) if !mailbox.is_empty() => mailbox,
        _ => local,
    };
    if WITHOUT_DOTS.contains(&domain) {
        format!("{}@gmail.com", local.replace('.', ""))
    } else {
        format!("{local}@{domain}")
    }
}

/// Whether two addresses are one person's.
#[must_use]
pub fn is_same_person(one: &str, other: &str) -> bool {
    normalized(one) == normalized(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_apart() {
        let table = [
            ("ada@example.com", "Ada@Example.com", true),
            ("ada@example.com", "ada+shop@example.com", true),
            ("a.d.a@gmail.com", "ada+x@googlemail.com", true),
            ("a.da@example.com", "ada@example.com", false),
            ("ada@example.com", "ada@example.org", false),
            ("+a@example.com", "+b@example.com", false),
        ];
        for (one, other, same) in table {
            assert_eq!(is_same_person(one, other), same, "{one} and {other}");
        }
    }
}
