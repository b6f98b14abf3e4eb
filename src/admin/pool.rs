//! Answering questions about pools of source addresses.

use ::queue::pools::{PoolStatus, WarmUpStatus};
use mail::given_name::PoolName;
use mail::id::AccountId;
use mail::pool::WarmUpOverride;
use serde_json::{Value, json};

use super::answer::{AdminResult, error_text};
use crate::world::Services;

/// Providers shown to which no more may go at the moment.
const SHOWN_MAX: usize = 100;

fn warm_up_view(standing: &WarmUpStatus) -> Value {
    let WarmUpStatus { since, day, days, per_day, used_up } = standing;
    let used_up: Vec<Value> =
        used_up.iter().take(SHOWN_MAX).map(|(provider, until)| json!({"provider": provider, "until": until})).collect();
    json!({"since": since, "day": day, "days": days, "messages_per_day": per_day, "used_up": used_up})
}

fn pool_view(pool: &PoolStatus, accounts: &[AccountId]) -> Value {
    json!({
        "name": pool.source.pool,
        "addresses": pool.source.addresses,
        "hostname": pool.source.helo,
        "plans": pool.plans,
        "accounts": accounts,
        "spill_over": pool.spill_over,
        "warm_up": pool.warm_up.as_ref().map(warm_up_view),
        "warm_up_ordered": pool.ordered,
        "ready": pool.ready,
    })
}

/// How the pools stand.
pub(super) fn list_pools(world: &Services) -> Value {
    let mut accounts = world.worker.accounts_by_pool();
    let of = |pool: &PoolStatus| pool_view(pool, &accounts.remove(&pool.source.pool).unwrap_or_default());
    let pools: Vec<Value> = world.worker.pool_statuses().iter().map(of).collect();
    // Orders about pools that are configured no more: the accounts' mail leaves as that of others of their plan.
    let warm_ups = world.worker.orphaned_warm_ups();
    json!({"pools": pools, "not_configured": {"accounts": accounts, "warm_up_ordered": warm_ups}})
}

fn pool_by_name(world: &Services, name: &PoolName) -> Value {
    let accounts = world.worker.accounts_by_pool().remove(name).unwrap_or_default();
    let found = world.worker.pool_statuses().into_iter().find(|pool| pool.source.pool == *name);
    json!({"pool": found.map(|pool| pool_view(&pool, &accounts))})
}

/// Has an account's mail leave from a pool.
pub(super) async fn assign_pool(world: &Services, account: &str, pool: Option<PoolName>) -> AdminResult {
    let found = store::account::find(&world.store, account).await.map_err(error_text)?;
    let id = found.ok_or_else(|| format!("there is no account {account}"))?.id;
    tracing::info!(account.id = %id, pool = pool.as_ref().map(PoolName::as_str), "the operator assigns a pool");
    world.worker.assign_pool(id, pool.clone()).await.map_err(error_text)?;
    Ok(json!({"account": id, "pool": pool}))
}

/// Has a pool be warmed up from another day on.
pub(super) async fn set_warm_up(world: &Services, pool: PoolName, warm_up: Option<WarmUpOverride>) -> AdminResult {
    tracing::info!(%pool, ?warm_up, "the operator changes a warm-up");
    world.worker.warm_up_pool(pool.clone(), warm_up).await.map_err(error_text)?;
    Ok(pool_by_name(world, &pool))
}
