//! The operations that the credentials of a caller allow: lists leave the other tools out.

use std::collections::BTreeSet;

use crate::operation_table::{KeyScope, Operation, OperationTable, Risk};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerRights {
    /// The API does not know the credentials.
    Unknown,
    /// Everything, or it is not known what: the API decides about each call.
    Any,
    /// These operations, by method and path.
    Only(BTreeSet<String>),
}

impl CallerRights {
    /// Rights to operations, by method and path.
    pub fn only<'a>(operations: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        Self::Only(operations.map(|(method, path)| format!("{method} {path}")).collect())
    }

    /// The rights of an API key that only sends.
    pub fn of_sending_key(table: &OperationTable) -> Self {
        Self::of(table, |operation| operation.scope == KeyScope::Sending)
    }

    /// The rights of an access token, by its scopes with spaces between them. The role of the grant's user may allow less.
    pub fn of_scopes(scopes: &str, table: &OperationTable) -> Self {
        let has = |scope: &str| scopes.split(' ').any(|word| word == scope);
        let (reads, sends, manages) = (has("read"), has("send"), has("manage"));
        Self::of(table, |operation| match operation.risk {
            Risk::Read => reads,
            Risk::Send => sends,
            Risk::Write | Risk::Delete => manages,
            Risk::Secret | Risk::Money | Risk::Unknown => false,
        })
    }

    fn of(table: &OperationTable, is_allowed: impl Fn(&Operation) -> bool) -> Self {
        let allowed = table.operations.iter().filter(|operation| is_allowed(operation));
        Self::only(allowed.map(|operation| (operation.http_method.as_str(), operation.path.as_str())))
    }

    /// Returns whether they include an operation.
    pub fn allow(&self, operation: &Operation) -> bool {
        match self {
            Self::Unknown => false,
            Self::Any => true,
            Self::Only(allowed) => allowed.contains(&format!("{} {}", operation.http_method, operation.path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_sending_keys_allow_a_part() {
        let table = OperationTable::load();
        let find = |id: &str| table.operations.iter().find(|operation| operation.id == id).unwrap();
        for (rights, allowed, refused) in [
            (CallerRights::of_scopes("read", &table), "list_emails", "send_email"),
            (CallerRights::of_scopes("send", &table), "send_email", "list_emails"),
            (CallerRights::of_scopes("read manage", &table), "activate_automation", "send_email"),
            (CallerRights::of_sending_key(&table), "send_email", "create_template"),
        ] {
            assert!(rights.allow(find(allowed)) && !rights.allow(find(refused)), "{allowed} {refused}");
        }
        assert!(CallerRights::Any.allow(find("send_email")) && !CallerRights::Unknown.allow(find("send_email")));
    }
}
