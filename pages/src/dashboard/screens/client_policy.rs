//! The policy of a client (a credential or the grant of an app): what its program may do below its scope.

use schema_derive::answer;

use crate::dashboard::form::{Control, Empty, Field, choices};
use crate::dashboard::kit::text::counted;

#[answer]
pub(super) struct Policy {
    recipients: Vec<String>,
    from: Option<String>,
    sends_per_day: Option<u64>,
    categories: Vec<String>,
    approve: Vec<String>,
}

impl Policy {
    /// The rules in one sentence.
    pub(super) fn summary(&self) -> String {
        let list = |words: &[String]| words.join(", ");
        let rules = [
            (!self.recipients.is_empty()).then(|| format!("sends only to {}", list(&self.recipients))),
            self.from.as_ref().map(|from| format!("sends only from {from}")),
            self.sends_per_day.map(|limit| format!("at most {} per day", counted(limit, "recipient"))),
            (!self.categories.is_empty()).then(|| format!("only {} email", list(&self.categories))),
            (!self.approve.is_empty()).then(|| format!("asks for approval to {}", list(&self.approve))),
        ];
        rules.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// The fields of the policy, with its values. SMTP has no reply for a request that waits for an approval.
pub(super) fn fields(can_wait: bool, policy: Option<&Policy>) -> Vec<Field> {
    let policy = policy.cloned().unwrap_or_default();
    let categories =
        choices(&[("transactional", "Transactional"), ("product", "Product updates"), ("newsletter", "Newsletter")]);
    let approvals =
        choices(&[("send", "Send email"), ("delete", "Delete something"), ("manage", "Create or change something")]);
    let limit = policy.sends_per_day.map(|limit| limit.to_string()).unwrap_or_default();
    let mut fields = vec![
        Field::new("policy.recipients", "May send only to", Control::Lines { rows: 3 })
            .value(policy.recipients.join("\n"))
            .placeholder("*@example.com")
            .empty(Empty::Kept)
            .help("Addresses, or a whole domain such as *@example.com, one per line. Leave empty for anyone."),
        Field::new("policy.from", "May send only from", Control::Email)
            .value(policy.from.unwrap_or_default())
            .empty(Empty::Null)
            .help("One address. Leave empty for any address of the domains."),
        Field::new(
            "policy.sends_per_day",
            "Recipients per day",
            Control::Number { min: Some(1), max: Some(10_000_000) },
        )
        .value(limit)
        .empty(Empty::Null)
        .help("The limit for all emails in one UTC day. Leave empty for the plan's limit."),
        Field::new("policy.categories", "Categories", Control::Checkboxes(categories))
            .value(policy.categories.join("\n"))
            .empty(Empty::Kept)
            .help("If none is checked, all are allowed."),
    ];
    if can_wait {
        let approve = Field::new("policy.approve", "Require a person's approval to", Control::Checkboxes(approvals))
            .value(policy.approve.join("\n"))
            .empty(Empty::Kept)
            .help("For AI assistants and agents: such requests wait under Approvals, and you get an email.");
        fields.push(approve);
    }
    fields
}
