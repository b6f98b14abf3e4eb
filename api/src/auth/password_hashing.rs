//! Password hashing with argon2id (RFC 9106) on blocking threads.
//!
//! A hash deliberately takes 19 MiB and some tens of milliseconds. Therefore the number of concurrent hashes and of
//! waiting requests is bounded. Verifying an unknown address takes as long as a wrong password.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use httpd::problem::Problem;
use model::credential::SecretHash;
use model::user::PasswordHash;
use tokio::sync::Semaphore;

/// Minimum length in characters; NIST SP 800-63B 5.1.1.2 requires at least eight.
pub const CHARS_MIN: usize = 10;
pub const BYTES_MAX: usize = 256;

/// Memory and passes that OWASP recommends for one lane.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
/// Upper bounds for stored parameters, so that a corrupt row cannot exhaust memory.
const MEMORY_KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 16;
const HASH_BYTES: usize = 32;
const CONCURRENT_HASHES_MAX: usize = 2;
/// Requests that wait for a hash; further ones are answered 503.
const WAITERS_MAX: usize = 32;

/// Hashes and verifies passwords with bounded concurrency.
#[derive(Debug)]
pub struct PasswordHasher {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Default for PasswordHasher {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(CONCURRENT_HASHES_MAX)), waiting: AtomicUsize::new(0) }
    }
}

/// Counts a waiting request until it is dropped.
struct HashWaiter<'a>(&'a AtomicUsize);

impl Drop for HashWaiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl PasswordHasher {
    /// Returns whether the password matches the hash. Without a hash it returns false after the same time.
    ///
    /// # Errors
    /// 503 when too many requests wait.
    pub async fn verify(&self, password: String, hash: Option<PasswordHash>) -> Result<bool, Problem> {
        let hash = hash.as_ref().and_then(|hash| Argon2Hash::from_phc_string(&hash.0));
        self.run_blocking(move || match hash {
            Some(stored) => stored.compute(&password).is_some_and(|bytes| constant_time_eq(&bytes, &stored.hash)),
            None => {
                let dummy_hash = Argon2Hash { salt: vec![0; 16], ..Argon2Hash::default() };
                let _ = dummy_hash.compute(&password);
                false
            }
        })
        .await
    }

    /// Hashes a new password.
    ///
    /// # Errors
    /// 503 when too many requests wait.
    pub async fn hash(&self, password: String, salt: [u8; 16]) -> Result<PasswordHash, Problem> {
        let made = self.run_blocking(move || {
            let fresh = Argon2Hash { salt: salt.to_vec(), ..Argon2Hash::default() };
            let hash = fresh.compute(&password)?;
            Some(Argon2Hash { hash: hash.to_vec(), ..fresh }.to_phc_string())
        });
        made.await?.map(PasswordHash).ok_or_else(|| Problem::internal("cannot hash the password"))
    }

    async fn run_blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
        let waiter = HashWaiter(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= WAITERS_MAX {
            return Err(Problem::busy());
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(Problem::internal)?;
        drop(waiter);
        // The permit is held until the hash is computed, even if the request was cancelled.
        let task = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        task.await.map_err(Problem::internal)
    }
}

/// Compares in constant time, by comparing SHA-256 hashes.
fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    SecretHash::from_bytes(a) == SecretHash::from_bytes(b)
}

/// A hash with its parameters, stored in the PHC string format.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Argon2Hash {
    memory_kib: u32,
    passes: u32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Default for Argon2Hash {
    fn default() -> Self {
        Self { memory_kib: MEMORY_KIB, passes: PASSES, salt: Vec::new(), hash: Vec::new() }
    }
}

impl Argon2Hash {
    fn compute(&self, password: &str) -> Option<[u8; HASH_BYTES]> {
        let params = Params::new(self.memory_kib, self.passes, 1, Some(HASH_BYTES)).ok()?;
        let mut hash = [0; HASH_BYTES];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon2.hash_password_into(password.as_bytes(), &self.salt, &mut hash).ok()?;
        Some(hash)
    }

    fn to_phc_string(&self) -> String {
        let (salt, hash) = (STANDARD_NO_PAD.encode(&self.salt), STANDARD_NO_PAD.encode(&self.hash));
        format!("$argon2id$v=19$m={},t={},p=1${salt}${hash}", self.memory_kib, self.passes)
    }

    fn from_phc_string(text: &str) -> Option<Self> {
        let (parameters, rest) = text.strip_prefix("$argon2id$v=19$")?.split_once('$')?;
        let (salt, hash) = rest.split_once('$')?;
        let (memory, passes) = parameters.strip_suffix(",p=1")?.split_once(',')?;
        let memory_kib = memory.strip_prefix("m=")?.parse().ok().filter(|n| *n <= MEMORY_KIB_MAX)?;
        let passes = passes.strip_prefix("t=")?.parse().ok().filter(|n| *n <= PASSES_MAX)?;
        let (salt, hash) = (STANDARD_NO_PAD.decode(salt).ok()?, STANDARD_NO_PAD.decode(hash).ok()?);
        Some(Self { memory_kib, passes, salt, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_correct_password_verifies() {
        let passwords = PasswordHasher::default();
        let hash = passwords.hash("correct horse".to_owned(), [7; 16]).await.unwrap();
        assert!(hash.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.0);
        assert!(passwords.verify("correct horse".to_owned(), Some(hash.clone())).await.unwrap());
        for (password, hash) in [
            ("correct hors", Some(hash)),
            ("", Some(PasswordHash("$argon2id$v=19$m=4294967295,t=2,p=1$AA$AA".to_owned()))),
            ("", Some(PasswordHash(String::new()))),
            ("correct horse", None),
        ] {
            assert!(!passwords.verify(password.to_owned(), hash).await.unwrap(), "{password}");
        }
        assert_eq!(passwords.waiting.load(Ordering::Acquire), 0);
    }
}
