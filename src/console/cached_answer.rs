//! The last answer to a request that costs much, for some seconds.

use parking_lot::Mutex;
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::admin::{AdminError, AdminRequest};

/// Age up to which an answer is used again.
const FRESH: Duration = Duration::from_secs(5);

/// The last answer. Concurrent requests wait for one another.
#[derive(Debug, Default)]
pub(super) struct CachedAnswer {
    turn: tokio::sync::Mutex<()>,
    last: Mutex<LastAnswer>,
}

#[derive(Debug, Default)]
struct LastAnswer {
    answer: Option<(AdminRequest, Timestamp, Value)>,
    /// Number of times that the answer was forgotten.
    forgotten: u64,
}

impl CachedAnswer {
    /// Returns the last answer if it is fresh, or that of `perform`.
    pub(super) async fn get<F>(
        &self,
        request: &AdminRequest,
        now: Timestamp,
        perform: impl FnOnce() -> F,
    ) -> Result<Value, AdminError>
    where
        F: Future<Output = Result<Value, AdminError>>,
    {
        let _turn = self.turn.lock().await;
        if let Some(answer) = self.fresh(request, now) {
            return Ok(answer);
        }
        let forgotten = self.last.lock().forgotten;
        let answer = perform().await?;
        let mut last = self.last.lock();
        // An answer that was being made during a change may not show it.
        if last.forgotten == forgotten {
            last.answer = Some((request.clone(), now, answer.clone()));
        }
        drop(last);
        Ok(answer)
    }

    fn fresh(&self, request: &AdminRequest, now: Timestamp) -> Option<Value> {
        let last = self.last.lock();
        let (of, began, answer) = last.answer.as_ref()?;
        let is_fresh = began.checked_add(FRESH).is_ok_and(|end| now < end);
        (of == request && is_fresh).then(|| answer.clone())
    }

    /// Forgets the answer: something was changed.
    pub(super) fn forget(&self) {
        let mut last = self.last.lock();
        last.answer = None;
        last.forgotten += 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_used_again_until_it_is_old_or_forgotten() {
        let cached = CachedAnswer::default();
        let get = async |second: u64, answer: u64| {
            let now = Timestamp::UNIX_EPOCH + Duration::from_secs(second);
            cached.get(&AdminRequest::Status, now, || async move { Ok(json!(answer)) }).await.unwrap()
        };
        assert_eq!((get(0, 1).await, get(4, 2).await), (json!(1), json!(1)));
        assert_eq!(get(5, 3).await, json!(3));
        cached.forget();
        assert_eq!(get(5, 4).await, json!(4));
        let now = Timestamp::UNIX_EPOCH + Duration::from_secs(5);
        let other = cached.get(&AdminRequest::PoolList, now, || async { Ok(json!(5)) }).await.unwrap();
        assert_eq!(other, json!(5), "another request");

        let changed_meanwhile = async || {
            cached.forget();
            Ok(json!(6))
        };
        cached.get(&AdminRequest::Status, now, changed_meanwhile).await.unwrap();
        assert_eq!(get(5, 7).await, json!(7), "an answer of before the change");
    }
}
