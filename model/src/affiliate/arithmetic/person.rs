//! Detects two email addresses of one person, so that self-referrals earn nothing.

/// Domains that ignore dots in the local part.
const WITHOUT_DOTS: [&str; 2] = ["gmail.com", "googlemail.com"];

/// The comparison form of an address: lower case, without a `+tag`, and without dots at Gmail.
pub fn normalized(email: &str) -> String {
    let email = email.trim().to_lowercase();
    let Some((local, domain)) = email.rsplit_once('@') else { return email };
    let local = match local.split_once('+') {
        // A local part that begins with `+` has no mailbox before the tag.
        Some((mailbox, _)) if !mailbox.is_empty() => mailbox,
        _ => local,
    };
    if WITHOUT_DOTS.contains(&domain) {
        format!("{}@gmail.com", local.replace('.', ""))
    } else {
        format!("{local}@{domain}")
    }
}

/// True if both addresses have the same [`normalized`] form.
pub fn is_same_person(one: &str, other: &str) -> bool {
    normalized(one) == normalized(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_person_are_recognised() {
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
