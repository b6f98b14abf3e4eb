//! Claims: moving a domain from another account by proving control of its DNS.

use super::records::RecordCard;
use super::{DomainRecord, PATH, TITLE, domain_page};
use crate::dashboard::prelude::*;

const CLAIMS: &str = "/dashboard/domains/claims";

#[derive(Debug, Deserialize)]
struct DomainClaim {
    id: String,
    name: String,
    status: String,
    record: DomainRecord,
    blocked_reason: Option<String>,
    grace_ends_at: Option<String>,
    created_at: String,
    expires_at: String,
}

impl DomainClaim {
    fn page(&self) -> String {
        format!("{CLAIMS}/{}", encode(&self.id))
    }

    fn badge(&self) -> Badge {
        let tone = match self.status.as_str() {
            "completed" | "verified" => Tone::Good,
            "blocked" => Tone::Warning,
            "expired" => Tone::Bad,
            _ => Tone::of(&self.status),
        };
        let label = match self.status.as_str() {
            "pending" => "Waiting for the record",
            "verified" => "Proven",
            "blocked" => "Proven, waits",
            "completed" => "Completed",
            "expired" => "Expired",
            "cancelled" => "Cancelled",
            other => other,
        };
        Badge::new(label, tone)
    }

    fn is_open(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "verified" | "blocked")
    }

    /// The next step, in words.
    fn next_step(&self) -> &'static str {
        match (self.status.as_str(), self.blocked_reason.as_deref()) {
            ("pending", _) => {
                "Publish the record below, then verify. DNS changes can take a few minutes to become visible."
            }
            ("completed", _) => "The domain now belongs to this account.",
            ("expired", _) => "The record was not found in time. Add the domain again to start a new claim.",
            ("cancelled", _) => "The claim was cancelled; the domain stays with the other account.",
            (_, Some("grace_period")) => {
                "The other account was notified and can object until the end of its grace period. Keep the record."
            }
            (_, Some("recent_owner_activity")) => {
                "The other account has recently sent from the domain. Verify again once it has stopped."
            }
            (_, Some("pending_scheduled_emails")) => {
                "The other account has scheduled emails from the domain. Verify again once they have been sent."
            }
            _ => "The record was found. Verify again to complete the claim.",
        }
    }
}

pub(super) async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("list_domain_claims").query("cursor", context.query().get("cursor"));
    let found: &List<DomainClaim> = &context.read_list("claims", &call).await?;
    let table = Table::of("Claims", &found.entries)
        .column("Domain", |claim| link(claim.page(), &claim.name))
        .column("State", |claim| claim.badge())
        .column("Started", |claim| time_or_dash(Some(&claim.created_at)))
        .column("Expires", |claim| time_or_dash(Some(&claim.expires_at)));
    let empty = EmptyState {
        title: "No claims",
        text: "If a domain of yours belongs to another account, add it here: you can then claim it.",
        action: context.allows("create_domain").then_some(("/dashboard/domains/new", "Add a domain")),
    };
    let body = found.fragment(context, &table, empty);
    Ok(Page::new("Domain claims", body).below(PATH, TITLE).same_as(call).into())
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_domain_claim").id(context.id());
    let claim: DomainClaim = context.read_field("claim", &call).await?;
    let verify = Form::new("verify", "Verify now", Vec::new());
    let cancel = Form::new("cancel", "Cancel the claim", Vec::new()).secondary();
    let facts = Facts::new()
        .row("State", claim.badge())
        .optional(
            "Grace period for the other account ends",
            claim.grace_ends_at.as_deref().map(|time| time_or_dash(Some(time))),
        )
        .row("Started", time_or_dash(Some(&claim.created_at)))
        .row("Expires", time_or_dash(Some(&claim.expires_at)));
    let body = maud_borrow! {
        div.card {
            (facts)
            p { (claim.next_step()) }
            @if claim.status == "completed" { p { a.button.primary href=(domain_page(&claim.name)) { "Go to the domain" } } }
        }
        @if claim.is_open() {
            section { h2 { "Record to publish" } (RecordCard { record: &claim.record, domain: &claim.name }) }
            div.buttons {
                @if context.allows("verify_domain_claim") { (verify.within(context)) }
                @if context.allows("cancel_domain_claim") { (cancel.within(context)) }
            }
        }
    };
    let page = Page::new(format!("Claim of {}", claim.name), body).below(PATH, TITLE).below(CLAIMS, "Claims");
    Ok(page.same_as(call).live().into())
}

pub(super) async fn create(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = Call::new("create_domain_claim").json(json!({"name": context.form().get("name")}));
    let claim: DomainClaim = context.read_field("claim", &call).await?;
    Ok(Outcome::done(claim.page(), "created"))
}

pub(super) async fn verify(context: &Context<'_>) -> Result<Outcome, Failure> {
    let claim: DomainClaim = context.read_field("claim", &Call::new("verify_domain_claim").id(context.id())).await?;
    Ok(Outcome::done(claim.page(), "verified"))
}

pub(super) async fn cancel(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&Call::new("cancel_domain_claim").id(context.id()), CLAIMS, "cancelled").await
}
