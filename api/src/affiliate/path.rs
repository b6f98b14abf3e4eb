//! Paths of the program's objects by id.

use ::affiliate::error::AffiliateNoun as Noun;

use crate::prelude::*;

deferred_id_path! { pub PartnerPath("id": PartnerId), "The partner's id (`aff_…`)", Noun::Partner.word() }
deferred_id_path! { pub PartnerLinkPath("link_id": PartnerLinkId), "The link's id (`afl_…`)", Noun::Link.word() }
deferred_id_path! { pub CampaignPath("id": CampaignId), "The campaign's id (`cmp_…`)", Noun::Campaign.word() }
deferred_id_path! { pub BackfillPath("id": BackfillId), "The backfill's id (`bkf_…`)", Noun::Backfill.word() }
deferred_id_path! { pub CommissionPath("id": CommissionId), "The commission's id (`com_…`)", Noun::Commission.word() }
deferred_id_path! { pub PayoutPath("id": PayoutId), "The payout's id (`pay_…`)", Noun::Payout.word() }
deferred_id_path! { pub PayoutRunPath("id": PayoutRunId), "The payout run's id (`prn_…`)", Noun::Run.word() }
deferred_id_path! { pub ReferralPath("id": ReferralId), "The referral's id (`ref_…`)", Noun::Referral.word() }
