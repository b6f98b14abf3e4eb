//! Keys of forms: a double click, or a reload of the answer, sends once.
//!
//! Where the operation takes an `Idempotency-Key`, the form's key becomes one ([`request_key`]), and a reload gets the
//! same answer again. An answer with a new secret cannot be repeated: [`once`] refuses the second use of a key. It
//! remembers the keys that this process used last, so a reload that arrives at another node of a cluster is carried out;
//! the script prevents it, because it sets the address of such a page ([`Page::location`]).

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use hypertext::prelude::*;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::backend::Failure;
use super::context::Context;
use super::form_field::Field;
use super::page::Page;
use super::table::Outcome;

/// The name of the hidden field.
pub const FIELD: &str = "form_key";

/// A hidden field with a new key, for a form that is shown.
pub fn field(context: &Context<'_>) -> Field {
    Field::hidden(FIELD, mint(context)).ignored()
}

/// A key that no other form has.
pub fn mint(context: &Context<'_>) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // `RandomState` has random keys, so its hashes differ between processes.
    let chance = [RandomState::new().hash_one(count), RandomState::new().hash_one(context.now().as_nanosecond())];
    hex(&[&chance[0].to_be_bytes(), &chance[1].to_be_bytes(), &count.to_be_bytes()])
}

/// The key of a request that the form makes. The same form with other content is another request: a person corrects
/// what was refused, and sends the form again. `None` for a form without a key.
pub fn request_key(context: &Context<'_>, content: &[&[u8]]) -> Option<String> {
    let key = context.form().get(FIELD);
    (!key.is_empty()).then(|| {
        let mut parts = vec![key.as_bytes()];
        parts.extend(content);
        format!("form-{}", hex(&parts))
    })
}

/// The most keys that are remembered.
const USED_KEYS_MAX: usize = 4_096;

/// The keys that forms of [`once`] used, the newest last.
static USED_KEYS: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Carries out a form whose answer is shown once. If its key was used before, nothing is carried out: the page says so,
/// and links to `list` (path and title). The key of a refused form can be used again.
///
/// # Errors
/// The form was refused.
pub async fn once(
    context: &Context<'_>,
    list: (&str, &str),
    carry_out: impl Future<Output = Result<Page, Failure>>,
) -> Result<Outcome, Failure> {
    let session = context.viewer.map_or("", |viewer| &viewer.session_id);
    let Some(key) = request_key(context, &[session.as_bytes()]) else { return carry_out.await.map(Outcome::once) };
    if !claim(&key) {
        return Ok(Outcome::once(sent_before(list)));
    }
    let answer = carry_out.await;
    if answer.is_err() {
        USED_KEYS.lock().retain(|used| *used != key);
    }
    answer.map(Outcome::once)
}

/// Remembers a key; false if it was used before.
fn claim(key: &str) -> bool {
    let mut used = USED_KEYS.lock();
    if used.iter().any(|other| other == key) {
        return false;
    }
    if used.len() == USED_KEYS_MAX {
        used.pop_front();
    }
    used.push_back(key.to_owned());
    true
}

fn sent_before((path, title): (&str, &str)) -> Page {
    let body = maud! {
        div.empty {
            p { "A form is carried out once; look for the result in the list. A secret cannot be shown again: if you do \
                 not have it, replace it." }
            p { a.button href=(path) { "Go to " (title) } }
        }
    };
    Page::new("This form was already sent", body).below(path, title).location(path)
}

fn hex(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
