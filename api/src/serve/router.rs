//! From method and path to the operation: made from the operation table, `matchit` underneath.

use std::fmt;

use http::Method;

use crate::operations::Operation;

/// A longer path names nothing that we have.
const PATH_BYTES_MAX: usize = 2 << 10;

/// What a method and a path lead to.
#[derive(Debug)]
pub enum Route<'a> {
    /// An operation.
    Found(Found<'a>),
    /// The path exists, but not with this method; these it has.
    WrongMethod(String),
    /// No such path.
    Unknown,
}

/// From which side an operation is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// By a program, with a key.
    Program,
    /// By a browser, with a session: `/api` stands before the path.
    Browser,
}

/// What stands before a path that is called by a browser.
const BROWSER: &str = "/api";

/// An operation that was found.
#[derive(Debug)]
pub struct Found<'a> {
    /// Which.
    pub operation: &'a Operation,
    /// The parameters of the path.
    pub path: Vec<(String, String)>,
    /// From which side.
    pub side: Side,
}

/// The router.
pub struct Router {
    operations: Vec<Operation>,
    paths: matchit::Router<Vec<usize>>,
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.operations).finish()
    }
}

impl Router {
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
    pub fn find(&self, method: &Method, path: &str) -> Route<'_> {
        if path.len() > PATH_BYTES_MAX {
            return Route::Unknown;
        }
        if let Ok(found) = self.paths.at(path) {
            return self.of_path(method, &found, Side::Program);
        }
        let behind = path.strip_prefix(BROWSER).and_then(|path| self.paths.at(path).ok());
        behind.map_or(Route::Unknown, |found| self.of_path(method, &found, Side::Browser))
    }

    fn of_path(&self, method: &Method, found: &matchit::Match<'_, '_, &Vec<usize>>, side: Side) -> Route<'_> {
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let mut there = found
            .value
            .iter()
            .filter_map(|n| self.operations.get(*n))
            .filter(|operation| side == Side::Program || operation.takes_sessions());
        if let Some(operation) = there.clone().find(|operation| operation.method == *wanted) {
            let path = found.params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            return Route::Found(Found { operation, path, side });
        }
        let mut methods: Vec<&str> = there.by_ref().map(|operation| operation.method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        if methods.is_empty() {
            return Route::Unknown;
        }
        methods.sort_unstable();
        Route::WrongMethod(methods.join(", "))
    }
}
