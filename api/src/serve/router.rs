//! From method and path to the operation: made from the operation table, `matchit` underneath.

use std::fmt;

use http::Method;

use crate::operations::Operation;

/// A longer path names nothing that we have.
const PATH_BYTES_MAX: usize = 2 << 10;

/// What a method and a path lead to.
#[derive(Debug)]
pub enum RouteMatch<'a> {
    /// An operation.
    Found(MatchedOperation<'a>),
    /// The path exists, but not with this method; these it has.
    MethodNotAllowed(String),
    /// No such path.
    NotFound,
}

/// From which side an operation is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientKind {
    /// By a program, with a key.
    Program,
    /// By a browser, with a session: `/api` stands before the path.
    Browser,
}

/// What stands before a path that is called by a browser.
const BROWSER_PREFIX: &str = "/api";

/// An operation that was found.
#[derive(Debug)]
pub struct MatchedOperation<'a> {
    /// Which.
    pub operation: &'a Operation,
    /// The parameters of the path.
    pub path: Vec<(String, String)>,
    /// From which side.
    pub client: ClientKind,
}

/// The router.
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
    /// A router of this table. Two operations of one method and path, or two paths that only differ
    /// in the name of a parameter, are a mistake in the table that a test finds.
    #[must_use]
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

    /// The table.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Finds the operation, also behind `/api`. HEAD is GET (RFC 9110 9.3.2).
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> RouteMatch<'_> {
        if path.len() > PATH_BYTES_MAX {
            return RouteMatch::NotFound;
        }
        if let Ok(found) = self.paths.at(path) {
            return self.match_path(method, &found, ClientKind::Program);
        }
        let behind = path.strip_prefix(BROWSER_PREFIX).and_then(|path| self.paths.at(path).ok());
        behind.map_or(RouteMatch::NotFound, |found| self.match_path(method, &found, ClientKind::Browser))
    }

    fn match_path(
        &self,
        method: &Method,
        found: &matchit::Match<'_, '_, &Vec<usize>>,
        side: ClientKind,
    ) -> RouteMatch<'_> {
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let mut there = found
            .value
            .iter()
            .filter_map(|n| self.operations.get(*n))
            .filter(|operation| side == ClientKind::Program || operation.accepts_sessions());
        if let Some(operation) = there.clone().find(|operation| operation.method == *wanted) {
            let path = found.params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            return RouteMatch::Found(MatchedOperation { operation, path, client: side });
        }
        let mut methods: Vec<&str> = there.by_ref().map(|operation| operation.method.as_str()).collect();
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
