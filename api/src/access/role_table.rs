//! The role table: which roles may call an operation in a session, by the operation's risk.
//!
//! ```text
//!                               viewer   developer   admin   owner
//! read                          GET      x           x       x
//! write, send, delete, secret            x           x       x
//! money, team                                        x       x
//! payout                                                     x
//! the user's own sign-in        x        x           x       x
//! ```
//!
//! Operations that concern secrets, money or the team also need a recent proof of the user's identity
//! ([`needs_recent_authentication`]).
//!
//! A viewer calls GET operations only, so that its session changes nothing but its own sign-in. The operations of team
//! management also compare the roles of both users ([`UserRole::may_manage`]). API keys have scopes instead of roles: a
//! developer can create one with full access.

use http::Method;
use model::user::UserRole;

use crate::operation::{Operation, OperationHandler, SessionSubject};
use crate::sdk::Risk;

/// The roles that may call operations of a risk, from the least to the highest.
pub fn permitted_roles(risk: Risk) -> &'static [UserRole] {
    use UserRole::{Admin, Developer, Owner, Viewer};
    match risk {
        Risk::Read => &[Viewer, Developer, Admin, Owner],
        Risk::Write | Risk::Send | Risk::Delete | Risk::Secret => &[Developer, Admin, Owner],
        Risk::Money | Risk::Team => &[Admin, Owner],
        Risk::Payout => &[Owner],
    }
}

/// Returns whether a signed-in user with this role may call the operation.
pub fn role_allows(role: UserRole, operation: &Operation) -> bool {
    match operation.handler {
        OperationHandler::Public(_) | OperationHandler::Session(SessionSubject::Own, _) => true,
        OperationHandler::ApiKey(..)
        | OperationHandler::ApiKeyOrSession(..)
        | OperationHandler::Session(SessionSubject::Account, _)
        | OperationHandler::Owner(_) => {
            let is_method_permitted = role != UserRole::Viewer || operation.method == Method::GET;
            is_method_permitted && permitted_roles(operation.risk).contains(&role)
        }
    }
}

/// Returns whether a session that calls the operation needs a recent proof of the user's identity.
pub fn needs_recent_authentication(operation: &Operation) -> bool {
    operation.accepts_sessions() && matches!(operation.risk, Risk::Secret | Risk::Money | Risk::Payout | Risk::Team)
}

/// The least role that may call the operation.
pub fn least_role(operation: &Operation) -> UserRole {
    UserRole::ALL.into_iter().find(|role| role_allows(*role, operation)).unwrap_or(UserRole::Owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::operation_table;

    #[test]
    fn a_higher_role_may_do_what_a_lower_one_may() {
        for operation in operation_table() {
            let allowed = UserRole::ALL.map(|role| role_allows(role, &operation));
            assert!(allowed.is_sorted(), "{}: {allowed:?}", operation.id);
            assert!(role_allows(UserRole::Owner, &operation), "{}", operation.id);
        }
    }

    #[test]
    fn a_viewer_changes_nothing_but_its_own_sign_in() {
        for operation in operation_table().iter().filter(|operation| operation.accepts_sessions()) {
            if operation.method != Method::GET && role_allows(UserRole::Viewer, operation) {
                assert!(operation.path.starts_with("/auth/"), "{}", operation.id);
            }
            let is_own = matches!(operation.handler, OperationHandler::Session(SessionSubject::Own, _));
            if !is_own && matches!(operation.risk, Risk::Secret | Risk::Money | Risk::Payout | Risk::Team) {
                assert!(!role_allows(UserRole::Viewer, operation), "{}", operation.id);
            }
        }
    }

    #[test]
    fn payouts_are_released_by_owners_and_the_team_is_managed_by_admins() {
        let table = operation_table();
        let least = |id: &str| least_role(table.iter().find(|operation| operation.id == id).unwrap());
        assert_eq!(least("approve_affiliate_payout_run"), UserRole::Owner);
        for id in
            ["invite_user", "update_user", "remove_user", "draft_affiliate_payout_run", "get_affiliate_payout_file"]
        {
            assert_eq!(least(id), UserRole::Admin, "{id}");
        }
        for id in ["create_api_key", "get_affiliate_inside", "resend_email", "preview_template"] {
            assert_eq!(least(id), UserRole::Developer, "{id}");
        }
        for id in ["list_emails", "list_users", "set_password", "sign_out"] {
            assert_eq!(least(id), UserRole::Viewer, "{id}");
        }
    }
}
