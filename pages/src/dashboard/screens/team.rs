//! Team: the users of the account, their roles, and invitations.

use crate::dashboard::kit::confirm::{confirm, confirm_field};
use crate::dashboard::prelude::*;

const PATH: &str = "/dashboard/team";

pub const PAGES: &[PageRow] = page_rows! {
    "/team" => list, reads ["list_users"], forms {
        "invite" => invite, calls "invite_user";
    };
    "/team/{id}" => detail, reads ["list_users", "update_user"], forms {
        "role" => change_role, calls "update_user";
        "remove" => remove, calls "remove_user";
        "invite" => invite, calls "invite_user";
    };
};

/// Roles from the least to the highest, with what they may do.
const ROLES: [(&str, &str); 4] = [
    ("viewer", "Viewer: sees everything except secrets, changes nothing"),
    ("developer", "Developer: sends, and changes domains, keys, templates and webhooks"),
    ("admin", "Admin: also manages money, and team members below admin"),
    ("owner", "Owner: everything; only owners approve payouts"),
];

#[answer]
struct User {
    id: String,
    email: String,
    role: String,
    status: String,
    has_totp: bool,
    created_at: String,
}

fn role_field(role: &str) -> Field {
    let choices = choices(&ROLES);
    Field::new("role", "Role", Control::Radio(choices.to_vec())).value(role)
}

fn invite_form() -> Form<'static> {
    let email = Field::new("email", "Email address", Control::Email).required();
    Form::new("invite", "Invite", vec![email, role_field("developer")])
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("list_users");
    let users: Vec<User> = context.read_field("users", &call).await?;
    let can_change = context.allows("update_user");
    let table = Table::of("Users", &users)
        .column("Email", |user| link_or_text(can_change.then(|| format!("{PATH}/{}", encode(&user.id))), &user.email))
        .column("Role", |user| sentence_case(&user.role))
        .column("Status", |user| Badge::of(&user.status))
        .column("One-time passwords", |user| if user.has_totp { "On" } else { "Off" })
        .column("Since", |user| time_or_dash(Some(&user.created_at)));
    let form = invite_form();
    let body = maud! {
        (table)
        @if context.allows("invite_user") {
            section.card {
                h2 { "Invite someone" }
                p.soft { "The person gets a single-use sign-in link by email, and can then set a password." }
                (form.within(context))
            }
        }
    };
    Ok(Page::new("Team", body).into())
}

async fn find(context: &Context<'_>) -> Result<User, Failure> {
    let users: Vec<User> = context.read_field("users", &Call::new("list_users")).await?;
    users.into_iter().find(|user| user.id == context.id()).ok_or_else(Failure::not_found)
}

async fn detail(context: &Context<'_>) -> Result<View, Failure> {
    let user = find(context).await?;
    let role = Form::new("role", "Save the role", vec![role_field(&user.role)]);
    let fields = vec![Field::hidden("email", user.email.clone()), Field::hidden("role", user.role.clone())];
    let again = Form::new("invite", "Send the invitation again", fields);
    let remove = Form::new("remove", "Remove from the team", vec![confirm_field(&user.email)]).danger();
    let title = user.email.clone();
    let body = maud! {
        div.columns {
            section.card { h2 { "Role" } (role.within(context)) }
            @if user.status == "invited" {
                section.card { h2 { "Invitation" } p { "It has not been accepted yet." } (again.within(context)) }
            }
            section.card {
                h2 { "Remove" }
                p { "All sessions of " (user.email) " end at once. What the person has created stays." }
                (remove.within(context))
            }
        }
    };
    Ok(Page::new(title, body).below(PATH, "Team").into())
}

async fn invite(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = invite_form().read(context.form())?;
    context.act(&Call::new("invite_user").json(body), PATH, "invited").await
}

async fn change_role(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = json!({"role": context.form().get("role")});
    context.act(&Call::new("update_user").id(context.id()).json(body), PATH, "changed").await
}

async fn remove(context: &Context<'_>) -> Result<Outcome, Failure> {
    let user = find(context).await?;
    confirm(context, &user.email)?;
    context.act(&Call::new("remove_user").id(context.id()), PATH, "deleted").await
}
