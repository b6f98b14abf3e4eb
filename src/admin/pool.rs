//! Admin requests about pools of source addresses.

use ::queue::scheduler::source_pools::{PoolStatus, WarmUpStatus};
use model::id::AccountId;
use model::pool::WarmUpOverride;
use model::slug::PoolName;
use serde_json::{Value, json};

use super::error::{AdminResult, error_text};
use super::search;
use crate::services::Server;

/// Maximum number of providers listed whose warm-up limit is used up.
const SHOWN_MAX: usize = 100;

fn warm_up_view(status: &WarmUpStatus) -> Value {
    let WarmUpStatus { since, day, days, per_day, used_up } = status;
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
        "curve": pool.curve,
        "warm_up_ordered": pool.ordered,
        "ready": pool.ready,
    })
}

/// Lists all configured pools, and overrides of pools that are no longer configured.
pub(super) fn list_pools(server: &Server) -> Value {
    let mut accounts = server.queue.delivery.queues.accounts_by_pool();
    let to_view = |pool: &PoolStatus| pool_view(pool, &accounts.remove(&pool.source.pool).unwrap_or_default());
    let pools: Vec<Value> = server.queue.delivery.queues.pool_statuses().iter().map(to_view).collect();
    // Accounts assigned to a pool that is no longer configured send from the pool of their plan.
    let warm_ups = server.queue.delivery.queues.orphaned_warm_ups();
    json!({"pools": pools, "not_configured": {"accounts": accounts, "warm_up_ordered": warm_ups}})
}

fn pool_by_name(server: &Server, name: &PoolName) -> Value {
    let accounts = server.queue.delivery.queues.accounts_by_pool().remove(name).unwrap_or_default();
    let found = server.queue.delivery.queues.pool_statuses().into_iter().find(|pool| pool.source.pool == *name);
    json!({"pool": found.map(|pool| pool_view(&pool, &accounts))})
}

/// Assigns an account to a pool, or back to that of its plan.
pub(super) async fn assign_pool(server: &Server, account: &str, pool: Option<PoolName>) -> AdminResult {
    let id = search::find_account(server, account).await?.id;
    tracing::info!(account.id = %id, pool = pool.as_ref().map(PoolName::as_str), "operator: assign pool");
    server.queue.delivery.queues.assign_pool(id, pool.clone()).await.map_err(error_text)?;
    Ok(json!({"account": id, "pool": pool}))
}

/// Sets or removes the operator's start day of a pool's warm-up.
pub(super) async fn set_warm_up(server: &Server, pool: PoolName, warm_up: Option<WarmUpOverride>) -> AdminResult {
    tracing::info!(%pool, ?warm_up, "operator: change warm-up");
    server.queue.delivery.queues.warm_up_pool(pool.clone(), warm_up).await.map_err(error_text)?;
    Ok(pool_by_name(server, &pool))
}
