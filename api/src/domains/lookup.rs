//! Finds a domain of the tenant, and the number of domains that its plan includes.

use mail::domain::SendingDomain;
use mail::id::DomainId;
use store::access::Tenant;

use super::error::domain_not_found;
use super::request::DomainKey;
use crate::problem::Problem;
use crate::state::AppState;

/// Finds a domain of the tenant by id or name. A key that is restricted to another domain gets 404.
pub(super) async fn find(room: &AppState, tenant: &Tenant, which: &DomainKey) -> Result<SendingDomain, Problem> {
    let (store, account) = (room.intake.store(), tenant.account().id);
    let found = match which {
        DomainKey::Id(id) => store::domain::get(store, account, *id).await?,
        DomainKey::Name(name) => store::domain::find_by_name(store, name).await?,
    };
    let is_reached = |domain: &SendingDomain| {
        domain.account == account && tenant.bound_to().is_none_or(|bond: DomainId| bond == domain.id)
    };
    found.filter(is_reached).ok_or_else(domain_not_found)
}

/// Number of domains that the tenant's plan includes; `None` is unlimited.
pub(super) fn domain_limit(room: &AppState, tenant: &Tenant) -> Option<u32> {
    room.intake.plans().of(tenant.account().plan).domains
}
