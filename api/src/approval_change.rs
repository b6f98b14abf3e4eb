//! Changes of an approval: the commit gives sends back that the request does not use.

use crate::prelude::*;
use model::approval::{Approval, ApprovalState};
use store::client_sends;

/// Retries after concurrent sends of the client.
const TRIES_MAX: usize = 20;
/// Contents that are deleted in one go.
const PAGE_APPROVALS: usize = 100;

/// Returns whether a request in this state has sent nothing and will not.
fn sends_nothing(state: &ApprovalState) -> bool {
    match state {
        ApprovalState::Rejected { .. } | ApprovalState::Expired => true,
        ApprovalState::Executed { result, .. } => {
            // An unconfirmed email may be sent.
            result.status >= 400 && result.error_code.as_deref() != Some(ErrorCode::SEND_UNCONFIRMED.word)
        }
        ApprovalState::Pending
        | ApprovalState::Approved { .. }
        | ApprovalState::Executing { .. }
        | ApprovalState::Interrupted { .. } => false,
    }
}

/// Commits a change of an approval that was read as `before`; `content` replaces its encrypted content. Gives the
/// reserved sends of `after` back if it sends nothing. Returns false if it was changed at the same time.
pub(crate) async fn commit(
    state: &AppState,
    before: &Approval,
    after: &Approval,
    content: Option<Vec<u8>>,
) -> Result<bool> {
    let store = &state.services.store;
    for _ in 0..TRIES_MAX {
        let mut batch = Batch::progress();
        store::approval::update(&mut batch, before, after, content.clone());
        if let Some(reserved) = after.reserved_sends.filter(|_| sends_nothing(&after.state)) {
            client_sends::add_release(store, &mut batch, before.account, before.client, reserved).await?;
        }
        match store.commit(batch).await {
            Ok(()) => return Ok(true),
            // The approval changed, or the client sent something at the same time.
            Err(CommitError::Conflict { .. }) => {
                if store::approval::get(store, before.account, before.id).await?.as_ref() != Some(before) {
                    return Ok(false);
                }
            }
            Err(error) => return Err(Problem::outage(error)),
        }
    }
    Err(Problem::busy())
}

/// Ends pending approvals whose time for a decision is over, and deletes contents that are no longer needed.
pub(crate) async fn end_contents(state: &State) -> Result<()> {
    let store = &state.services.store;
    loop {
        let ended = store::approval::list_ended(store, state.services.clock.now(), PAGE_APPROVALS).await?;
        let mut is_done = ended.len() < PAGE_APPROVALS;
        for approval in &ended {
            // A conflict means that another node changed it: then it is read again, at the latest the next time.
            is_done |= !end_content(state, approval).await?;
        }
        if is_done {
            return Ok(());
        }
    }
}

async fn end_content(state: &AppState, approval: &Approval) -> Result<bool> {
    if matches!(approval.state, ApprovalState::Pending) {
        let expired = Approval { state: ApprovalState::Expired, ..approval.clone() };
        return commit(state, approval, &expired, None).await;
    }
    let mut batch = Batch::progress();
    store::approval::delete_content(&mut batch, approval);
    state.commit(batch).await
}
