//! The host names of this server.

use message::address::DomainName;

/// Host names of this server.
#[derive(Debug, Clone)]
pub struct OwnHostnames {
    pub hostname: DomainName,
    /// Host that the `rp` CNAME of sending domains points to.
    pub return_path_host: DomainName,
}

impl OwnHostnames {
    /// Returns whether a name is one of this server's own hosts.
    pub fn is_own(&self, name: &DomainName) -> bool {
        *name == self.hostname || *name == self.return_path_host
    }

    /// Returns whether a name looks like the return-path host of a sending domain.
    pub fn is_return_path(name: &DomainName) -> bool {
        let suffix = name.as_str().strip_prefix(model::domain_setup::RETURN_PATH_LABEL);
        suffix.is_some_and(|suffix| suffix.starts_with('.'))
    }
}
