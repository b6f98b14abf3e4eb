//! Templates: one row each with the draft's settings, unique keys by alias and by name within the account, and one row
//! for each published version.
//!
//! Bodies are separate rows, one for the draft and one for each version, so that lists do not read them.

use model::id::{AccountId, TemplateId};
use model::template::{Template, TemplateBodies, TemplateKey, TemplateVersion, VERSIONS_KEPT};

use crate::codec::{self, account_rows, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{Space, key};
use crate::rows;

account_rows!(Template, TemplateId, Template);

stored!(TemplateVersion);

stored!(TemplateBodies);

/// Types of rows in the space of versions.
#[derive(Clone, Copy)]
#[repr(u8)]
enum TemplateRowKind {
    /// A version without its bodies.
    Version = 1,
    /// The bodies of a version; number 0 is the draft.
    Bodies = 2,
}

/// The version number of the draft's bodies.
const DRAFT: u32 = 0;

fn key_by_alias(account: AccountId, alias: &str) -> Key {
    key(Space::TemplateByAlias).account(account).text(&alias.to_ascii_lowercase()).build()
}

/// Names that differ only in case count as equal.
fn key_by_name(account: AccountId, name: &str) -> Key {
    key(Space::TemplateByName).account(account).text(&name.to_lowercase()).build()
}

fn part_key(account: AccountId, id: TemplateId, part: TemplateRowKind, number: u32) -> Key {
    key(Space::TemplateVersion).account(account).id(id.to_bytes()).u8(part as u8).u32(number).build()
}

/// The unique field that another template already has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateConflict {
    Alias,
    Name,
}

/// The unique field that caused a conflict; `None` if the template itself was changed concurrently.
pub fn conflict_kind(conflict: &Key) -> Option<TemplateConflict> {
    match conflict.first().copied() {
        Some(space) if space == Space::TemplateByAlias as u8 => Some(TemplateConflict::Alias),
        Some(space) if space == Space::TemplateByName as u8 => Some(TemplateConflict::Name),
        _ => None,
    }
}

/// Writes a new template. The commit conflicts if its alias or its name is taken.
pub fn create(batch: &mut Batch, template: &Template, bodies: &TemplateBodies) {
    if let Some(alias) = &template.alias {
        reserve_key(batch, key_by_alias(template.account, alias), template.id);
    }
    reserve_key(batch, key_by_name(template.account, &template.name), template.id);
    batch.put(key_of(template.account, template.id), codec::encode(template));
    put_draft(batch, template, bodies);
}

fn reserve_key(batch: &mut Batch, by: Key, id: TemplateId) {
    batch.replace(by, None, id.to_string().into_bytes());
}

/// Updates a template that was read as `before`. The commit conflicts if the stored row has changed since, or if its
/// new alias or name is taken.
pub fn update(batch: &mut Batch, before: &Template, after: &Template) {
    check_unchanged(batch, before);
    let by_alias = |template: &Template| template.alias.as_ref().map(|a| key_by_alias(template.account, a));
    let by_name = |template: &Template| Some(key_by_name(template.account, &template.name));
    for (old, new) in [(by_alias(before), by_alias(after)), (by_name(before), by_name(after))] {
        if old == new {
            continue;
        }
        if let Some(old) = old {
            batch.delete(old);
        }
        if let Some(new) = new {
            reserve_key(batch, new, after.id);
        }
    }
    batch.put(key_of(after.account, after.id), codec::encode(after));
}

/// Writes the draft's bodies, in the commit that updates the template.
pub fn put_draft(batch: &mut Batch, template: &Template, bodies: &TemplateBodies) {
    batch.put(part_key(template.account, template.id, TemplateRowKind::Bodies, DRAFT), codec::encode(bodies));
}

/// Writes a version, in the commit that updates the template, and deletes the version beyond [`VERSIONS_KEPT`].
pub fn put_version(batch: &mut Batch, template: &Template, version: &TemplateVersion, bodies: &TemplateBodies) {
    let at = |part, number| part_key(template.account, template.id, part, number);
    batch.put(at(TemplateRowKind::Version, version.number), codec::encode(version));
    batch.put(at(TemplateRowKind::Bodies, version.number), codec::encode(bodies));
    if let Some(oldest) = version.number.checked_sub(VERSIONS_KEPT).filter(|number| *number != DRAFT) {
        batch.delete(at(TemplateRowKind::Version, oldest));
        batch.delete(at(TemplateRowKind::Bodies, oldest));
    }
}

/// Deletes a template that was read as `before`, with all its versions.
pub fn delete(batch: &mut Batch, before: &Template) {
    let (account, id) = (before.account, before.id);
    rows::delete(batch, key_of(account, id), before);
    batch.delete(key_by_name(account, &before.name));
    if let Some(alias) = &before.alias {
        batch.delete(key_by_alias(account, alias));
    }
    batch.delete(part_key(account, id, TemplateRowKind::Bodies, DRAFT));
    let last = before.published.map_or(0, |published| published.version);
    for number in last.saturating_sub(VERSIONS_KEPT) + 1..=last {
        batch.delete(part_key(account, id, TemplateRowKind::Version, number));
        batch.delete(part_key(account, id, TemplateRowKind::Bodies, number));
    }
}

/// Finds a template of an account by its id or alias.
pub async fn find(store: &Store, account: AccountId, named: &TemplateKey) -> Result<Option<Template>> {
    let id = match named {
        TemplateKey::Id(id) => Some(*id),
        TemplateKey::Alias(alias) => {
            let row = store.get(&key_by_alias(account, alias)).await?;
            row.and_then(|row| std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok()))
        }
    };
    let Some(id) = id else { return Ok(None) };
    get(store, account, id).await
}

/// Reads the draft's bodies if the template is still as it was read; `None` if it was changed meanwhile.
pub async fn get_draft(store: &Store, template: &Template) -> Result<Option<TemplateBodies>> {
    let (account, id) = (template.account, template.id);
    let rows = store.get_many(&[key_of(account, id), part_key(account, id, TemplateRowKind::Bodies, DRAFT)]).await?;
    match rows.as_slice() {
        [Some(now), Some(bodies)] if *now == codec::encode(template) => codec::decode(bodies).map(Some),
        _ => Ok(None),
    }
}

/// Reads a version of a template with its bodies.
pub async fn get_version(
    store: &Store,
    account: AccountId,
    id: TemplateId,
    number: u32,
) -> Result<Option<(TemplateVersion, TemplateBodies)>> {
    let keys = [TemplateRowKind::Version, TemplateRowKind::Bodies].map(|part| part_key(account, id, part, number));
    match store.get_many(&keys).await?.as_slice() {
        [Some(version), Some(bodies)] => Ok(Some((codec::decode(version)?, codec::decode(bodies)?))),
        _ => Ok(None),
    }
}

/// Lists a template's versions before `before`, without their bodies, newest first, at most `limit`.
pub async fn list_versions(
    store: &Store,
    template: &Template,
    before: Option<u32>,
    limit: usize,
) -> Result<Vec<TemplateVersion>> {
    let (account, id) = (template.account, template.id);
    let mut range =
        key(Space::TemplateVersion).account(account).id(id.to_bytes()).u8(TemplateRowKind::Version as u8).range();
    if let Some(before) = before {
        range.end = part_key(account, id, TemplateRowKind::Version, before);
    }
    rows::scan(store, range, ScanOrder::Descending, limit).await
}

/// Lists an account's templates that pass, newest first, at most `limit`; also returns the cursor of the next page.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<TemplateId>,
    limit: usize,
    passes: impl Fn(&Template) -> bool,
) -> Result<(Vec<Template>, Option<TemplateId>)> {
    let range = key(Space::Template).account(account).range_before(before.map(TemplateId::to_bytes));
    rows::list_passing(store, range, limit, passes, |template: &Template| template.id).await
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use model::email::Category;
    use model::template::{PublishedVersion, TemplateSettings};

    use super::*;
    use crate::engine::CommitError;

    fn account() -> AccountId {
        AccountId::new(Timestamp::UNIX_EPOCH, 1)
    }

    fn template(number: u128, alias: Option<&str>) -> Template {
        Template {
            id: TemplateId::new(Timestamp::UNIX_EPOCH, number),
            account: account(),
            name: format!("Template {number}"),
            alias: alias.map(str::to_owned),
            draft: TemplateSettings {
                category: Category::Transactional,
                unsubscribe_enabled: false,
                from: None,
                reply_to: Vec::new(),
                subject: Some("s".to_owned()),
                preheader: None,
                variables: Vec::new(),
            },
            draft_version: 1,
            published: None,
            changed: false,
            archived: false,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    async fn commit(store: &Store, write: impl FnOnce(&mut Batch)) -> Result<(), Option<TemplateConflict>> {
        let mut batch = Batch::progress();
        write(&mut batch);
        match store.commit(batch).await {
            Ok(()) => Ok(()),
            Err(CommitError::Conflict { key }) => Err(conflict_kind(&key)),
            Err(error) => panic!("{error}"),
        }
    }

    #[tokio::test]
    async fn aliases_and_names_are_unique() {
        let store = Store::memory();
        let bodies = TemplateBodies { html: Some("h".to_owned()), ..TemplateBodies::default() };
        let created = template(1, Some("Welcome"));
        commit(&store, |batch| create(batch, &created, &bodies)).await.unwrap();
        let duplicate = Template { name: "Other".to_owned(), ..template(2, Some("welcome")) };
        assert_eq!(
            commit(&store, |batch| create(batch, &duplicate, &bodies)).await,
            Err(Some(TemplateConflict::Alias))
        );
        let duplicate = Template { name: "TEMPLATE 1".to_owned(), ..template(2, None) };
        assert_eq!(commit(&store, |batch| create(batch, &duplicate, &bodies)).await, Err(Some(TemplateConflict::Name)));

        let renamed = Template { alias: Some("hello".to_owned()), draft_version: 2, ..created.clone() };
        commit(&store, |batch| update(batch, &created, &renamed)).await.unwrap();
        // An update based on the old version conflicts.
        assert_eq!(commit(&store, |batch| update(batch, &created, &renamed)).await, Err(None));
        let by = |alias: &str| TemplateKey::Alias(alias.to_owned());
        assert_eq!(find(&store, account(), &by("hello")).await.unwrap().as_ref(), Some(&renamed));
        assert_eq!(find(&store, account(), &by("welcome")).await.unwrap(), None);
        assert_eq!(get_draft(&store, &renamed).await.unwrap(), Some(bodies.clone()));
        assert_eq!(get_draft(&store, &created).await.unwrap(), None);
        // The alias that was given up is free.
        commit(&store, |batch| create(batch, &template(3, Some("welcome")), &bodies)).await.unwrap();
        let other = AccountId::new(Timestamp::UNIX_EPOCH, 2);
        assert_eq!(find(&store, other, &TemplateKey::Id(created.id)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn versions_are_bounded_and_deleted_with_the_template() {
        let store = Store::memory();
        let mut now = template(1, None);
        let bodies = TemplateBodies { html: Some("h".to_owned()), ..TemplateBodies::default() };
        commit(&store, |batch| create(batch, &now, &bodies)).await.unwrap();
        for wanted in 1..=VERSIONS_KEPT + 2 {
            let (after, PublishedVersion { version: number, .. }) = now.with_next_version(Timestamp::UNIX_EPOCH);
            assert_eq!(number, wanted);
            let settings = now.draft.clone();
            let version = TemplateVersion {
                number,
                note: None,
                published_at: Timestamp::UNIX_EPOCH,
                published_by: "x".to_owned(),
                settings,
            };
            let write = |batch: &mut Batch| {
                update(batch, &now, &after);
                put_version(batch, &after, &version, &bodies);
            };
            commit(&store, write).await.unwrap();
            now = after;
        }
        let all = list_versions(&store, &now, None, 1_000).await.unwrap();
        assert_eq!(all.len(), VERSIONS_KEPT as usize);
        assert_eq!((all[0].number, all[all.len() - 1].number), (VERSIONS_KEPT + 2, 3));
        assert_eq!(list_versions(&store, &now, Some(5), 1).await.unwrap()[0].number, 4);
        assert!(get_version(&store, now.account, now.id, 2).await.unwrap().is_none());
        assert_eq!(get_version(&store, now.account, now.id, 3).await.unwrap().unwrap().1, bodies);
        commit(&store, |batch| delete(batch, &now)).await.unwrap();
        let everything = Key::new()..Key::from_static(&[0xFF]);
        assert!(store.scan(everything, ScanOrder::Ascending, 10).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_list_is_filtered_and_paged() {
        let store = Store::memory();
        let count = rows::LOOKED_AT_MAX as u128 + 50;
        for number in 0..count {
            let created = template(number, None);
            commit(&store, |batch| create(batch, &created, &TemplateBodies::default())).await.unwrap();
        }
        let even = |t: &Template| t.name.ends_with(['0', '2', '4', '6', '8']);
        let (mut before, mut listed) = (None, 0);
        loop {
            let (page, next) = list(&store, account(), before, 100, even).await.unwrap();
            listed += page.len();
            match next {
                Some(next) => before = Some(next),
                None => break,
            }
        }
        assert_eq!(listed as u128, count / 2);
        // A filter that matches nothing ends after a bounded scan, with a cursor.
        let oldest = |t: &Template| t.name == "Template 0";
        let (page, next) = list(&store, account(), None, 10, oldest).await.unwrap();
        assert!(page.is_empty() && next.is_some());
        let (page, next) = list(&store, account(), next, 10, oldest).await.unwrap();
        assert_eq!((page.len(), next), (1, None));
    }
}
