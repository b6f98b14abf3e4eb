//! Permissions of the operator's requests, and the handles that they need.

use std::path::PathBuf;
use std::sync::Arc;

use api::server::ApiServer;
use model::account::Plan;
use tokio::sync::Semaphore;

use super::console_access::ConsoleAccess;
use super::status::StatusFacts;
use crate::acme::CertificateRenewer;

/// Configured permissions and handles that requests need beyond [`Server`](crate::services::Server).
#[derive(Clone)]
pub struct Permissions {
    /// Plan of a new account.
    pub default_plan: Plan,
    /// User name at submission.
    pub submission_username: String,
    /// True: `clock advance` is permitted.
    pub may_advance_clock: bool,
    /// Directory where the clock shift is stored.
    pub data_dir: PathBuf,
    /// The ACME certificate, if ACME is configured.
    pub certificate: Option<Arc<CertificateRenewer>>,
    /// The API's state, through which an owner's operations run.
    pub api_server: Arc<ApiServer>,
    pub status: StatusFacts,
    /// One permit: one check of the store at a time.
    pub check_permit: Arc<Semaphore>,
    /// Sign-in to the console.
    pub console: Arc<ConsoleAccess>,
}
