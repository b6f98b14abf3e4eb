//! Decides whether the policy of a client permits an operation, before its handler runs.
//!
//! Rules that concern an email (recipients, sender, category, sends a day) are checked where email is accepted.

use httpd::problem::Problem;
use model::client_policy::{ApprovalKind, ClientPolicy};
use model::user::UserRole;

use crate::access::role_table::permitted_roles;
use crate::operation::Operation;
use crate::sdk::Risk;

/// Nouns whose operations could lift the policy of the client that calls them.
const CREDENTIAL_TAGS: [&str; 5] = ["api_keys", "smtp_credentials", "users", "grants", "oauth"];

/// Operations whose requests contain secrets: a held request would show them.
const SECRET_INPUT_OPERATIONS: [&str; 3] = ["save_dns_credentials", "delete_dns_credentials", "apply_domain_dns"];
/// Fields of other requests that are secrets.
pub(crate) const SECRET_FIELDS: [&str; 2] = ["dkim_private_key", "credentials"];

/// The decision of the policy about an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyDecision {
    Permit,
    /// A person approves it first.
    Hold(ApprovalKind),
}

/// The kind of approval that covers an operation; `None` if it only reads.
fn approval_kind(risk: Risk) -> Option<ApprovalKind> {
    match risk {
        Risk::Read => None,
        Risk::Send => Some(ApprovalKind::Send),
        Risk::Delete => Some(ApprovalKind::Delete),
        Risk::Write | Risk::Secret | Risk::Money | Risk::Team | Risk::Payout => Some(ApprovalKind::Manage),
    }
}

/// The risk that decides who may approve a request: as for the operation in a session, and at least as for money if it
/// moves money.
pub(crate) fn risk_of(kind: ApprovalKind, moves_money: bool) -> Risk {
    match kind {
        _ if moves_money => Risk::Money,
        ApprovalKind::Send => Risk::Send,
        ApprovalKind::Delete => Risk::Delete,
        ApprovalKind::Manage => Risk::Write,
    }
}

/// The roles that may decide held requests of an operation; none if it is never held.
pub(crate) fn deciding_roles(operation: &Operation) -> &'static [UserRole] {
    match approval_kind(operation.risk) {
        Some(kind) => permitted_roles(risk_of(kind, operation.moves_money)),
        None => &[],
    }
}

/// Decides whether a client with this policy may call an operation.
///
/// # Errors
/// 403 `policy_violation`: the operation reveals secrets, moves money without an approval, could lift the policy, or
/// causes email that the policy's limits do not see.
pub(crate) fn decide(policy: &ClientPolicy, operation: &Operation) -> Result<PolicyDecision, Problem> {
    let Some(kind) = approval_kind(operation.risk).filter(|_| !policy.is_empty()) else {
        return Ok(PolicyDecision::Permit);
    };
    let is_sensitive =
        matches!(operation.risk, Risk::Secret | Risk::Team) || SECRET_INPUT_OPERATIONS.contains(&operation.id);
    if is_sensitive || CREDENTIAL_TAGS.contains(&operation.tag) {
        let text = "A client with a policy may not manage credentials, secrets or the team; use the dashboard";
        return Err(Problem::policy_violation("credentials", text));
    }
    if policy.approve.contains(&kind) {
        return Ok(PolicyDecision::Hold(kind));
    }
    if operation.moves_money {
        let text = format!(
            "This operation changes what partners are paid, which a client with a policy may do only with an \
             approval; a person can do it in the dashboard, or the policy can require an approval (`approve: {}`)",
            kind.word()
        );
        return Err(Problem::policy_violation("money", text));
    }
    if operation.mails_later && policy.limits_sending() {
        let text = "The policy of this client limits the email that it sends, and this operation causes email later; \
                    a person can do it in the dashboard, or the policy can require an approval (`approve: manage`)";
        return Err(Problem::policy_violation("sends", text));
    }
    Ok(PolicyDecision::Permit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::operations::operation_table;

    fn decisions(policy: &ClientPolicy) -> BTreeMap<&'static str, Result<PolicyDecision, Problem>> {
        let table = operation_table();
        table.iter().filter(|operation| operation.scope().is_some()).map(|o| (o.id, decide(policy, o))).collect()
    }

    #[test]
    fn without_a_policy_everything_is_permitted() {
        for (id, decision) in decisions(&ClientPolicy::default()) {
            assert_eq!(decision, Ok(PolicyDecision::Permit), "{id}");
        }
    }

    #[test]
    fn a_client_with_a_policy_cannot_lift_it() {
        let policy = ClientPolicy { sends_per_day: Some(1), ..ClientPolicy::default() };
        let all = decisions(&policy);
        for id in [
            "create_api_key",
            "update_api_key",
            "delete_api_key",
            "rotate_api_key",
            "create_smtp_credential",
            "create_webhook",
            "save_dns_credentials",
            "reject_affiliate",
            "publish_template",
            "mark_affiliate_payout_paid",
            "reverse_affiliate_commission",
            "update_affiliate",
            "create_affiliate_campaign",
            "create_affiliate_referral",
            "activate_automation",
            "send_event",
            "update_webhook",
        ] {
            // The actions of an automation share one operation.
            let id = if id == "activate_automation" { "update_automation" } else { id };
            assert!(all[id].is_err(), "{id}: {:?}", all[id]);
        }
        for id in ["send_email", "list_emails", "create_template", "delete_suppression", "preview_template"] {
            assert_eq!(all[id], Ok(PolicyDecision::Permit), "{id}");
        }
    }

    #[test]
    fn kinds_are_held() {
        let policy = ClientPolicy { approve: ApprovalKind::ALL.into(), ..ClientPolicy::default() };
        let all = decisions(&policy);
        for (id, kind) in [
            ("send_email", ApprovalKind::Send),
            ("reply_to_received_email", ApprovalKind::Send),
            ("delete_domain", ApprovalKind::Delete),
            ("create_template", ApprovalKind::Manage),
            ("send_event", ApprovalKind::Manage),
            ("reverse_affiliate_commission", ApprovalKind::Manage),
            ("mark_affiliate_payout_paid", ApprovalKind::Manage),
            ("update_affiliate_campaign", ApprovalKind::Manage),
            ("delete_affiliate", ApprovalKind::Delete),
        ] {
            assert_eq!(all[id], Ok(PolicyDecision::Hold(kind)), "{id}");
        }
        assert_eq!(all["list_emails"], Ok(PolicyDecision::Permit));
    }

    /// Changes of rates, new referrals, and payments need an approval under every policy.
    #[test]
    fn whatever_moves_money_is_held_or_refused() {
        let only_limited = ClientPolicy { sends_per_day: Some(1), ..ClientPolicy::default() };
        let held = ClientPolicy { approve: ApprovalKind::ALL.into(), ..ClientPolicy::default() };
        let table = operation_table();
        let changes = table.iter().filter(|one| one.scope().is_some() && one.risk != Risk::Read);
        let partners = changes.filter(|one| one.path.starts_with("/affiliate"));
        let mut free = Vec::new();
        for operation in partners {
            match decide(&only_limited, operation) {
                Ok(PolicyDecision::Permit) => free.push(operation.id),
                Ok(PolicyDecision::Hold(_)) => panic!("{}", operation.id),
                Err(_) if operation.risk == Risk::Secret => {}
                Err(_) => assert!(matches!(decide(&held, operation), Ok(PolicyDecision::Hold(_))), "{}", operation.id),
            }
        }
        // Links name a partner, and move nothing.
        assert_eq!(free, ["create_affiliate_link", "delete_affiliate_link"]);
    }

    #[test]
    fn a_developer_decides_nothing_that_moves_money() {
        use UserRole::{Admin, Developer, Owner};
        let table = operation_table();
        for (id, roles) in [
            ("send_email", vec![Developer, Admin, Owner]),
            ("delete_domain", vec![Developer, Admin, Owner]),
            ("update_affiliate_campaign", vec![Admin, Owner]),
            ("mark_affiliate_payout_paid", vec![Admin, Owner]),
            ("list_emails", vec![]),
        ] {
            let operation = table.iter().find(|operation| operation.id == id).unwrap();
            assert_eq!(deciding_roles(operation), roles, "{id}");
        }
    }

    #[test]
    fn the_emails_of_a_held_send_can_be_resolved() {
        for operation in operation_table().iter().filter(|one| one.scope().is_some()) {
            assert_eq!(operation.risk == Risk::Send, operation.resolve_sends.is_some(), "{}", operation.id);
        }
    }
}
