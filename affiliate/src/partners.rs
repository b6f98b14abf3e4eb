//! Partners: looked up, created and changed, with their links and postbacks.

pub mod changes;
pub mod imports;
pub mod link_url;
pub mod links;
pub mod lookup;
pub mod postbacks;
