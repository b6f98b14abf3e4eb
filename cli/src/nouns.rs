//! A sentence about each noun of the command line, for help, completion scripts and manual pages.

/// Each noun with the nouns above it, and the sentence.
const SENTENCES: &[(&str, &str)] = &[
    ("account", "Show the account that the key belongs to"),
    ("affiliate-campaigns", "Manage campaigns: the commissions and terms of partners"),
    ("affiliate-commissions", "Show and reverse what partners earned"),
    ("affiliate-payouts", "Show payments to partners, and mark manual ones as paid"),
    ("affiliate-referrals", "Create and show referrals: people that partners referred"),
    ("affiliates", "Manage the partners of the affiliate program"),
    ("affiliates links", "Manage the links of a partner"),
    ("api-keys", "Manage API keys"),
    ("approvals", "Show requests that wait for a person's approval"),
    ("audit-log", "Show what credentials and users did"),
    ("automations", "Manage automations: emails and steps that follow an event"),
    ("automations runs", "Show and cancel the runs of an automation"),
    ("automations versions", "Show the versions of an automation"),
    ("category-opt-outs", "Manage opt-outs: people who do not want a category of email"),
    ("conversions", "Show sign-ups and subscriptions"),
    ("dns-credentials", "Manage saved credentials of DNS providers"),
    ("domains", "Manage sending and receiving domains"),
    ("domains claims", "Claim a domain that another account has"),
    ("domains dkim", "Rotate the DKIM keys of a domain"),
    ("domains dns", "Publish the DNS records of a domain"),
    ("emails", "Send and inspect emails"),
    ("emails attachments", "Get an attachment of an email"),
    ("emails attempts", "Show the delivery attempts of an email"),
    ("emails events", "Show the events of an email"),
    ("events", "Send and show product events: what people did in your product"),
    ("funnels", "Count how many people did a sequence of steps"),
    ("grants", "Show and revoke what users have allowed apps to do"),
    ("logs", "Show the log of API requests"),
    ("received-emails", "Read, answer and forward received emails"),
    ("received-emails attachments", "Get an attachment of a received email"),
    ("smtp-credentials", "Manage credentials for sending by SMTP"),
    ("suppressions", "Manage suppressions: addresses that get no email"),
    ("templates", "Write, preview and publish templates of emails"),
    ("templates versions", "Show the published versions of a template"),
    ("visits", "Count the visits of your website"),
    ("webhook-events", "Read the stream of webhook events"),
    ("webhooks", "Manage webhook endpoints"),
    ("webhooks deliveries", "Show and replay deliveries to an endpoint"),
];

/// The sentence about a noun, named with the nouns above it: `webhooks deliveries`. Empty if it has none.
pub(crate) fn sentence_about(noun: &str) -> &'static str {
    SENTENCES.iter().find(|(known, _)| *known == noun).map_or("", |(_, sentence)| *sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::OperationTable;

    #[test]
    fn every_noun_has_a_sentence() {
        let table = OperationTable::load();
        let mut missing = Vec::new();
        for head in table.heads() {
            let mut noun = head.command;
            while let Some((above, _)) = noun.rsplit_once(' ') {
                noun = above;
                if sentence_about(noun).is_empty() {
                    missing.push(noun);
                }
            }
        }
        assert!(missing.is_empty(), "add to SENTENCES: {missing:?}");
    }
}
