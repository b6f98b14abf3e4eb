//! Paths of the program's objects by id. A malformed id is answered 404, like an unknown one.

use crate::prelude::*;

/// Defines the type of a path id. A malformed id is answered 404, like an unknown one.
macro_rules! in_path {
    ($name:ident($id:ty) $about:literal) => {
        #[derive(Debug, Clone, Copy)]
        pub struct $name(pub(super) Option<$id>);

        impl $name {
            pub(super) fn id(self, noun: ::affiliate::error::AffiliateNoun) -> Result<$id> {
                self.0.ok_or_else(|| Problem::not_found(noun.word()))
            }
        }

        impl FromRequest for $name {
            fn parameters() -> Vec<Value> {
                vec![schema::path_parameter("id", $about)]
            }

            fn read(call: &Request) -> Result<Self> {
                Ok(Self(call.path_parameter("id").parse().ok()))
            }
        }
    };
}

in_path! { PartnerPath(PartnerId) "The partner's id (`aff_…`)" }
in_path! { CampaignPath(CampaignId) "The campaign's id (`cmp_…`)" }
in_path! { BackfillPath(BackfillId) "The backfill's id (`bkf_…`)" }
in_path! { CommissionPath(CommissionId) "The commission's id (`com_…`)" }
in_path! { PayoutPath(PayoutId) "The payout's id (`pay_…`)" }
in_path! { PayoutRunPath(PayoutRunId) "The payout run's id (`prn_…`)" }
in_path! { ReferralPath(ReferralId) "The referral's id (`ref_…`)" }

/// Path of a partner's link.
#[derive(Debug, Clone, Copy)]
pub struct PartnerLinkPath(pub(super) PartnerPath, pub(super) Option<PartnerLinkId>);

impl FromRequest for PartnerLinkPath {
    fn parameters() -> Vec<Value> {
        [PartnerPath::parameters(), vec![schema::path_parameter("link_id", "The link's id (`afl_…`)")]].concat()
    }

    fn read(call: &Request) -> Result<Self> {
        Ok(Self(PartnerPath::read(call)?, call.path_parameter("link_id").parse().ok()))
    }
}
