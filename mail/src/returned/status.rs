//! Delivery status notifications (RFC 3464; RFC 6533 for those in UTF-8).

use crate::address::Address;
use crate::reply::Enhanced;

use super::codes::{self, Coded, one_line};
use super::parts::{Part, groups, of_group};
use super::{Failure, Said, host, part};

/// The part that a machine reads, also where it stands outside of a `multipart/report`.
const KINDS: [&str; 3] =
    ["message/delivery-status", "message/global-delivery-status", "text/x-delivery-status"];

/// What became of a recipient (RFC 3464 2.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Failed,
    Delayed,
    /// Delivered, relayed, expanded.
    Arrived,
}

/// What is said of one recipient.
struct Told<'g> {
    fields: &'g [(String, String)],
    action: Action,
}

/// Reads a notification; none when it is none. `about` is the recipient that it must be about.
pub(super) fn read(parts: &[Part<'_>], about: Option<&Address>) -> Option<Said> {
    let text = part(parts, &KINDS)?.text().into_owned();
    let groups = groups(&text);
    let told: Vec<Told<'_>> = groups.iter().filter_map(|group| told(group)).collect();
    let named = |one: &&Told<'_>| about.is_some_and(|about| names(one.fields, about));
    // Who forwards, or is behind an alias, has other addresses there: then all of them are ours.
    let ours: Vec<&Told<'_>> = match told.iter().filter(named).collect::<Vec<_>>() {
        named if named.is_empty() => told.iter().collect(),
        named => named,
    };
    let reporter = groups.first().and_then(|group| of_group(group, "reporting-mta"));
    let of = |action| ours.iter().find(|one| one.action == action);
    // One of several behind an alias got it: it arrived.
    Some(match (of(Action::Arrived), of(Action::Failed), of(Action::Delayed)) {
        (None, Some(failed), _) => Said::Failed(failure(failed.fields, reporter)),
        (None, None, Some(delayed)) => Said::Delayed(failure(delayed.fields, reporter)),
        _ => Said::Nothing,
    })
}

fn told(fields: &[(String, String)]) -> Option<Told<'_>> {
    let status = || of_group(fields, "status").and_then(enhanced);
    let Some(action) = of_group(fields, "action") else {
        // Some leave out what RFC 3464 2.3.3 asks for; that it is for good is said all the same.
        return status().filter(|code| code.class == 5).map(|_| Told { fields, action: Action::Failed });
    };
    let action = action.split_whitespace().next()?.to_ascii_lowercase();
    let action = match action.trim_end_matches([';', ',', '.']) {
        // What contradicts itself says nothing (RFC 3463 2: class 2 is success).
        "failed" | "failure" | "error" if status().is_some_and(|code| code.class == 2) => return None,
        // `error` is none of RFC 3464 2.3.3, and is written all the same.
        "failed" | "failure" | "error" => Action::Failed,
        "delayed" => Action::Delayed,
        "delivered" | "relayed" | "expanded" => Action::Arrived,
        _ => return None,
    };
    Some(Told { fields, action })
}

/// Whether a group is about this address.
fn names(fields: &[(String, String)], about: &Address) -> bool {
    let is_it = |value: &str| {
        let text = value.split_once(';').map_or(value, |(_, address)| address).trim();
        let address = text.trim_matches(['<', '>']).parse::<Address>();
        address.is_ok_and(|address| {
            address.domain() == about.domain() && address.local().eq_ignore_ascii_case(about.local())
        })
    };
    ["original-recipient", "final-recipient", "x-actual-recipient"]
        .iter()
        .any(|name| of_group(fields, name).is_some_and(is_it))
}

fn failure(fields: &[(String, String)], reporter: Option<&str>) -> Failure {
    let status = of_group(fields, "status").and_then(enhanced).filter(|code| matches!(code.class, 4 | 5));
    let (kind, said) = of_group(fields, "diagnostic-code")
        .map(|value| value.split_once(';').unwrap_or(("", value)))
        .map_or(("", ""), |(kind, said)| (kind.trim(), said.trim()));
    let is_smtp = kind.is_empty() || kind.eq_ignore_ascii_case("smtp");
    let coded = codes::find(said).filter(|coded| is_smtp || coded.enhanced.is_some());
    let mut coded = coded.unwrap_or_else(|| Coded { code: None, enhanced: None, text: one_line(said) });
    // What is given up in the end for what might have passed says so in either place (RFC 3463: x.4.7).
    let expired = |code: Enhanced| code.class == 4 || (code.subject, code.detail) == (4, 7);
    let soft = [status, coded.enhanced].into_iter().flatten().any(expired)
        || (status.is_none() && coded.code.is_some_and(|code| code < 500))
        // Nobody says that it is for good.
        || (status.is_none() && said.is_empty());
    // `5.0.0` says nothing; the other of the two may.
    let vague = |code: Enhanced| (code.subject, code.detail) == (0, 0);
    coded.enhanced = match (coded.enhanced, status) {
        (Some(said), Some(status)) if vague(said) => Some(status),
        (said, status) => said.or(status),
    };
    let has_code = coded.code.is_some();
    let reply = coded.reply(!soft);
    let diagnostic = match (kind, said) {
        (_, "") => reply.to_string(),
        ("", said) => one_line(said),
        (kind, said) => one_line(&format!("{}; {said}", kind.to_ascii_lowercase())),
    };
    let hosts = [of_group(fields, "remote-mta"), reporter];
    Failure { reply, has_code, diagnostic, soft, host: hosts.into_iter().flatten().find_map(host) }
}

/// `5.1.1 (bad destination mailbox address)`.
fn enhanced(value: &str) -> Option<Enhanced> {
    Enhanced::split(value.split([' ', '\t', '(']).next()?).map(|(code, _)| code)
}
