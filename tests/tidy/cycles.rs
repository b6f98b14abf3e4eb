//! Import cycles among the files of a crate. Files that import each other in a cycle cannot be read or changed one at a
//! time. The largest cycle of each crate therefore has a limit, and limits are only ever lowered.
//!
//! ```text
//! sources ─► use declarations and qualified paths ─► graph of files ─► strongly connected components ─► largest
//! ```
//!
//! Limits: paths are read as text. A path counts as an import of the longest module that it names. `mod tests` and
//! paths written by macros are ignored.

use std::collections::{BTreeMap, BTreeSet};

use super::order;
use super::tree::{Finding, Tree, code};

/// The largest import cycle of each member of the workspace and of the root package, in files. At most 5; a number here
/// is never raised.
const LARGEST_CYCLE: &[(&str, usize)] = &[
    ("model/message", 3),
    ("model", 4),
    ("net", 1),
    ("schema-derive", 1),
    ("schema", 1),
    ("store", 4),
    ("dns", 2),
    ("provider", 2),
    ("queue", 5),
    ("events", 2),
    ("inbound", 1),
    ("accounts", 1),
    ("affiliate", 2),
    ("smtp", 5),
    ("html", 2),
    ("mjml", 1),
    ("api/httpd", 1),
    ("api", 1),
    ("explain", 3),
    ("mcp", 1),
    ("cli", 3),
    ("pages", 5),
    ("sdk/generate", 1),
    ("bench/load", 1),
    ("", 2),
];

/// Reports crates whose largest import cycle differs from the table, or that are not in it.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in order::members(tree) {
        if !LARGEST_CYCLE.iter().any(|(name, _)| *name == member) {
            let problem = "the crate has no limit of import cycles: add it in tests/tidy/cycles.rs";
            findings.push(Finding::new(&member, 0, problem));
        }
    }
    for (name, limit) in LARGEST_CYCLE {
        let directory = match *name {
            "" => "src/".to_owned(),
            name if tree.has(&format!("{name}/src")) => format!("{name}/src/"),
            name => format!("{name}/"),
        };
        let graph = import_graph(tree, &directory);
        let largest = components(&graph).into_iter().max_by_key(Vec::len).unwrap_or_default();
        let size = largest.len();
        if size > *limit {
            let files = largest.join(", ");
            let problem = format!("import cycle of {size} files (at most {limit}): {files}");
            findings.push(Finding::new(&directory, 0, problem));
        } else if size < *limit {
            let problem = format!("the largest import cycle has {size} files: lower its limit in tests/tidy/cycles.rs");
            findings.push(Finding::new(&directory, 0, problem));
        }
    }
    findings
}

type Graph = BTreeMap<String, BTreeSet<String>>;

fn import_graph(tree: &Tree, directory: &str) -> Graph {
    let sources: BTreeMap<String, &str> = tree
        .rust()
        .filter_map(|source| Some((module_of(source.path.strip_prefix(directory)?)?, source.text.as_str())))
        .collect();
    let imports = |(module, text): (&String, &&str)| {
        let mut targets: BTreeSet<String> =
            paths_of(text).iter().filter_map(|path| resolve(&sources, module, path)).collect();
        targets.remove(module);
        (module.clone(), targets)
    };
    sources.iter().map(imports).collect()
}

/// Module of a file: `a/b.rs` is `a/b`. `None` for crate roots and test files.
fn module_of(path: &str) -> Option<String> {
    let module = path.strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    let left_out = matches!(module, "lib" | "main") || module.split('/').any(|part| part.ends_with("tests"));
    (!left_out).then(|| module.to_owned())
}

/// All paths in a file that begin with `crate`, `self` or `super`; groups in braces are expanded.
fn paths_of(text: &str) -> Vec<Vec<String>> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let text = text.lines().map(code).collect::<Vec<_>>().join("\n");
    let mut paths = Vec::new();
    for root in ["crate::", "self::", "super::"] {
        for (at, _) in text.match_indices(root) {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                continue;
            }
            expand(text.get(at..).unwrap_or_default(), &mut Vec::new(), &mut paths);
        }
    }
    paths
}

/// Reads one path, or each path of a group `{a, b::c}` after a common prefix. Returns the rest of the text.
fn expand<'a>(mut text: &'a str, prefix: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'a str {
    let depth = prefix.len();
    loop {
        text = text.trim_start();
        if let Some(group) = text.strip_prefix('{') {
            text = group.trim_start();
            while !text.is_empty() && !text.starts_with('}') {
                text = expand(text, prefix, paths);
                // An item ends at the comma; `as name` may come before it.
                let end = text.find([',', '}']).unwrap_or(text.len());
                text = text.get(end..).unwrap_or_default();
                text = text.strip_prefix(',').unwrap_or(text).trim_start();
            }
            text = text.strip_prefix('}').unwrap_or(text);
            break;
        }
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let (segment, rest) = text.split_at(end);
        prefix.push(segment.to_owned());
        let Some(rest) = rest.strip_prefix("::").filter(|_| !segment.is_empty()) else {
            paths.push(prefix.clone());
            text = rest;
            break;
        };
        text = rest;
    }
    prefix.truncate(depth);
    text
}

/// The module that a path names, seen from `current_module`; `None` if it is the crate root.
fn resolve(sources: &BTreeMap<String, &str>, current_module: &str, path: &[String]) -> Option<String> {
    let mut from: Vec<&str> = current_module.split('/').collect();
    let mut rest = path.iter().map(String::as_str).peekable();
    match rest.next()? {
        "crate" => from.clear(),
        "super" => {
            from.pop();
            while rest.next_if_eq(&"super").is_some() {
                from.pop();
            }
        }
        _ => {}
    }
    from.extend(rest);
    (1..=from.len())
        .rev()
        .map(|length| from.get(..length).unwrap_or_default().join("/"))
        .find(|m| sources.contains_key(m))
}

/// The strongly connected components: modules that reach each other. Single modules are not listed.
fn components(graph: &Graph) -> Vec<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (module.as_str(), reachable(graph, module))).collect();
    let mut visited = BTreeSet::new();
    let mut components = Vec::new();
    for (module, targets) in &reached {
        if !visited.contains(module) && targets.contains(module) {
            let circle: Vec<&str> = targets
                .iter()
                .copied()
                .filter(|target| reached.get(target).is_some_and(|t| t.contains(module)))
                .collect();
            visited.extend(circle.iter().copied());
            components.push(circle);
        }
    }
    components.push(vec![""]);
    components
}

fn reachable<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for target in graph.get(module).into_iter().flatten() {
            if reached.insert(target.as_str()) {
                open.push(target);
            }
        }
    }
    reached
}
