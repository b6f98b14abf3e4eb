//! Idempotency keys of forms: a double click, or a reload of the answer, sends once.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};

use super::context::Context;
use super::form_field::Field;

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

fn hex(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
