//! Maps method and path to an operation; built from the operation table on top of `matchit`.

use std::fmt;

use http::Method;

use crate::operation::Operation;

/// Longest path that is matched; no operation has a longer one.
const PATH_BYTES_MAX: usize = 2 << 10;

/// The result of routing.
#[derive(Debug)]
pub enum RouteMatch<'a> {
    Found(MatchedOperation<'a>),
    /// The path exists, but not with this method; the value of `Allow`.
    MethodNotAllowed(String),
    /// The path does not exist.
    NotFound,
}

/// The kind of client, by the path prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientKind {
    /// A program with an API key.
    Program,
    /// A browser with a session; its paths begin with `/api`.
    Browser,
}

/// Path prefix of browser clients.
const BROWSER_PREFIX: &str = "/api";

#[derive(Debug)]
pub struct MatchedOperation<'a> {
    pub operation: &'a Operation,
    /// The path parameters by name.
    pub path: Vec<(String, String)>,
    pub client: ClientKind,
}

/// The router over the operation table.
pub struct OperationRouter {
    operations: Vec<Operation>,
    paths: matchit::Router<Vec<usize>>,
}

impl fmt::Debug for OperationRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.operations).finish()
    }
}

impl OperationRouter {
    /// Builds the router. Two operations with the same method and path, or two paths that differ only in a
    /// parameter's name, are a mistake in the table that a test finds.
    pub fn new(operations: Vec<Operation>) -> Self {
        let mut by_path: Vec<(&'static str, Vec<usize>)> = Vec::new();
        for (n, operation) in operations.iter().enumerate() {
            match by_path.iter_mut().find(|(path, _)| *path == operation.path) {
                Some((_, places)) => places.push(n),
                None => by_path.push((operation.path, vec![n])),
            }
        }
        let mut paths = matchit::Router::new();
        for (path, places) in by_path {
            let added = paths.insert(path, places);
            debug_assert!(added.is_ok(), "{path}: {added:?}");
        }
        Self { operations, paths }
    }

    /// The operation table.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    pub fn operation(&self, id: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.id == id)
    }

    /// Finds the operation, with or without the prefix `/api`. HEAD is handled as GET (RFC 9110 9.3.2).
    pub fn find(&self, method: &Method, path: &str) -> RouteMatch<'_> {
        if path.len() > PATH_BYTES_MAX {
            return RouteMatch::NotFound;
        }
        if let Ok(found) = self.paths.at(path) {
            return self.match_path(method, &found, ClientKind::Program);
        }
        let browser_route = path.strip_prefix(BROWSER_PREFIX).and_then(|path| self.paths.at(path).ok());
        browser_route.map_or(RouteMatch::NotFound, |found| self.match_path(method, &found, ClientKind::Browser))
    }

    fn match_path(
        &self,
        method: &Method,
        found: &matchit::Match<'_, '_, &Vec<usize>>,
        client: ClientKind,
    ) -> RouteMatch<'_> {
        let routed_method = if method == Method::HEAD { &Method::GET } else { method };
        let mut candidates = found
            .value
            .iter()
            .filter_map(|n| self.operations.get(*n))
            .filter(|operation| client == ClientKind::Program || operation.accepts_sessions());
        if let Some(operation) = candidates.clone().find(|operation| operation.method == *routed_method) {
            let path = found.params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            return RouteMatch::Found(MatchedOperation { operation, path, client });
        }
        let mut methods: Vec<&str> = candidates.by_ref().map(|operation| operation.method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        if methods.is_empty() {
            return RouteMatch::NotFound;
        }
        methods.sort_unstable();
        RouteMatch::MethodNotAllowed(methods.join(", "))
    }
}
