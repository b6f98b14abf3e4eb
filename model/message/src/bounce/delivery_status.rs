//! Parser of delivery status notifications (RFC 3464; RFC 6533 for UTF-8).

use crate::address::Address;
use crate::reply::Enhanced;

use super::report_parts::{ReportPart, field_groups, group_field};
use super::smtp_codes::{self, EmbeddedCode, one_line};
use super::{BounceDetail, ParsedReport, find_part, reporting_host};

/// Media types of the machine-readable part; it is accepted outside a `multipart/report` too.
const MEDIA_TYPES: [&str; 3] = ["message/delivery-status", "message/global-delivery-status", "text/x-delivery-status"];

/// Action of a recipient (RFC 3464 2.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportedAction {
    Failed,
    Delayed,
    /// Delivered, relayed, expanded.
    Delivered,
}

/// The fields of one recipient.
struct RecipientStatus<'g> {
    fields: &'g [(String, String)],
    action: ReportedAction,
}

/// Parses a DSN; `None` if there is no status part. Groups about the recipient `about` have priority.
pub(super) fn parse(parts: &[ReportPart<'_>], about: Option<&Address>) -> Option<ParsedReport> {
    let text = find_part(parts, &MEDIA_TYPES)?.text().into_owned();
    let groups = field_groups(&text);
    let recipients: Vec<RecipientStatus<'_>> = groups.iter().filter_map(|group| parse_recipient(group)).collect();
    let named = |status: &&RecipientStatus<'_>| about.is_some_and(|about| is_for_address(status.fields, about));
    // Behind a forwarder or an alias, the reported addresses differ: then all groups count.
    let relevant: Vec<&RecipientStatus<'_>> = match recipients.iter().filter(named).collect::<Vec<_>>() {
        named if named.is_empty() => recipients.iter().collect(),
        named => named,
    };
    let reporter = groups.first().and_then(|group| group_field(group, "reporting-mta"));
    let find = |action| relevant.iter().find(|status| status.action == action);
    // If one of several recipients behind an alias received the message, it is delivered.
    Some(match (find(ReportedAction::Delivered), find(ReportedAction::Failed), find(ReportedAction::Delayed)) {
        (None, Some(failed), _) => ParsedReport::Failed(parse_failure(failed.fields, reporter)),
        (None, None, Some(delayed)) => ParsedReport::Delayed(parse_failure(delayed.fields, reporter)),
        _ => ParsedReport::Nothing,
    })
}

fn parse_recipient(fields: &[(String, String)]) -> Option<RecipientStatus<'_>> {
    let status = || group_field(fields, "status").and_then(parse_enhanced);
    let Some(action) = group_field(fields, "action") else {
        // Some generators omit the Action that RFC 3464 2.3.3 requires; a status of class 5 implies failure.
        return status()
            .filter(|code| code.class == 5)
            .map(|_| RecipientStatus { fields, action: ReportedAction::Failed });
    };
    let action = action.split_whitespace().next()?.to_ascii_lowercase();
    let action = match action.trim_end_matches([';', ',', '.']) {
        // A contradictory group is ignored (RFC 3463 2: class 2 is success).
        "failed" | "failure" | "error" if status().is_some_and(|code| code.class == 2) => return None,
        // `error` is not an action of RFC 3464 2.3.3, but some generators use it.
        "failed" | "failure" | "error" => ReportedAction::Failed,
        "delayed" => ReportedAction::Delayed,
        "delivered" | "relayed" | "expanded" => ReportedAction::Delivered,
        _ => return None,
    };
    Some(RecipientStatus { fields, action })
}

/// Returns whether a group concerns this address.
fn is_for_address(fields: &[(String, String)], about: &Address) -> bool {
    let is_same_address = |value: &str| {
        let text = value.split_once(';').map_or(value, |(_, address)| address).trim();
        let address = text.trim_matches(['<', '>']).parse::<Address>();
        address.is_ok_and(|address| {
            address.domain() == about.domain() && address.local_part().eq_ignore_ascii_case(about.local_part())
        })
    };
    ["original-recipient", "final-recipient", "x-actual-recipient"]
        .iter()
        .any(|name| group_field(fields, name).is_some_and(is_same_address))
}

fn parse_failure(fields: &[(String, String)], reporter: Option<&str>) -> BounceDetail {
    let status = group_field(fields, "status").and_then(parse_enhanced).filter(|code| matches!(code.class, 4 | 5));
    let (kind, text) = group_field(fields, "diagnostic-code")
        .map(|value| value.split_once(';').unwrap_or(("", value)))
        .map_or(("", ""), |(kind, text)| (kind.trim(), text.trim()));
    let is_smtp = kind.is_empty() || kind.eq_ignore_ascii_case("smtp");
    let coded = smtp_codes::find_code(text).filter(|coded| is_smtp || coded.enhanced.is_some());
    let mut coded = coded.unwrap_or_else(|| EmbeddedCode { code: None, enhanced: None, text: one_line(text) });
    // Status or diagnostic code shows that a temporary failure expired (RFC 3463: x.4.7).
    let expired = |code: Enhanced| code.class == 4 || (code.subject, code.detail) == (4, 7);
    let soft = [status, coded.enhanced].into_iter().flatten().any(expired)
        || (status.is_none() && coded.code.is_some_and(|code| code < 500))
        // Nothing states that the failure is permanent.
        || (status.is_none() && text.is_empty());
    // `5.0.0` is unspecific, so the other code is preferred.
    let is_undefined = |code: Enhanced| (code.subject, code.detail) == (0, 0);
    coded.enhanced = match (coded.enhanced, status) {
        (Some(reported), Some(status)) if is_undefined(reported) => Some(status),
        (reported, status) => reported.or(status),
    };
    let has_code = coded.code.is_some();
    let reply = coded.into_reply(!soft);
    let diagnostic = match (kind, text) {
        (_, "") => reply.to_string(),
        ("", text) => one_line(text),
        (kind, text) => one_line(&format!("{}; {text}", kind.to_ascii_lowercase())),
    };
    let hosts = [group_field(fields, "remote-mta"), reporter];
    BounceDetail { reply, has_code, diagnostic, soft, host: hosts.into_iter().flatten().find_map(reporting_host) }
}

/// Parses `5.1.1 (bad destination mailbox address)`.
fn parse_enhanced(value: &str) -> Option<Enhanced> {
    Enhanced::split_prefix(value.split([' ', '\t', '(']).next()?).map(|(code, _)| code)
}
