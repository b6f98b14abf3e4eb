//! Sending domains: their DNS records, keys, reports and settings.

mod add;
mod claims;
mod delete;
mod dkim;
mod dmarc;
mod list;
mod providers;
mod publish;
mod records;
mod saved;
mod settings;
#[cfg(test)]
mod tests;

use explain::domain::{DomainStanding, RecordStanding};

use crate::dashboard::form::plain;
use crate::dashboard::prelude::*;

const PATH: &str = "/dashboard/domains";
const TITLE: &str = "Domains";
/// The name of the path parameter in the API.
const KEY: &str = "id_or_name";

pub const PAGES: &[PageRow] = page_rows! {
    "/domains" => list::show, reads ["list_domains"];
    "/domains/new" => add::show, reads ["create_domain"], forms {
        "add" => add::submit, calls "create_domain";
        "claim" => claims::create, calls "create_domain_claim";
    };
    "/domains/claims" => claims::list, reads ["list_domain_claims"];
    "/domains/claims/{id}" => claims::show, reads ["get_domain_claim"], forms {
        "verify" => claims::verify, calls "verify_domain_claim";
        "cancel" => claims::cancel, calls "cancel_domain_claim";
    };
    "/domains/dns-credentials" => saved::show, reads ["list_dns_credentials"];
    "/domains/dns-credentials/new" => saved::show_save, reads ["save_dns_credentials"], forms {
        "save" => saved::save, calls "save_dns_credentials";
    };
    "/domains/dns-credentials/{provider}/delete" => saved::show_delete, reads ["list_dns_credentials", "delete_dns_credentials"], forms {
        "delete" => saved::delete, calls "delete_dns_credentials";
    };
    "/domains/{id}" => records::show, reads ["get_domain"], forms {
        "verify" => records::verify, calls "verify_domain";
    };
    "/domains/{id}/zone-file" => records::zone_file, reads ["get_domain", "get_domain_zone_file"];
    "/domains/{id}/publish" => publish::show, reads ["get_domain", "apply_domain_dns"], forms {
        "apply" => publish::apply, calls "apply_domain_dns";
        "apply-saved" => publish::apply, calls "apply_domain_dns";
        "connect" => publish::connect, calls "connect_domain_dns";
    };
    "/domains/{id}/dmarc" => dmarc::show, reads ["get_domain_dmarc"];
    "/domains/{id}/keys" => dkim::show, reads ["get_domain"], forms {
        "rotate" => dkim::rotate, calls "rotate_domain_dkim";
        "cancel" => dkim::cancel, calls "cancel_domain_dkim_rotation";
    };
    "/domains/{id}/settings" => settings::show, reads ["get_domain", "update_domain"], forms {
        "settings" => settings::submit, calls "update_domain";
    };
    "/domains/{id}/delete" => delete::show, reads ["get_domain", "delete_domain"], forms {
        "delete" => delete::submit, calls "delete_domain";
    };
};

#[answer]
pub(super) struct SendingDomain {
    pub id: String,
    pub name: String,
    status: String,
    inbound_enabled: bool,
    inbound_addresses: Vec<String>,
    open_tracking: bool,
    click_tracking: bool,
    tls_mode: String,
    tracking_host: Option<String>,
    dkim: Dkim,
    dkim_ready: bool,
    pub records: Vec<DomainRecord>,
    pub degraded_since: Option<String>,
    pub last_checked_at: Option<String>,
    created_at: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Dkim {
    selector: String,
    key_bits: u32,
    pending_selector: Option<String>,
    former_selector: Option<String>,
    former_until: Option<String>,
}

#[answer]
pub(super) struct DomainRecord {
    purpose: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    value: String,
    ttl: u32,
    priority: Option<u16>,
    pub required: bool,
    pub status: String,
    found: Vec<String>,
    pub error: Option<String>,
}

impl SendingDomain {
    fn page(&self) -> String {
        domain_page(&self.id)
    }

    fn badge(&self) -> Badge {
        if self.degraded_since.is_some() { Badge::new("Degraded", Tone::Warning) } else { Badge::of(&self.status) }
    }

    /// The domain as it is explained.
    fn standing(&self) -> DomainStanding {
        let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
        DomainStanding {
            name: self.name.clone(),
            status: self.status.clone(),
            dkim_ready: self.dkim_ready,
            records: self.records.iter().map(DomainRecord::standing).collect(),
            degraded_since: time(&self.degraded_since),
            last_checked_at: time(&self.last_checked_at),
        }
    }

    /// The records that keep it from being verified, or will.
    fn wrong_records(&self) -> impl Iterator<Item = &DomainRecord> {
        self.records
            .iter()
            .filter(|record| record.required && record.status != "verified" && record.status != "pending")
    }
}

impl DomainRecord {
    fn purpose_title(&self) -> &'static str {
        match self.purpose.as_str() {
            "ownership" => "Ownership",
            "dkim" => "Signature (DKIM)",
            "return_path" => "Return path",
            "spf" => "Permitted senders (SPF)",
            "dmarc" => "Policy (DMARC)",
            "inbound" => "Receiving mail (MX)",
            "tracking" => "Tracking host",
            _ => "Record",
        }
    }

    /// The record as it is explained: in the words of the command line and the assistants' tools.
    fn standing(&self) -> RecordStanding {
        RecordStanding {
            purpose: self.purpose.clone(),
            kind: self.kind.clone(),
            name: self.name.clone(),
            value: self.value.clone(),
            priority: self.priority.map(u32::from),
            required: self.required,
            status: self.status.clone(),
            found: self.found.clone(),
            error: self.error.as_deref().map(plain),
        }
    }
}

fn domain_page(id: &str) -> String {
    format!("{PATH}/{}", encode(id))
}

/// The call of an operation on the domain of the path.
fn domain_call(operation: &'static str, context: &Context<'_>) -> Call {
    Call::new(operation).parameter(KEY, context.id())
}

async fn read_domain(context: &Context<'_>) -> Result<SendingDomain, Failure> {
    context.read_field("domain", &domain_call("get_domain", context)).await
}

/// The views of one domain.
fn domain_tabs(context: &Context<'_>, id: &str, current: &str) -> impl Renderable {
    let tabs = [
        ("", "Records", "get_domain"),
        ("/publish", "Publish", "apply_domain_dns"),
        ("/dmarc", "DMARC reports", "get_domain_dmarc"),
        ("/keys", "Signing keys", "get_domain"),
        ("/settings", "Settings", "update_domain"),
    ];
    let path = domain_page(id);
    maud! {
        nav.tabs aria-label="Views of the domain" {
            @for (tab, title, operation) in tabs {
                @if context.allows(operation) {
                    a href={ (path) (tab) } aria-current=[(tab == current).then_some("page")] { (title) }
                }
            }
        }
    }
}

/// A page of one domain: its tabs, then the content.
fn domain_view(context: &Context<'_>, domain: &SendingDomain, tab: &str, content: impl Renderable, call: Call) -> View {
    let body = maud_borrow! {
        (domain_tabs(context, &domain.id, tab))
        (content)
    };
    let actions = maud_borrow! {
        (domain.badge())
        @if context.allows("delete_domain") { a.button href={ (domain.page()) "/delete" } { "Delete" } }
    };
    Page::new(domain.name.clone(), body).below(PATH, TITLE).actions(actions).same_as(call).into()
}
