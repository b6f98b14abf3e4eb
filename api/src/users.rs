//! Users of an account: list, invite, change role, remove. Signed-in users may list them; owners and admins may change
//! them. Only owners manage owners and admins.

use accounts::users::UserService;
use httpd::fields::{self, FieldDiagnostics, FieldNames, ObjectFields};
use message::address::Address;
use model::account::Account;
use model::id::UserId;
use model::quota::Noun;
use model::user::{User, UserRole};
use queue::intake::storage_quota::StorageReservation;
use store::access::SignedInUser;

use crate::auth::login_links::{self, AccessGrant, LinkPurpose};
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

const EMAIL: &str = "email";
const ROLE: &str = "role";

fn read_role(fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<UserRole> {
    let parsed = fields::parse_text(fields.value(ROLE)?).and_then(|text| text.parse());
    parsed.map_err(|text| notes.errors.add(ROLE, text)).ok()
}

fn role_schema() -> Value {
    schema::string_enum(
        &["owner", "admin", "developer", "viewer"],
        "Role; owners and admins manage users, and only owners manage owners and admins. `member` means `developer`",
    )
}

/// The request body of `POST /users`.
#[derive(Debug)]
pub struct InviteUser {
    email: Address,
    role: UserRole,
}

impl FromRequest for InviteUser {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let email = (EMAIL, schema::address("Email address of the user"));
        let body = schema::object_with("The user to invite", &[EMAIL], [email, (ROLE, role_schema())]);
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(EMAIL, EMAIL), (ROLE, ROLE)], foreign: &[] };
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let email = match fields.value(EMAIL) {
            None => Err("is required".to_owned()),
            Some(value) => fields::parse_text(value)
                .and_then(|text| text.trim().parse().map_err(|_| "is not an email address".to_owned())),
        };
        let email = email.map_err(|text| notes.errors.add(EMAIL, text)).ok();
        let role = read_role(&fields, &mut notes).unwrap_or(UserRole::Developer);
        match email {
            Some(email) if notes.errors.is_empty() => Ok(Self { email, role }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// Parses the user id in the path; a malformed id is answered 404, like an unknown one.
fn parse_id(call: &Request) -> Result<UserId, Problem> {
    call.path_parameter("id").parse().map_err(|_| Problem::not_found("user"))
}

fn id_parameter() -> Value {
    schema::path_parameter("id", "The user's id (`user_…`)")
}

#[derive(Debug, Clone, Copy)]
pub struct UserPath(UserId);

impl FromRequest for UserPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: vec![id_parameter()], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        parse_id(call).map(Self)
    }
}

/// The request of `PATCH /users/{id}`.
#[derive(Debug, Clone, Copy)]
pub struct UpdateUserRole(UserId, UserRole);

impl FromRequest for UpdateUserRole {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let body = schema::object("The new role", [(ROLE, role_schema())]);
        let parameters = vec![id_parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(ROLE, ROLE)], foreign: &[] };
        let id = parse_id(call)?;
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        if !fields.is_present_or_misnamed(ROLE) {
            notes.errors.add(ROLE, "is required");
        }
        match read_role(&fields, &mut notes) {
            Some(role) if notes.errors.is_empty() => Ok(Self(id, role)),
            _ => Err(notes.errors.into()),
        }
    }
}

/// `GET /users`.
pub async fn list(state: Arc<AppState>, user: SignedInUser, _: NoInput) -> Result<UserList, Problem> {
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
pub async fn invite(
    state: Arc<AppState>,
    signed_in: SignedInUser,
    request: InviteUser,
) -> Result<InviteUserResponse, Problem> {
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
fn notify_owner_added(state: &Arc<AppState>, account: &Account, user: &User) {
    if user.role == UserRole::Owner {
        login_links::notify_access_granted(state, account, AccessGrant::Owner(user.clone()));
    }
}

/// `PATCH /users/{id}`.
///
/// # Errors
/// The user does not exist; 403 when an admin manages an owner or admin; 409 when no owner would be left.
pub async fn update_role(
    state: Arc<AppState>,
    signed_in: SignedInUser,
    request: UpdateUserRole,
) -> Result<UserResponse, Problem> {
    let UpdateUserRole(id, role) = request;
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
pub async fn remove(state: Arc<AppState>, user: SignedInUser, UserPath(id): UserPath) -> Result<OkResponse, Problem> {
    UserService::new(&state.services)
        .remove_user(user.tenant().account().id, id, user.user().role)
        .await
        .map_err(user_error_problem)?;
    Ok(OkResponse::OK)
}
