//! Redaction of credentials in event data before it is stored
//! (docs/EVENTS.md).
//!
//! ```text
//! "resetToken": anything          ─►  "resetToken": "REDACTED"
//! "https://a/b?x=1&otp=123#d"     ─►  "https://a/b?x=1&otp=REDACTED#d"
//! ```
//!
//! Keys are compared without case, `_` and `-`. The same rule applies to URL parameters in the query and the fragment,
//! anywhere in a text, including URLs nested in parameters of other URLs. The recursion depth equals the nesting of the
//! data, which is bounded by [`super::DATA_LEVELS_MAX`] when it is parsed.

use message::percent;
use serde_json::{Map, Value};

/// Replacement of a secret value.
pub const REDACTED: &str = "REDACTED";

/// Secret keys in normal form.
const KEYS: &[&str] = &["password", "secret", "otp", "apikey"];
/// Keys with this suffix are secret too.
const ENDS: &str = "token";
/// This key is secret in login events.
const CODE: &str = "code";
/// Name parts that mark a login event.
const LOGIN_PARTS: &[&str] = &["auth", "login", "signin", "verify", "verification", "otp", "mfa", "code", "password"];
/// Maximum nesting of URLs in parameters; a deeper value is redacted as a whole.
const LEVELS_MAX: usize = 4;

/// Returns an event's data without secrets.
pub fn redact(event: &str, data: &Value) -> Value {
    RedactionRule { codes: is_login(event) }.redact_value(data)
}

/// Returns whether an event concerns login or verification, judging by the parts of its name.
pub fn is_login(event: &str) -> bool {
    event.split(['.', '_', '-']).any(|part| LOGIN_PARTS.iter().any(|login| part.eq_ignore_ascii_case(login)))
}

/// Decides which keys are secret.
struct RedactionRule {
    /// `code` is secret.
    codes: bool,
}

impl RedactionRule {
    fn is_secret(&self, key: &str) -> bool {
        let plain: String = key.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect();
        KEYS.contains(&plain.as_str()) || plain.ends_with(ENDS) || self.codes && plain == CODE
    }

    fn redact_value(&self, value: &Value) -> Value {
        match value {
            number if crate::raw_number::is_number(number) => number.clone(),
            Value::Object(members) => Value::Object(self.redact_members(members)),
            Value::Array(entries) => entries.iter().map(|entry| self.redact_value(entry)).collect(),
            Value::String(text) => Value::String(self.redact_text(text, 0)),
            other => other.clone(),
        }
    }

    fn redact_members(&self, members: &Map<String, Value>) -> Map<String, Value> {
        let redact_member = |(key, value): (&String, &Value)| {
            let value = if self.is_secret(key) { REDACTED.into() } else { self.redact_value(value) };
            (key.clone(), value)
        };
        members.iter().map(redact_member).collect()
    }

    /// Redacts the URLs in a text.
    fn redact_text(&self, text: &str, level: usize) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(ends_url).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            self.redact_url(run, level, &mut out);
            let next = after.chars().next().map_or(0, char::len_utf8);
            let (unchanged, after) = after.split_at(next);
            out.push_str(unchanged);
            rest = after;
        }
        out
    }

    /// Redacts the parameters behind the first `?` or `#` of a run that may be a URL.
    fn redact_url(&self, run: &str, level: usize, out: &mut String) {
        let Some(start) = run.find(['?', '#']) else { return out.push_str(run) };
        let (before, mut rest) = run.split_at(start);
        out.push_str(before);
        while !rest.is_empty() {
            // The separator is one byte; a parameter follows it.
            let (separator, after) = rest.split_at(1);
            out.push_str(separator);
            let end = after.find(['?', '#', '&', ';']).unwrap_or(after.len());
            let (parameter, further) = after.split_at(end);
            self.redact_parameter(parameter, level, out);
            rest = further;
        }
    }

    fn redact_parameter(&self, parameter: &str, level: usize, out: &mut String) {
        let Some((name, value)) = parameter.split_once('=') else { return out.push_str(parameter) };
        out.push_str(name);
        out.push('=');
        // Forms nest keys as `user[token]`.
        if percent::decode_lenient(name).split(['[', ']']).any(|key| self.is_secret(key)) {
            return out.push_str(if value.is_empty() { "" } else { REDACTED });
        }
        let plain = percent::decode_lenient(value);
        if plain == value || !plain.contains(['?', '#']) {
            return out.push_str(value);
        }
        // The value is a nested URL.
        if level >= LEVELS_MAX {
            return out.push_str(REDACTED);
        }
        let redacted = self.redact_text(&plain, level + 1);
        if redacted == plain { out.push_str(value) } else { out.push_str(&percent::encode(&redacted)) }
    }
}

/// Characters that end a URL in a text (RFC 3986 C).
fn ends_url(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '<' | '>' | '`' | '\\' | '^' | '{' | '}' | '|')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn secret_keys_are_recognised() {
        for (event, key, secret) in [
            ("a", "password", true),
            ("a", "Password", true),
            ("a", "pass_word", true),
            ("a", "PASS-WORD", true),
            ("a", "secret", true),
            ("a", "client_secret", false),
            ("a", "otp", true),
            ("a", "OTP", true),
            ("a", "api_key", true),
            ("a", "API-Key", true),
            ("a", "apiKey", true),
            ("a", "x_api_key", false),
            ("a", "token", true),
            ("a", "resetToken", true),
            ("a", "access_token", true),
            ("a", "to_ken", true),
            ("a", "tokens", false),
            ("a", "token_id", false),
            ("a", "code", false),
            ("order.created", "code", false),
            ("auth.code_requested", "code", true),
            ("auth.code_requested", "Co_de", true),
            ("auth.code_requested", "postcode", false),
            ("user_login", "code", true),
            ("USER-LOGIN", "code", true),
            ("user.signin", "code", true),
            ("email.verification", "code", true),
            ("mfa", "code", true),
            ("author.created", "code", false),
            ("userlogin", "code", false),
            ("discount.code_used", "code", true),
        ] {
            let stored = redact(event, &json!({key: "s3cret"}));
            assert_eq!(stored[key] == REDACTED, secret, "{event} {key}: {stored}");
        }
    }

    #[test]
    fn secrets_are_redacted_at_any_depth() {
        let data = json!({
            "password": {"old": "a", "new": ["b"]}, "user": {"otp": 123456, "name": "Ada", "n": [[{"token": null}]]},
            "secret": true, "list": [1, "x", {"API-KEY": []}],
        });
        let stored = json!({
            "password": REDACTED, "user": {"otp": REDACTED, "name": "Ada", "n": [[{"token": REDACTED}]]},
            "secret": REDACTED, "list": [1, "x", {"API-KEY": REDACTED}],
        });
        assert_eq!(redact("user.created", &data), stored);
    }

    #[test]
    fn secrets_in_urls_are_redacted() {
        for (event, text, stored) in [
            ("a", "https://a.example/r?token=abc", "https://a.example/r?token=REDACTED"),
            ("a", "https://a.example/r?x=1&resetToken=abc&y=2#z", "https://a.example/r?x=1&resetToken=REDACTED&y=2#z"),
            ("a", "https://a.example/#access_token=abc&state=1", "https://a.example/#access_token=REDACTED&state=1"),
            ("a", "https://a.example/#/r?api_key=abc", "https://a.example/#/r?api_key=REDACTED"),
            ("a", "https://a.example/?a=1;otp=9", "https://a.example/?a=1;otp=REDACTED"),
            (
                "a",
                "See https://a.example/?token=abc, or <https://b.example/?password=x>.",
                "See https://a.example/?token=REDACTED or <https://b.example/?password=REDACTED>.",
            ),
            ("a", "a.example/r?TOKEN=abc", "a.example/r?TOKEN=REDACTED"),
            ("a", "https://a.example/?to%6Ben=abc", "https://a.example/?to%6Ben=REDACTED"),
            ("a", "https://a.example/?token=", "https://a.example/?token="),
            ("a", "https://a.example/?token", "https://a.example/?token"),
            ("a", "https://a.example/?code=abc", "https://a.example/?code=abc"),
            ("user.login", "https://a.example/?code=abc", "https://a.example/?code=REDACTED"),
            (
                "a",
                "https://a.example/?next=https%3A%2F%2Fb.example%2F%3Ftoken%3Dabc&x=1",
                "https://a.example/?next=https%3A%2F%2Fb.example%2F%3Ftoken%3DREDACTED&x=1",
            ),
            (
                "a",
                "https://a.example/?next=https%3A%2F%2Fb.example%2F%3Fx%3dabc",
                "https://a.example/?next=https%3A%2F%2Fb.example%2F%3Fx%3dabc",
            ),
            ("a", "the token=abc is not in a URL", "the token=abc is not in a URL"),
            ("a", "https://ü.example/ß?token=ä", "https://ü.example/ß?token=REDACTED"),
            ("a", "100%?%zz&token=1", "100%?%zz&token=REDACTED"),
            ("a", "", ""),
        ] {
            let stored_text = redact(event, &json!({"url": text, "in": [text]}));
            assert_eq!(stored_text, json!({"url": stored, "in": [stored]}), "{text}");
        }
    }

    fn any_data() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~äß?#&=;%]{0,24}".prop_map(Value::from),
            "https://a.example/[?#]token=(hush|%68ush)[&;#]x=[a-z%?]{0,6}".prop_map(Value::from),
        ];
        let key = prop_oneof![Just("token".to_owned()), Just("a-OTP_".to_owned()), "[a-zA-Z_-]{0,8}"];
        leaf.prop_recursive(5, 64, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((key.clone(), inner), 0..5).prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        /// Redacted data has no value under a secret key, has the shape of its input, and redaction is idempotent.
        #[test]
        fn no_secret_remains(data in any_data(), event in "(a|auth.x)") {
            let stored = redact(&event, &data);
            prop_assert!(!stored.to_string().contains("token=hush"), "{stored}");
            prop_assert_eq!(redact(&event, &stored), stored);
        }
    }
}
