//! Storage quotas of each plan. Every resource that callers can store without limit is a line of one table; rows that
//! expire or derive from others are bounded elsewhere (`store/src/quota.rs` lists them).

use crate::account::Plan;

macro_rules! table {
    ($(#[doc = $doc:literal] $noun:ident $word:literal $free:expr, $pro:expr, $scale:expr;)*) => {
        /// A stored resource with a cap, counted by number or by bytes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Noun {
            $(#[doc = $doc] $noun,)*
        }

        impl Noun {
            /// All resources, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$noun),*];

            /// Name in the API, in errors and in the configuration.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$noun => $word,)*
                }
            }

            /// A description of the stored things that are counted, without a full stop.
            pub fn description(self) -> &'static str {
                let sentence = match self {
                    $(Self::$noun => $doc,)*
                };
                sentence.trim_start().trim_end_matches('.')
            }

            /// The default cap of a plan; `None` is unlimited.
            pub fn default_cap(self, plan: Plan) -> Option<u64> {
                let [free, pro, scale] = match self {
                    $(Self::$noun => [$free, $pro, $scale],)*
                };
                match plan {
                    Plan::Free => Some(free),
                    Plan::Pro => Some(pro),
                    Plan::Scale => Some(scale),
                    Plan::Dedicated => None,
                }
            }
        }
    };
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

table! {
    /// Bytes of the messages of sent emails within the retention period.
    EmailBytes "email_bytes" GIB, 50 * GIB, 500 * GIB;
    /// Suppressed addresses and domains, of any origin.
    Suppressions "suppressions" 20_000, 500_000, 2_000_000;
    /// Opt-outs from one category.
    CategoryOptOuts "category_opt_outs" 20_000, 500_000, 2_000_000;
    /// Templates, including archived ones.
    Templates "templates" 100, 1_000, 5_000;
    /// Bytes of drafts and versions of templates.
    TemplateBytes "template_bytes" 50 * MIB, 500 * MIB, 2 * GIB;
    /// Product events within the retention period.
    ProductEvents "product_events" 100_000, 2_000_000, 10_000_000;
    /// Bytes of product events.
    ProductEventBytes "product_event_bytes" 200 * MIB, 2 * GIB, 10 * GIB;
    /// Received emails within the retention period.
    ReceivedEmails "received_emails" 10_000, 200_000, 1_000_000;
    /// Bytes of the messages of received emails.
    ReceivedBytes "received_bytes" GIB, 20 * GIB, 100 * GIB;
    /// Automations, including archived ones.
    Automations "automations" 20, 200, 1_000;
    /// Bytes of all versions of automations.
    AutomationBytes "automation_bytes" 20 * MIB, 200 * MIB, GIB;
    /// Webhook endpoints.
    Webhooks "webhooks" 10, 50, 50;
    /// API keys.
    ApiKeys "api_keys" 50, 200, 1_000;
    /// SMTP credentials.
    SmtpCredentials "smtp_credentials" 20, 200, 1_000;
    /// Users, including invited ones.
    Users "users" 10, 100, 1_000;
    /// Claims to domains of other accounts, including closed ones.
    DomainClaims "domain_claims" 20, 100, 1_000;
    /// Partners of the affiliate program.
    Affiliates "affiliates" 1_000, 20_000, 200_000;
    /// Links of partners.
    AffiliateLinks "affiliate_links" 5_000, 100_000, 1_000_000;
    /// Campaigns of the affiliate program.
    AffiliateCampaigns "affiliate_campaigns" 20, 100, 1_000;
    /// People referred by partners.
    AffiliateReferrals "affiliate_referrals" 10_000, 500_000, 5_000_000;
    /// Bytes of events of the payment processor within 90 days.
    AffiliateEventBytes "affiliate_event_bytes" 20 * MIB, GIB, 10 * GIB;
}

impl Noun {
    /// Returns whether it is counted in bytes.
    pub fn is_bytes(self) -> bool {
        matches!(
            self,
            Self::EmailBytes
                | Self::TemplateBytes
                | Self::ProductEventBytes
                | Self::ReceivedBytes
                | Self::AutomationBytes
                | Self::AffiliateEventBytes
        )
    }

    /// Parses the name in the API.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|noun| noun.word() == word)
    }
}

/// The caps of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanQuotas([Option<u64>; Noun::ALL.len()]);

impl PlanQuotas {
    pub fn for_plan(plan: Plan) -> Self {
        let mut caps = [None; Noun::ALL.len()];
        caps.iter_mut().zip(Noun::ALL).for_each(|(cap, noun)| *cap = noun.default_cap(plan));
        Self(caps)
    }

    /// The cap of a resource; `None` is unlimited.
    pub fn cap(&self, noun: Noun) -> Option<u64> {
        self.0.get(noun as usize).copied().flatten()
    }

    pub fn set(&mut self, noun: Noun, cap: Option<u64>) {
        if let Some(current) = self.0.get_mut(noun as usize) {
            *current = cap;
        }
    }
}

/// A quota that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaExceeded {
    pub noun: Noun,
    /// Current usage; if it is above the cap, a lower bound.
    pub used: u64,
    pub cap: u64,
}

impl std::fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { noun, used, cap } = self;
        write!(f, "the plan includes {cap} {}, {used} are stored", noun.word().replace('_', " "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_plans_have_no_smaller_limits() {
        for noun in Noun::ALL {
            let caps = [Plan::Free, Plan::Pro, Plan::Scale].map(|plan| PlanQuotas::for_plan(plan).cap(*noun).unwrap());
            assert!(caps.is_sorted(), "{noun:?}");
            assert_eq!(PlanQuotas::for_plan(Plan::Dedicated).cap(*noun), None);
            assert_eq!(Noun::from_word(noun.word()), Some(*noun));
        }
    }
}
