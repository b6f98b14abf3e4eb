//! The last answer to a request that costs much, for some seconds.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::admin::{AdminError, AdminRequest};

/// Age up to which an answer is used again.
const FRESH: Duration = Duration::from_secs(5);

/// The last answer. Concurrent requests wait for one another.
#[derive(Debug, Default)]
pub(super) struct CachedAnswer {
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Option<(AdminRequest, Instant, Value)>>,
}

impl CachedAnswer {
    /// Returns the last answer if it is fresh, or that of `perform`.
    pub(super) async fn get<F>(&self, request: &AdminRequest, perform: impl FnOnce() -> F) -> Result<Value, AdminError>
    where
        F: Future<Output = Result<Value, AdminError>>,
    {
        let _turn = self.turn.lock().await;
        if let Some(answer) = self.fresh(request) {
            return Ok(answer);
        }
        let began = Instant::now();
        let answer = perform().await?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((request.clone(), began, answer.clone()));
        Ok(answer)
    }

    fn fresh(&self, request: &AdminRequest) -> Option<Value> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, began, answer) = last.as_ref()?;
        (of == request && began.elapsed() < FRESH).then(|| answer.clone())
    }

    /// Forgets the answer: something was changed.
    pub(super) fn forget(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_used_again_until_it_is_old_or_forgotten() {
        let cached = CachedAnswer::default();
        let get = async |n: u64| cached.get(&AdminRequest::Status, || async move { Ok(json!(n)) }).await.unwrap();
        assert_eq!((get(1).await, get(2).await), (json!(1), json!(1)));
        tokio::time::advance(FRESH).await;
        assert_eq!(get(3).await, json!(3));
        cached.forget();
        assert_eq!(get(4).await, json!(4));
        let other = cached.get(&AdminRequest::PoolList, || async { Ok(json!(5)) }).await.unwrap();
        assert_eq!(other, json!(5));
    }
}
