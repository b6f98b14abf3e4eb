//! `SdkMethod`, `SdkAction` and `Risk`: how SDKs, the CLI and MCP tools name an operation, and what calling it can do.
//!
//! The name is written once, in the operation table: `emails.send` is `client.emails.send(…)` in the SDKs and
//! `postrider emails send` on the command line. `sdk/operations.json` publishes it ([`crate::openapi::sdk`]).

use serde::Serialize;

/// The most serious effect that a call can have. The CLI asks before it deletes; MCP tools derive their annotations
/// from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Changes nothing.
    Read,
    /// Creates or changes objects of the account.
    Write,
    /// Sends email to recipients.
    Send,
    /// Deletes an object.
    Delete,
    /// Returns or replaces a secret.
    Secret,
    /// Changes what partners are paid, or returns how they are paid.
    Money,
    /// Releases money to partners.
    Payout,
    /// Gives, changes or removes the access of the account's users.
    Team,
}

/// The place of an operation in the SDKs: a path of resources in camelCase, and a method, for example
/// `emails.attempts.list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SdkMethod {
    pub name: &'static str,
    pub risk: Risk,
    /// Further methods that call the same operation.
    pub actions: &'static [SdkAction],
}

/// A method that calls an operation with one field of the body fixed and no other fields, for example
/// `automations.activate`. `sdk/operations.json` lists it like an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SdkAction {
    /// In the form of an operation's id, for example `activate_automation`.
    pub id: &'static str,
    /// Resources and method in camelCase. The resources are those of the operation.
    pub name: &'static str,
    pub summary: &'static str,
    /// The fixed field of the body.
    pub field: &'static str,
    pub value: &'static str,
}

impl SdkAction {
    /// The method of this action, with the risk of its operation.
    pub fn method(&self, risk: Risk) -> SdkMethod {
        SdkMethod { name: self.name, risk, actions: &[] }
    }
}

impl SdkMethod {
    /// The path of resources, for example `emails.attempts`.
    pub fn resource(&self) -> &'static str {
        self.name.rsplit_once('.').map_or("", |(resource, _)| resource)
    }

    /// The method, for example `list`.
    pub fn method(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, method)| method)
    }

    /// The command of the CLI, for example `received-emails attachments get`.
    pub fn command(&self) -> String {
        let mut command = String::with_capacity(self.name.len() + 4);
        for letter in self.name.chars() {
            match letter {
                '.' => command.push(' '),
                letter if letter.is_ascii_uppercase() => {
                    command.push('-');
                    command.push(letter.to_ascii_lowercase());
                }
                letter => command.push(letter),
            }
        }
        command
    }
}
