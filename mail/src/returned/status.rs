//! Delivery status notifications (RFC 3464; RFC 6533 for those in UTF-8).

use crate::address::Address;
use crate::reply::Enhanced;

use super::codes::{self, EmbeddedCode, one_line};
use super::parts::{ReportPart, field_groups, group_field};
use super::{BounceDetail, ParsedReport, find_part, reporting_host};

/// The part that a machine reads, also where it stands outside of a `multipart/report`.
const MEDIA_TYPES: [&str; 3] = ["message/delivery-status", "message/global-delivery-status", "text/x-delivery-status"];

/// What became of a recipient (RFC 3464 2.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportedAction {
    Failed,
    Delayed,
    /// Delivered, relayed, expanded.
    Delivered,
}

/// What is said of one recipient.
struct RecipientStatus<'g> {
    fields: &'g [(String, String)],
    action: ReportedAction,
}

/// Reads a notification; none when it is none. `about` is the recipient that it must be about.
pub(super) fn parse(parts: &[ReportPart<'_>], about: Option<&Address>) -> Option<ParsedReport> {
    let text = find_part(parts, &MEDIA_TYPES)?.text().into_owned();
    let groups = field_groups(&text);
    let told: Vec<RecipientStatus<'_>> = groups.iter().filter_map(|group| parse_recipient(group)).collect();
    let named = |one: &&RecipientStatus<'_>| about.is_some_and(|about| is_about(one.fields, about));
    // Who forwards, or is behind an alias, has other addresses there: then all of them are ours.
    let ours: Vec<&RecipientStatus<'_>> = match told.iter().filter(named).collect::<Vec<_>>() {
        named if named.is_empty() => told.iter().collect(),
        named => named,
    };
    let reporter = groups.first().and_then(|group| group_field(group, "reporting-mta"));
    let of = |action| ours.iter().find(|one| one.action == action);
    // One of several behind an alias got it: it arrived.
    Some(match (of(ReportedAction::Delivered), of(ReportedAction::Failed), of(ReportedAction::Delayed)) {
        (None, Some(failed), _) => ParsedReport::Failed(parse_failure(failed.fields, reporter)),
        (None, None, Some(delayed)) => ParsedReport::Delayed(parse_failure(delayed.fields, reporter)),
        _ => ParsedReport::Nothing,
    })
}

fn parse_recipient(fields: &[(String, String)]) -> Option<RecipientStatus<'_>> {
    let status = || group_field(fields, "status").and_then(parse_enhanced);
    let Some(action) = group_field(fields, "action") else {
        // Some leave out what RFC 3464 2.3.3 asks for; that it is for good is said all the same.
        return status()
            .filter(|code| code.class == 5)
            .map(|_| RecipientStatus { fields, action: ReportedAction::Failed });
    };
    let action = action.split_whitespace().next()?.to_ascii_lowercase();
    let action = match action.trim_end_matches([';', ',', '.']) {
        // What contradicts itself says nothing (RFC 3463 2: class 2 is success).
        "failed" | "failure" | "error" if status().is_some_and(|code| code.class == 2) => return None,
        // `error` is none of RFC 3464 2.3.3, and is written all the same.
        "failed" | "failure" | "error" => ReportedAction::Failed,
        "delayed" => ReportedAction::Delayed,
        "delivered" | "relayed" | "expanded" => ReportedAction::Delivered,
        _ => return None,
    };
    Some(RecipientStatus { fields, action })
}

/// Whether a group is about this address.
fn is_about(fields: &[(String, String)], about: &Address) -> bool {
    let is_it = |value: &str| {
        let text = value.split_once(';').map_or(value, |(_, address)| address).trim();
        let address = text.trim_matches(['<', '>']).parse::<Address>();
        address.is_ok_and(|address| {
            address.domain() == about.domain() && address.local_part().eq_ignore_ascii_case(about.local_part())
        })
    };
    ["original-recipient", "final-recipient", "x-actual-recipient"]
        .iter()
        .any(|name| group_field(fields, name).is_some_and(is_it))
}

fn parse_failure(fields: &[(String, String)], reporter: Option<&str>) -> BounceDetail {
    let status = group_field(fields, "status").and_then(parse_enhanced).filter(|code| matches!(code.class, 4 | 5));
    let (kind, said) = group_field(fields, "diagnostic-code")
        .map(|value| value.split_once(';').unwrap_or(("", value)))
        .map_or(("", ""), |(kind, said)| (kind.trim(), said.trim()));
    let is_smtp = kind.is_empty() || kind.eq_ignore_ascii_case("smtp");
    let coded = codes::find_code(said).filter(|coded| is_smtp || coded.enhanced.is_some());
    let mut coded = coded.unwrap_or_else(|| EmbeddedCode { code: None, enhanced: None, text: one_line(said) });
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
    let reply = coded.into_reply(!soft);
    let diagnostic = match (kind, said) {
        (_, "") => reply.to_string(),
        ("", said) => one_line(said),
        (kind, said) => one_line(&format!("{}; {said}", kind.to_ascii_lowercase())),
    };
    let hosts = [group_field(fields, "remote-mta"), reporter];
    BounceDetail { reply, has_code, diagnostic, soft, host: hosts.into_iter().flatten().find_map(reporting_host) }
}

/// `5.1.1 (bad destination mailbox address)`.
fn parse_enhanced(value: &str) -> Option<Enhanced> {
    Enhanced::split_prefix(value.split([' ', '\t', '(']).next()?).map(|(code, _)| code)
}
