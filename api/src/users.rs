//! The users of an account: list them, invite, change a role, remove. Owners do it, signed in.

use std::sync::Arc;

use mail::account::Account;
use mail::address::Address;
use mail::id::UserId;
use mail::quota::Noun;
use mail::user::{User, UserRole};
use queue::people::UserService;
use queue::quota::StorageReservation;
use serde::Serialize;
use serde_json::Value;
use store::access::SignedInUser;

use crate::auth::mailed::{self, AccessGrant, LinkPurpose};
use crate::auth::user_error_problem;
use crate::auth::view::UserView;
use crate::call::{FromRequest, NoInput, Request, RequestSpec, SMALL_BYTES_MAX};
use crate::done::OkResponse;
use crate::fields::{self, FieldDiagnostics, FieldNames, ObjectFields};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// All users of an account: they are few.
#[derive(Debug, Serialize)]
pub struct UserList {
    users: Vec<UserView>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl ToSchema for UserList {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        schema::list_page("users", user)
    }
}

/// One user.
#[derive(Debug, Serialize)]
pub struct UserResponse {
    user: UserView,
}

impl ToSchema for UserResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        schema::object("A user", [("user", user)])
    }
}

/// A user who was invited.
#[derive(Debug, Serialize)]
pub struct InviteUserResponse {
    user: UserView,
    link_mailed: bool,
}

impl ToSchema for InviteUserResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let user = UserView::schema(schemas);
        let mailed = schema::boolean("Whether a sign-in link was mailed to them");
        schema::object("A user who was invited", [("user", user), ("link_mailed", mailed)])
    }
}

const EMAIL: &str = "email";
const ROLE: &str = "role";

fn read_role(given: &ObjectFields<'_>, notes: &mut FieldDiagnostics) -> Option<UserRole> {
    let read = fields::parse_text(given.value(ROLE)?).and_then(|text| text.parse());
    read.map_err(|text| notes.errors.add(ROLE, text)).ok()
}

fn role_schema() -> Value {
    schema::string_enum(&["owner", "member"], "What they may do: owners invite, change and remove users")
}

/// What `POST /users` takes.
#[derive(Debug)]
pub struct InviteUser {
    email: Address,
    role: UserRole,
}

impl FromRequest for InviteUser {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let email = (EMAIL, schema::string("Their address"));
        let body = schema::object_with("Whom to invite", &[EMAIL], [email, (ROLE, role_schema())]);
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(EMAIL, EMAIL), (ROLE, ROLE)], foreign: &[] };
        let mut notes = FieldDiagnostics::default();
        let given = call.body_fields(&NAMES, &mut notes)?;
        let email = match given.value(EMAIL) {
            None => Err("is required".to_owned()),
            Some(value) => fields::parse_text(value)
                .and_then(|text| text.trim().parse().map_err(|_| "is not an address".to_owned())),
        };
        let email = email.map_err(|text| notes.errors.add(EMAIL, text)).ok();
        let role = read_role(&given, &mut notes).unwrap_or(UserRole::Member);
        match email {
            Some(email) if notes.errors.is_empty() => Ok(Self { email, role }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// A user's id, from the path. What cannot be an id is the id of nobody.
fn parse_id(call: &Request) -> Result<UserId, Problem> {
    call.path_parameter("id").parse().map_err(|_| Problem::not_found("user"))
}

fn id_parameter() -> Value {
    schema::path_parameter("id", "The user's id (`user_…`)")
}

/// A user.
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

/// What `PATCH /users/{id}` takes.
#[derive(Debug, Clone, Copy)]
pub struct UpdateUserRole(UserId, UserRole);

impl FromRequest for UpdateUserRole {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(_: &mut Schemas) -> RequestSpec {
        let body = schema::object("What changes", [(ROLE, role_schema())]);
        let parameters = vec![id_parameter()];
        RequestSpec { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const NAMES: FieldNames = FieldNames { known: &[(ROLE, ROLE)], foreign: &[] };
        let id = parse_id(call)?;
        let mut notes = FieldDiagnostics::default();
        let given = call.body_fields(&NAMES, &mut notes)?;
        if !given.is_present_or_misnamed(ROLE) {
            notes.errors.add(ROLE, "is required");
        }
        match read_role(&given, &mut notes) {
            Some(role) if notes.errors.is_empty() => Ok(Self(id, role)),
            _ => Err(notes.errors.into()),
        }
    }
}

/// `GET /users`.
///
/// # Errors
/// The store cannot be read.
pub async fn list(room: Arc<AppState>, who: SignedInUser, _: NoInput) -> Result<UserList, Problem> {
    let found = store::user::list(room.intake.store(), who.tenant().account().id).await?;
    let users = found.iter().rev().map(UserView::from_user).collect();
    Ok(UserList { users, has_more: false, next_cursor: None })
}

/// `POST /users`: they get a sign-in link, if the service can mail; else they ask for one later. Who is
/// invited already gets another one. Whether the address signs in to another account is not told: it is
/// the invited who hear of it, when they accept.
///
/// # Errors
/// 409 for a user of this account, and when there are too many; 403 when the plan includes no more; 429 when they were invited too often.
pub async fn invite(room: Arc<AppState>, who: SignedInUser, asked: InviteUser) -> Result<InviteUserResponse, Problem> {
    let InviteUser { email, role } = asked;
    let account = who.tenant().account();
    room.sign_in_limiter.count_invitation(account.id, &email.to_string(), room.intake.clock().now())?;
    let people = UserService::from_intake(&room.intake);
    let reserved = match people.is_user(account, &email).await.map_err(user_error_problem)? {
        true => None,
        false => Some(room.reserve_storage(who.tenant(), Noun::Users, 1).await?),
    };
    let user = people.invite(account, email, role).await.map_err(user_error_problem)?;
    reserved.into_iter().for_each(StorageReservation::confirm);
    let link_mailed = mailed::send_link(&room, &user, LinkPurpose::Invitation).await.is_ok();
    notify_owner_added(&room, account, &user);
    Ok(InviteUserResponse { user: UserView::from_user(&user), link_mailed })
}

/// An owner may all that an owner may: the others hear of a further one.
fn notify_owner_added(room: &Arc<AppState>, account: &Account, user: &User) {
    if user.role == UserRole::Owner {
        mailed::notify_access_granted(room, account, AccessGrant::Owner(user.clone()));
    }
}

/// `PATCH /users/{id}`.
///
/// # Errors
/// No such user; 409 when no owner would be left.
pub async fn update_role(
    room: Arc<AppState>,
    who: SignedInUser,
    asked: UpdateUserRole,
) -> Result<UserResponse, Problem> {
    let UpdateUserRole(id, role) = asked;
    let account = who.tenant().account();
    let user =
        UserService::from_intake(&room.intake).change_role(account.id, id, role).await.map_err(user_error_problem)?;
    notify_owner_added(&room, account, &user);
    Ok(UserResponse { user: UserView::from_user(&user) })
}

/// `DELETE /users/{id}`.
///
/// # Errors
/// No such user; 409 when no owner would be left.
pub async fn remove(room: Arc<AppState>, who: SignedInUser, UserPath(id): UserPath) -> Result<OkResponse, Problem> {
    UserService::from_intake(&room.intake)
        .remove_user(who.tenant().account().id, id)
        .await
        .map_err(user_error_problem)?;
    Ok(OkResponse::OK)
}
