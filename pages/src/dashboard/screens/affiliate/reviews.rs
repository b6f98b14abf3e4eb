//! Reviews: referrals that look suspicious are held, and the owner allows or rejects them.

use super::commissions::{CommissionRow, commission_table};
use super::referrals::{ReferralAnswer, ReferralRow, referral_path};
use super::{PATH, PartnerNames, set_up_first};
use crate::dashboard::prelude::*;

const REVIEWS_PATH: &str = "/dashboard/affiliate/reviews";

pub const PAGES: &[PageRow] = page_rows! {
    "/affiliate/reviews" => list, reads ["list_affiliate_reviews"];
    "/affiliate/reviews/{id}" => detail, reads ["get_affiliate_review", "get_affiliate_referral"], forms {
        "allow" => decide("allow_affiliate_referral", "allowed"), calls "allow_affiliate_referral";
        "reject" => decide("reject_affiliate_referral", "rejected"), calls "reject_affiliate_referral";
    };
};

#[answer]
struct ReviewRow {
    referral_id: String,
    affiliate_id: String,
    flags: Vec<String>,
    status: String,
    created_at: Option<String>,
    decided_at: Option<String>,
}

/// Why a referral is held, in a few words and as a sentence.
fn flag_texts(flag: &str) -> (String, &'static str) {
    let (short, long) = match flag {
        "company_domain" => {
            ("Partner's own company", "The person's email address has the same domain as the partner's.")
        }
        "same_ip" => ("Same network", "The partner and the person used the same network within a day."),
        "disposable_domain" => ("Disposable address", "The email address belongs to a disposable email provider."),
        "paid_click" => ("Paid click", "The visit came from an ad. The partner may be bidding on your brand name."),
        "banned_referrer" => ("Referring site", "The visit came from a site on the program's list of sites to review."),
        "velocity" => (
            "Unusually many at once",
            "The partner brought more referrals in an hour, or more bounties in a day, than the program allows.",
        ),
        "payout_destination" => ("Shared payout destination", "Another partner has the same payout destination."),
        other => return (sentence_case(other), ""),
    };
    (short.to_owned(), long)
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let choices = choices(&[("open", "Open"), ("allowed", "Allowed"), ("rejected", "Rejected"), ("", "All")]);
    let filters = [Filter::select("status", "Decision", choices)];
    let query = context.query();
    let status = query.find("status").unwrap_or("open");
    let call = Call::new("list_affiliate_reviews").query("status", status).query("cursor", query.get("cursor"));
    let Some(found) = &if_found(context.read_list::<ReviewRow>("data", &call).await)? else {
        return Ok(set_up_first("Reviews"));
    };
    let partners = PartnerNames::load(context, found.entries.iter().map(|row| row.affiliate_id.as_str())).await;
    let table = Table::of("Referrals held for review", &found.entries)
        .column("Referral", |review| {
            maud! {
                a href={ (REVIEWS_PATH) "/" (encode(&review.referral_id)) } { code { (review.referral_id) } }
            }
        })
        .column("Partner", |review| partners.link(&review.affiliate_id))
        .column("Why it is held", |review| {
            maud! {
                @for flag in &review.flags { (Badge::new(flag_texts(flag).0, Tone::Warning)) " " }
            }
        })
        .column("Decision", |review| decision_badge(&review.status))
        .column("Since", |review| time_or_dash(review.created_at.as_deref()));
    let empty = EmptyState {
        title: if status == "open" { "Nothing to review" } else { "No matching reviews" },
        text: "Referrals that look fraudulent are held here. They are not paid until someone decides.",
        action: None,
    };
    let body = FilterBar { context, filters: &filters }.with_list(found, &table, empty);
    let page = Page::new("Reviews", body)
        .below(PATH, "Affiliate program")
        .lead("These referrals are held until they are allowed or rejected.");
    Ok(page.same_as(call).live().into())
}

fn decision_badge(status: &str) -> Badge {
    match status {
        "open" => Badge::new("Open", Tone::Warning),
        "allowed" => Badge::new("Allowed", Tone::Good),
        other => Badge::of(other),
    }
}

async fn detail(context: &Context<'_>) -> Result<View, Failure> {
    let found: ReferralAnswer = context.read(&Call::new("get_affiliate_referral").id(context.id())).await?;
    let referral = &found.referral;
    // A referral that was never held has no review.
    let call = Call::new("get_affiliate_review").id(&referral.id);
    let review: Option<ReviewRow> = if_found(context.read_field("review", &call).await)?;
    let call = Call::new("list_affiliate_commissions").query("referral_id", &referral.id).query("limit", "100");
    let lines: List<CommissionRow> = context.read_list("data", &call).await?;
    let ids = lines.entries.iter().map(|line| line.affiliate_id.as_str()).chain([referral.affiliate_id.as_str()]);
    let partners = PartnerNames::load(context, ids).await;
    let open: Vec<_> =
        lines.entries.into_iter().filter(|line| matches!(line.status.as_str(), "pending" | "earned")).collect();
    let table = commission_table(&open, &partners, false);
    let is_rejected = referral.status == "rejected";
    let body = maud! {
        section.card {
            p {
                a href=(referral_path(&referral.id)) { (referral.name()) } " was brought by "
                (partners.link(&referral.affiliate_id)) " " (time_or_dash(referral.created_at.as_deref())) "."
            }
            @match &review {
                Some(review) => {
                    p { (decision_badge(&review.status)) @if review.decided_at.is_some() { " " (time_or_dash(review.decided_at.as_deref())) } }
                    ul { @for flag in &review.flags { li { strong { (flag_texts(flag).0) } ". " (flag_texts(flag).1) } } }
                }
                None => { p { "Nothing about this referral looked suspicious. You can reject it anyway." } }
            }
        }
        @if !table.is_empty() {
            section { h2 { "Commissions at stake" } (table) }
        }
        (decision_forms(context, referral, open.len(), is_rejected))
    };
    let page = Page::new("Review a referral", body).below(PATH, "Affiliate program").below(REVIEWS_PATH, "Reviews");
    Ok(page
        .same_as(Call::new("allow_affiliate_referral").id(&referral.id))
        .same_as(Call::new("reject_affiliate_referral").id(&referral.id))
        .into())
}

/// `open`: commissions that are not paid and not reversed.
fn decision_forms(context: &Context<'_>, referral: &ReferralRow, open: usize, is_rejected: bool) -> impl Renderable {
    let (allow, reject) = (Form::new("allow", "Allow", Vec::new()), Form::new("reject", "Reject", Vec::new()).danger());
    maud! {
        div.columns {
            @if context.allows("allow_affiliate_referral") {
                section.card {
                    h2 { "Allow" }
                    ul {
                        @if is_rejected {
                            li { "The referral returns to its former status." }
                            li { "Its reversed commissions stay reversed; you can reinstate each." }
                        } @else {
                            li { "Its commissions are released: they are earned after their hold, and paid." }
                        }
                        li { "Later payments of " (referral.name()) " earn commissions." }
                    }
                    (allow.within(context))
                }
            }
            @if !is_rejected && context.allows("reject_affiliate_referral") {
                section.card {
                    h2 { "Reject" }
                    ul {
                        @match open {
                            0 => { li { "There is no open commission to reverse." } }
                            1 => { li { "Its open commission is reversed as fraud." } }
                            count => { li { "Its " (count) " open commissions are reversed as fraud." } }
                        }
                        li { "Later payments of " (referral.name()) " earn nothing." }
                        li { "What has been paid stays paid." }
                    }
                    (reject.within(context))
                }
            }
        }
    }
}

async fn decide(context: &Context<'_>, operation: &'static str, done: &str) -> Result<Outcome, Failure> {
    context.act(&Call::new(operation).id(context.id()), REVIEWS_PATH, done).await
}
