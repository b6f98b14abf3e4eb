//! The tools that a client sees: the core, further sets, only those that read.

use std::collections::BTreeSet;

/// Tools that are always listed. The others are in sets, and `find_operations` finds them.
pub const CORE: &[&str] = &[
    "send_email",
    "send_batch",
    "list_emails",
    "get_email",
    "explain_email",
    "cancel_email",
    "list_received_emails",
    "get_received_email",
    "reply_to_received_email",
    "list_domains",
    "get_domain",
    "diagnose_domain",
    "verify_domain",
    "list_templates",
    "get_template",
    "preview_template",
    "publish_template",
    "check_suppressions",
    "create_suppression",
    "delete_suppression",
    "list_webhook_deliveries",
    "replay_webhook_delivery",
    "send_event",
    "list_automation_runs",
    "get_account",
];

/// Sets of further tools, with the nouns of the API that each covers.
pub const TOOLSETS: &[(&str, &[&str])] = &[
    ("emails", &["emails"]),
    ("received_emails", &["received_emails"]),
    ("domains", &["domains"]),
    ("templates", &["templates"]),
    ("suppressions", &["suppressions", "category_opt_outs"]),
    ("webhooks", &["webhooks"]),
    ("events", &["events", "visits"]),
    ("automations", &["automations"]),
    (
        "affiliates",
        &["affiliates", "affiliate_campaigns", "affiliate_referrals", "affiliate_commissions", "affiliate_payouts"],
    ),
    ("account", &["account", "api_keys", "smtp_credentials", "grants", "approvals", "audit_log", "logs"]),
];

/// The set of a noun.
pub fn toolset_of(tag: &str) -> Option<&'static str> {
    TOOLSETS.iter().find(|(_, tags)| tags.contains(&tag)).map(|(name, _)| *name)
}

/// The tools that a client chose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSelection {
    /// Names of sets beside the core.
    pub toolsets: BTreeSet<&'static str>,
    /// True to offer nothing that changes or sends anything.
    pub read_only: bool,
}

impl ToolSelection {
    /// Reads `?toolsets=affiliates,automations&read_only=true`.
    ///
    /// # Errors
    /// A set or a value is unknown; the text says which exist.
    pub fn from_query(query: &str) -> Result<Self, String> {
        let mut selection = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "toolsets" => selection.add(&value)?,
                "read_only" => {
                    selection.read_only = match &*value {
                        "true" | "1" | "" => true,
                        "false" | "0" => false,
                        _ => return Err("`read_only` must be `true` or `false`".into()),
                    }
                }
                _ => {}
            }
        }
        Ok(selection)
    }

    /// Adds sets by a list of names with commas; `all` is every set, and `core` is always there.
    ///
    /// # Errors
    /// A name is unknown; the text says which exist.
    pub fn add(&mut self, names: &str) -> Result<(), String> {
        for name in names.split(',').map(str::trim).filter(|name| !matches!(*name, "" | "core")) {
            if name == "all" {
                self.toolsets.extend(TOOLSETS.iter().map(|(name, _)| *name));
                continue;
            }
            let Some((known, _)) = TOOLSETS.iter().find(|(known, _)| *known == name) else {
                let known: Vec<&str> = TOOLSETS.iter().map(|(name, _)| *name).collect();
                return Err(format!("There is no such toolset; the toolsets are {} and all", known.join(", ")));
            };
            self.toolsets.insert(known);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_choose_sets() {
        let chosen = ToolSelection::from_query("toolsets=affiliates,automations&read_only=true&x=1").unwrap();
        assert_eq!(chosen.toolsets, BTreeSet::from(["affiliates", "automations"]));
        assert!(chosen.read_only);
        let all = ToolSelection::from_query("toolsets=core,all").unwrap();
        assert_eq!(all.toolsets.len(), TOOLSETS.len());
        assert_eq!(ToolSelection::from_query("").unwrap(), ToolSelection::default());
        assert!(ToolSelection::from_query("toolsets=money").unwrap_err().contains("affiliates, account and all"));
        assert!(ToolSelection::from_query("read_only=maybe").is_err());
    }
}
