//! Affiliate programs: one row under the account, and index keys by program id, publishable key and portal host.

use message::address::DomainName;
use model::affiliate::program::AffiliateProgram;
use model::id::AccountId;

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, Store};
use crate::key::{Space, key};
use crate::rows;

stored!(AffiliateProgram);

fn key_of(account: AccountId) -> Key {
    key(Space::Program).account(account).build()
}

/// Program ids and publishable keys share a key space; their prefixes differ.
fn key_by(name: &str) -> Key {
    key(Space::ProgramBy).text(name).build()
}

/// Writes an account's new program. The commit conflicts if the account has one, or if another program has the portal
/// host.
pub fn create(batch: &mut Batch, program: &AffiliateProgram) {
    let account = program.account.to_string();
    batch.replace(key_of(program.account), None, codec::encode(program));
    batch.put(key_by(&program.id.to_string()), account.clone().into_bytes());
    batch.put(key_by(&program.publishable_key), account.into_bytes());
    if let Some(host) = &program.settings.portal_domain {
        reserve_host(batch, host, program.account);
    }
}

/// Updates a program that was read as `before`. The commit conflicts if the stored row has changed since, or if another
/// program has the portal host.
pub fn update(batch: &mut Batch, before: &AffiliateProgram, after: &AffiliateProgram) {
    check_unchanged(batch, before);
    let (old, new) = (&before.settings.portal_domain, &after.settings.portal_domain);
    if old != new {
        if let Some(host) = old {
            batch.delete(key_by_host(host));
        }
        if let Some(host) = new {
            reserve_host(batch, host, after.account);
        }
    }
    batch.put(key_of(after.account), codec::encode(after));
}

/// Writes the index entry of a portal host. The commit conflicts if another program has the host.
fn reserve_host(batch: &mut Batch, host: &DomainName, account: AccountId) {
    batch.replace(key_by_host(host), None, account.to_string().into_bytes());
}

/// Portal hosts share the key space of ids and publishable keys, which contain no dot.
fn key_by_host(host: &DomainName) -> Key {
    key_by(&format!("host.{}", host.as_str().to_ascii_lowercase()))
}

/// Returns whether the conflicting key is this portal host, that is, another program has it.
pub fn is_host_conflict(conflict: &Key, host: &DomainName) -> bool {
    *conflict == key_by_host(host)
}

/// Makes the commit conflict if the program has changed since it was read.
pub fn check_unchanged(batch: &mut Batch, program: &AffiliateProgram) {
    batch.check(key_of(program.account), Some(codec::encode(program)));
}

/// Reads an account's program.
pub async fn get(store: &Store, account: AccountId) -> Result<Option<AffiliateProgram>> {
    rows::get(store, &key_of(account)).await
}

/// Finds a program by its id or its publishable key.
pub async fn find_by_id_or_key(store: &Store, name: &str) -> Result<Option<AffiliateProgram>> {
    find_by_index_key(store, &key_by(name)).await
}

/// Finds the program with this portal host.
pub async fn find_by_host(store: &Store, host: &DomainName) -> Result<Option<AffiliateProgram>> {
    find_by_index_key(store, &key_by_host(host)).await
}

async fn find_by_index_key(store: &Store, by: &Key) -> Result<Option<AffiliateProgram>> {
    let Some(row) = store.get(by).await? else { return Ok(None) };
    get(store, rows::parse_text(&row, "an invalid account id of an affiliate program")?).await
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use model::affiliate::program::{ProcessorMode, ProgramSettings, ProgramStatus};
    use model::id::ProgramId;

    use super::*;
    use crate::engine::CommitError;

    fn program(byte: u8, host: &DomainName) -> AffiliateProgram {
        let mut settings =
            ProgramSettings::new("https://shop.example".to_owned(), "usd".parse().unwrap(), ProcessorMode::Live);
        settings.portal_domain = Some(host.clone());
        AffiliateProgram {
            id: ProgramId::from_bytes([byte; 16]),
            account: AccountId::from_bytes([byte; 16]),
            status: ProgramStatus::Setup,
            settings,
            default_campaign: None,
            publishable_key: format!("pk_{byte}"),
            processor: None,
            rev: 1,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[tokio::test]
    async fn a_new_program_reserves_its_portal_host() {
        let (store, host) = (Store::memory(), "partners.shop.example".parse().unwrap());
        let (first, second) = (program(1, &host), program(2, &host));
        let create_program = async |program: &AffiliateProgram| {
            let mut batch = Batch::intake();
            create(&mut batch, program);
            store.commit(batch).await
        };
        create_program(&first).await.unwrap();
        assert_eq!(find_by_host(&store, &host).await.unwrap(), Some(first));
        let conflict = create_program(&second).await;
        assert!(matches!(conflict, Err(CommitError::Conflict { key }) if is_host_conflict(&key, &host)));
    }
}
