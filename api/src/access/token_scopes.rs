//! Scopes of access tokens: the operations that each scope allows, by the operation's risk.
//!
//! ```text
//! read                  read
//! send                  send
//! manage                write, delete
//! manage and send       write that causes email later (automations, product events, partners, published templates)
//! none                  secret, money, payout, team; changes of API keys, SMTP credentials and grants
//! ```
//!
//! The role of the grant's user bounds a token, too ([`role_table`]). Operations that need a session accept no token.

use http::header::WWW_AUTHENTICATE;
use model::oauth::scope::OAuthScope;
use store::access::Delegation;

use super::role_table;
use crate::operation::Operation;
use crate::prelude::*;

/// Nouns that give access to the account: a token must not extend its own.
const ACCESS_NOUNS: [&str; 3] = ["api_keys", "smtp_credentials", "grants"];

/// The scope that an access token needs for an operation; `None` if no token may call it.
pub fn required_scope(operation: &Operation) -> Option<OAuthScope> {
    operation.scope()?;
    match operation.risk {
        Risk::Read => Some(OAuthScope::Read),
        _ if ACCESS_NOUNS.contains(&operation.tag) => None,
        Risk::Send => Some(OAuthScope::Send),
        Risk::Write | Risk::Delete => Some(OAuthScope::Manage),
        Risk::Secret | Risk::Money | Risk::Payout | Risk::Team => None,
    }
}

/// Checks that a token may call an operation.
///
/// # Errors
/// 403 `forbidden`; with `insufficient_scope` (RFC 6750 3.1) if another scope would suffice.
pub fn check(delegation: Delegation, operation: &Operation) -> Result<()> {
    let forbidden = |text: String| Problem::new(ErrorCode::FORBIDDEN, text);
    let Some(required) = required_scope(operation) else {
        return Err(forbidden("Access tokens cannot call this operation; use an API key or the dashboard".to_owned()));
    };
    if !delegation.scopes.contains(required) {
        let word = required.word();
        return Err(forbidden(format!("The access token needs the scope `{word}`"))
            .with_details(json!({"required_scope": word}))
            .with_header(WWW_AUTHENTICATE, format!("Bearer error=\"insufficient_scope\", scope=\"{word}\"")));
    }
    if operation.mails_later && !delegation.scopes.contains(OAuthScope::Send) {
        let text = "The operation causes email later, so the access token also needs the scope `send`";
        return Err(forbidden(text.to_owned()).with_details(json!({"required_scope": "send"})));
    }
    if !role_table::role_allows(delegation.role, operation) {
        let role = delegation.role.word();
        return Err(forbidden(format!("The role `{role}` of the grant's user does not permit this operation")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::id::{GrantId, UserId};
    use model::user::UserRole;

    use super::*;
    use crate::operations::operation_table;

    /// Written independently of the rule above.
    #[test]
    fn no_token_reaches_secrets_money_team_or_other_access() {
        for operation in operation_table() {
            let required = required_scope(&operation);
            let is_guarded = matches!(operation.risk, Risk::Secret | Risk::Money | Risk::Payout | Risk::Team);
            let is_access = ["/api-keys", "/smtp-credentials", "/grants", "/users", "/auth"]
                .iter()
                .any(|path| operation.path.starts_with(path));
            if is_guarded || operation.scope().is_none() || (is_access && operation.method != http::Method::GET) {
                assert_eq!(required, None, "{}", operation.id);
            }
            if required == Some(OAuthScope::Read) {
                assert_eq!(operation.risk, Risk::Read, "{}", operation.id);
            }
        }
        let table = operation_table();
        let scope = |id: &str| required_scope(table.iter().find(|operation| operation.id == id).unwrap());
        for (id, expected) in [
            ("list_emails", Some(OAuthScope::Read)),
            ("list_api_keys", Some(OAuthScope::Read)),
            ("send_email", Some(OAuthScope::Send)),
            ("create_template", Some(OAuthScope::Manage)),
            ("delete_webhook", Some(OAuthScope::Manage)),
            ("create_api_key", None),
            ("update_api_key", None),
            ("delete_api_key", None),
            ("revoke_grant", None),
            ("invite_user", None),
            ("sign_in", None),
        ] {
            assert_eq!(scope(id), expected, "{id}");
        }
    }

    #[test]
    fn the_users_role_bounds_a_token() {
        let table = operation_table();
        let send = table.iter().find(|operation| operation.id == "send_email").unwrap();
        let delegation = |role| Delegation {
            grant: GrantId::from_bytes([1; 16]),
            user: UserId::from_bytes([2; 16]),
            role,
            scopes: OAuthScope::ALL.into_iter().collect(),
        };
        assert!(check(delegation(UserRole::Developer), send).is_ok());
        assert_eq!(check(delegation(UserRole::Viewer), send).unwrap_err().code(), ErrorCode::FORBIDDEN);
    }
}
