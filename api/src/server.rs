//! `ApiServer`: the state that the handlers share, and the router over the operation table that calls them.

use std::sync::Arc;

use ::affiliate::service::AffiliateService;
use bytes::Bytes;
use queue::account_subsystems::{AccountSubsystems, Subsystems};

use crate::openapi;
use crate::operation::Operation;
use crate::operations::operation_table;
use crate::serve::router::OperationRouter;
use crate::state::{ApiOptions, AppState};

/// The HTTP API, without its listeners.
pub struct ApiServer {
    pub(crate) state: Arc<AppState>,
    pub(crate) router: Arc<OperationRouter>,
}

impl ApiServer {
    /// Builds the state, and the router from the operation table.
    #[must_use]
    pub fn new(
        queue: Arc<Subsystems>,
        accounts: AccountSubsystems,
        affiliate: AffiliateService,
        options: ApiOptions,
    ) -> Arc<Self> {
        Self::with_operations(queue, accounts, affiliate, options, operation_table())
    }

    /// As [`ApiServer::new`], with another operation table, for tests.
    #[must_use]
    pub fn with_operations(
        queue: Arc<Subsystems>,
        accounts: AccountSubsystems,
        affiliate: AffiliateService,
        options: ApiOptions,
        table: Vec<Operation>,
    ) -> Arc<Self> {
        let router = Arc::new(OperationRouter::new(table));
        let (described, base_url) = (Arc::clone(&router), options.base_url.clone());
        let document = Box::new(move || Bytes::from(openapi::render(described.operations(), &base_url)));
        Arc::new(Self { state: AppState::new(queue, accounts, affiliate, options, document), router })
    }

    /// The state that the handlers share.
    #[must_use]
    pub fn state(&self) -> &Arc<AppState> {
        &self.state
    }
}
