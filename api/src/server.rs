//! `ApiServer`: the state that the handlers share, and the router over the operation table that calls them.

use std::sync::Arc;

use ::affiliate::service::AffiliateService;
use accounts::subsystems::{AccountSubsystems, Subsystems};
use bytes::Bytes;

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
    pub fn new(
        queue: Arc<Subsystems>,
        accounts: AccountSubsystems,
        affiliate: AffiliateService,
        options: ApiOptions,
    ) -> Arc<Self> {
        Self::with_operations(queue, accounts, affiliate, options, operation_table())
    }

    /// As [`ApiServer::new`], with another operation table, for tests.
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
    pub fn state(&self) -> &Arc<AppState> {
        &self.state
    }
}
