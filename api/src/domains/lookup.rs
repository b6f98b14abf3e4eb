//! Finds a domain of the tenant, and the number of domains that its plan includes.

use model::domain::SendingDomain;

use super::error::domain_not_found;
use super::request::DomainKey;
use crate::prelude::*;

/// Finds a domain of the tenant by id or name. A key that is restricted to another domain gets 404.
pub(super) async fn find(state: &AppState, tenant: &Tenant, domain_key: &DomainKey) -> Result<SendingDomain> {
    let (store, account) = (&state.services.store, tenant.account().id);
    let found = match domain_key {
        DomainKey::Id(id) => store::domain::get(store, account, *id).await?,
        DomainKey::Name(name) => store::domain::find_by_name(store, name).await?,
    };
    let is_reached = |domain: &SendingDomain| {
        domain.account == account && tenant.bound_to().is_none_or(|bound_domain: DomainId| bound_domain == domain.id)
    };
    found.filter(is_reached).ok_or_else(domain_not_found)
}

/// Number of domains that the tenant's plan includes; `None` is unlimited.
pub(super) fn domain_limit(state: &AppState, tenant: &Tenant) -> Option<u32> {
    state.accounts.limits.plans.of(tenant.account().plan).domains
}
