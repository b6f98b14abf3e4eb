//! The screens of the console: each file has the pages of one subject, as rows of the page table.

pub mod account;
pub mod accounts;
pub mod attention;
pub mod commands;
pub mod depth;
pub mod destination;
pub mod destination_forms;
pub mod destinations;
pub mod doctor;
pub mod email;
pub mod emails;
pub mod mail;
pub mod mail_change;
pub mod overview;
pub mod pools;
pub mod queue;
pub mod replies;
pub mod selection;
pub mod server;
pub mod server_status;
pub mod sign_in;
#[cfg(test)]
mod tests;

use crate::dashboard::table::PageRow;

/// The rows of all screens.
pub const ALL: &[&[PageRow]] = &[
    overview::PAGES,
    sign_in::PAGES,
    queue::PAGES,
    mail::PAGES,
    mail_change::PAGES,
    emails::PAGES,
    email::PAGES,
    destination::PAGES,
    destinations::PAGES,
    destination_forms::PAGES,
    pools::PAGES,
    replies::PAGES,
    doctor::PAGES,
    server::PAGES,
    accounts::PAGES,
    account::PAGES,
    commands::PAGES,
];
