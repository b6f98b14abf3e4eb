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
use hypertext::{Buffer, maud_borrow, prelude::*};
use serde::Deserialize;

use super::encode;
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::form::plain;
use crate::dashboard::kit::badge::{Badge, Tone};
use crate::dashboard::page::Page;
use crate::dashboard::table::{FormRow, PageAccess, PageRow, View};

const PATH: &str = "/dashboard/domains";
const TITLE: &str = "Domains";
/// The name of the path parameter in the API.
const KEY: &str = "id_or_name";

/// A page without forms.
macro_rules! page {
    ($path:literal, $reads:expr, $show:path, $forms:expr) => {
        PageRow {
            path: $path,
            access: PageAccess::SignedIn,
            reads: &$reads,
            show: |context| Box::pin($show(context)),
            forms: &$forms,
        }
    };
}

macro_rules! form {
    ($name:literal, $operation:literal, $submit:path) => {
        FormRow { name: $name, operation: $operation, submit: |context| Box::pin($submit(context)) }
    };
}

pub const PAGES: &[PageRow] = &[
    page!("/domains", ["list_domains"], list::show, []),
    page!(
        "/domains/new",
        ["create_domain"],
        add::show,
        [form!("add", "create_domain", add::submit), form!("claim", "create_domain_claim", claims::create)]
    ),
    page!("/domains/claims", ["list_domain_claims"], claims::list, []),
    page!(
        "/domains/claims/{id}",
        ["get_domain_claim"],
        claims::show,
        [
            form!("verify", "verify_domain_claim", claims::verify),
            form!("cancel", "cancel_domain_claim", claims::cancel)
        ]
    ),
    page!("/domains/dns-credentials", ["list_dns_credentials"], saved::show, []),
    page!(
        "/domains/dns-credentials/new",
        ["save_dns_credentials"],
        saved::show_save,
        [form!("save", "save_dns_credentials", saved::save)]
    ),
    page!(
        "/domains/dns-credentials/{provider}/delete",
        ["list_dns_credentials", "delete_dns_credentials"],
        saved::show_delete,
        [form!("delete", "delete_dns_credentials", saved::delete)]
    ),
    page!("/domains/{id}", ["get_domain"], records::show, [form!("verify", "verify_domain", records::verify)]),
    page!("/domains/{id}/zone-file", ["get_domain", "get_domain_zone_file"], records::zone_file, []),
    page!(
        "/domains/{id}/publish",
        ["get_domain", "apply_domain_dns"],
        publish::show,
        [
            form!("apply", "apply_domain_dns", publish::apply),
            form!("apply-saved", "apply_domain_dns", publish::apply),
            form!("connect", "connect_domain_dns", publish::connect)
        ]
    ),
    page!("/domains/{id}/dmarc", ["get_domain_dmarc"], dmarc::show, []),
    page!(
        "/domains/{id}/keys",
        ["get_domain"],
        dkim::show,
        [
            form!("rotate", "rotate_domain_dkim", dkim::rotate),
            form!("cancel", "cancel_domain_dkim_rotation", dkim::cancel)
        ]
    ),
    page!(
        "/domains/{id}/settings",
        ["get_domain", "update_domain"],
        settings::show,
        [form!("settings", "update_domain", settings::submit)]
    ),
    page!(
        "/domains/{id}/delete",
        ["get_domain", "delete_domain"],
        delete::show,
        [form!("delete", "delete_domain", delete::submit)]
    ),
];

#[derive(Debug, Deserialize)]
struct OneDomain {
    domain: SendingDomain,
}

#[derive(Debug, Deserialize)]
struct SendingDomain {
    id: String,
    name: String,
    status: String,
    inbound_enabled: bool,
    #[serde(default)]
    inbound_addresses: Vec<String>,
    open_tracking: bool,
    click_tracking: bool,
    tls_mode: String,
    tracking_host: Option<String>,
    dkim: Dkim,
    #[serde(default)]
    dkim_ready: bool,
    #[serde(default)]
    records: Vec<DomainRecord>,
    degraded_since: Option<String>,
    last_checked_at: Option<String>,
    created_at: String,
}

#[derive(Debug, Deserialize)]
struct Dkim {
    selector: String,
    key_bits: u32,
    pending_selector: Option<String>,
    former_selector: Option<String>,
    former_until: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct DomainRecord {
    purpose: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    value: String,
    ttl: u32,
    priority: Option<u16>,
    required: bool,
    status: String,
    #[serde(default)]
    found: Vec<String>,
    error: Option<String>,
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
    let one: OneDomain = context.read(&domain_call("get_domain", context)).await?;
    Ok(one.domain)
}

/// The views of one domain.
struct DomainTabs<'a> {
    context: &'a Context<'a>,
    id: &'a str,
    current: &'a str,
}

impl Renderable for DomainTabs<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let tabs = [
            ("", "Records", "get_domain"),
            ("/publish", "Publish", "apply_domain_dns"),
            ("/dmarc", "DMARC reports", "get_domain_dmarc"),
            ("/keys", "Signing keys", "get_domain"),
            ("/settings", "Settings", "update_domain"),
        ];
        let path = domain_page(self.id);
        maud! {
            nav.tabs aria-label="Views of the domain" {
                @for (tab, title, operation) in tabs {
                    @if self.context.allows(operation) {
                        a href={ (path) (tab) } aria-current=[(tab == self.current).then_some("page")] { (title) }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}

/// A page of one domain: its tabs, then the content.
fn domain_view(context: &Context<'_>, domain: &SendingDomain, tab: &str, content: impl Renderable, call: Call) -> View {
    let body = maud_borrow! {
        (DomainTabs { context, id: &domain.id, current: tab })
        (content)
    };
    let actions = maud_borrow! {
        (domain.badge())
        @if context.allows("delete_domain") { a.button href={ (domain.page()) "/delete" } { "Delete" } }
    };
    Page::new(domain.name.clone(), body).below(PATH, TITLE).actions(actions).same_as(call).into()
}
