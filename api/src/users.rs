//! Users of an account: list, invite, change role, remove. Signed-in users may list them; owners and admins may change
//! them. Only owners manage owners and admins.

use accounts::users::UserService;
use model::account::Account;
use model::quota::Noun;
use model::user::{User, UserRole};
use queue::intake::storage_quota::StorageReservation;

use crate::auth::login_links::{self, AccessGrant, LinkPurpose};
use crate::auth::request::{email_schema, parse_email};
use crate::auth::user_error_problem;
use crate::auth::view::UserView;
use crate::prelude::*;

list_response! { pub UserList { users: UserView } }

object_response! { "A user", pub UserResponse { user: UserView } }

/// An invited user
#[derive(Debug, Serialize, ToSchema)]
pub struct InviteUserResponse {
    user: UserView,
    /// Whether a sign-in link was sent to the user
    link_mailed: bool,
}

fn parse_role(value: &RawValue) -> Result<UserRole, String> {
    fields::parse_text(value)?.parse()
}

fn role_schema(_: &mut Schemas) -> Value {
    json!({"type": "string", "enum": ["owner", "admin", "developer", "viewer"]})
}

/// The user to invite
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX)]
pub struct InviteUser {
    /// Email address of the user
    #[field(parse = parse_email, schema = email_schema)]
    email: Address,
    /// Role; owners and admins manage users, and only owners manage owners and admins. `member` means `developer`
    #[field(parse = parse_role, schema = role_schema, absent = UserRole::Developer)]
    role: UserRole,
}

id_path! { pub UserPath(UserId), "The user's id (`user_…`)", "user" }

/// The new role
#[derive(Debug, RequestObject)]
#[schema(body_bytes_max = SMALL_BYTES_MAX)]
pub struct UpdateUserRole {
    /// Role; owners and admins manage users, and only owners manage owners and admins. `member` means `developer`
    #[field(parse = parse_role, schema = role_schema)]
    role: UserRole,
}

/// `GET /users`.
pub async fn list(state: State, user: SignedInUser, _: NoInput) -> Result<UserList> {
    let found = store::user::list(&state.services.store, user.tenant().account().id).await?;
    let users = found.iter().rev().map(UserView::from_user).collect();
    Ok(UserList::new(users, None))
}

/// `POST /users`: invites a user, and sends a sign-in link if the service can send email; else the user requests one
/// later. A user who was already invited gets another link. The response does not reveal whether the address belongs
/// to a user of another account; the invited user is informed of that on acceptance.
///
/// # Errors
/// 409 for a user of this account, or when there are too many users; 403 when the plan's quota is used up, or when an
/// admin invites an owner or admin; 429 after too many invitations.
pub async fn invite(state: State, signed_in: SignedInUser, request: InviteUser) -> Result<InviteUserResponse> {
    let InviteUser { email, role } = request;
    let account = signed_in.tenant().account();
    state.sign_in.limiter.count_invitation(account.id, &email.to_string(), state.services.clock.now())?;
    let users = UserService::new(&state.services);
    let reserved = match users.is_user(account, &email).await.map_err(user_error_problem)? {
        true => None,
        false => Some(state.reserve_storage(signed_in.tenant(), Noun::Users, 1).await?),
    };
    let user = users.invite(account, email, role, signed_in.user().role).await.map_err(user_error_problem)?;
    reserved.into_iter().for_each(StorageReservation::confirm);
    let link_mailed = login_links::send_link(&state, &user, LinkPurpose::Invitation).await.is_ok();
    notify_owner_added(&state, account, &user);
    Ok(InviteUserResponse { user: UserView::from_user(&user), link_mailed })
}

/// Notifies the other owners of a new owner, who has all permissions.
fn notify_owner_added(state: &State, account: &Account, user: &User) {
    if user.role == UserRole::Owner {
        login_links::notify_access_granted(state, account, AccessGrant::Owner(user.clone()));
    }
}

/// `PATCH /users/{id}`.
///
/// # Errors
/// The user does not exist; 403 when an admin manages an owner or admin; 409 when no owner would be left.
pub async fn update_role(
    state: State,
    signed_in: SignedInUser,
    (UserPath(id), UpdateUserRole { role }): (UserPath, UpdateUserRole),
) -> Result<UserResponse> {
    let account = signed_in.tenant().account();
    let users = UserService::new(&state.services);
    let changed = users.change_role(account.id, id, role, signed_in.user().role).await;
    let user = changed.map_err(user_error_problem)?;
    notify_owner_added(&state, account, &user);
    Ok(UserResponse { user: UserView::from_user(&user) })
}

/// `DELETE /users/{id}`.
///
/// # Errors
/// The user does not exist; 403 when an admin manages an owner or admin; 409 when no owner would be left.
pub async fn remove(state: State, user: SignedInUser, UserPath(id): UserPath) -> Result<OkResponse> {
    UserService::new(&state.services)
        .remove_user(user.tenant().account().id, id, user.user().role)
        .await
        .map_err(user_error_problem)?;
    Ok(OkResponse::OK)
}
