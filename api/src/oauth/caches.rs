//! State that the authorization server keeps in memory between requests.

use super::client_document::ClientDocuments;
use super::device_polls::DevicePolls;

/// The memory of the authorization server.
#[derive(Debug, Default)]
pub(crate) struct OAuthCaches {
    /// Fetched metadata documents of clients.
    pub(crate) documents: ClientDocuments,
    pub(crate) device_polls: DevicePolls,
}
