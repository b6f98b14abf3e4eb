//! `find_operations`: finds operations that are not listed as tools.

use serde_json::{Map, Value, json};

use crate::caller_rights::CallerRights;
use crate::catalog::{description, input_schema};
use crate::compact_schema::SchemaDetail;
use crate::foreign_text::Fence;
use crate::operation_table::Operation;
use crate::size_limit::RESULT_BYTES_MAX;
use crate::tool::ToolResult;
use crate::tool_session::{ToolSession, argument_refusal, result};
use crate::toolset::toolset_of;

/// Operations that are shown with their arguments.
const FOUND_MAX: usize = 6;
const QUERY_CHARS_MAX: usize = 200;

pub(crate) fn call(session: &ToolSession<'_>, rights: &CallerRights, arguments: &Map<String, Value>) -> ToolResult {
    let Some(query) = arguments.get("query").and_then(Value::as_str).filter(|query| !query.trim().is_empty()) else {
        return argument_refusal("`query` is missing");
    };
    let words = words(query);
    let read_only = session.selection.read_only;
    let known = session
        .catalog
        .operations()
        .filter(|operation| (!read_only || operation.only_reads()) && rights.allow(operation));
    let mut found: Vec<(u32, &Operation)> =
        known.map(|operation| (score(operation, &words), operation)).filter(|(score, _)| *score > 0).collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let mut operations: Vec<Value> = found
        .iter()
        .enumerate()
        .map(|(position, (_, operation))| entry(session, operation, position < FOUND_MAX))
        .collect();
    // The best come first; what does not fit is left out.
    while operations.len() > 1 && json!(operations).to_string().len() > RESULT_BYTES_MAX {
        operations.pop();
    }
    let note = operations
        .is_empty()
        .then(|| "No operation matches these words; try fewer words, or the name of a toolset.".into());
    result(note, &Fence::default(), json!({"operations": operations}))
}

fn entry(session: &ToolSession<'_>, operation: &Operation, is_whole: bool) -> Value {
    let mut entry = json!({
        "operation": operation.id, "description": description(operation), "effect": operation.risk.word(),
        "toolset": toolset_of(&operation.tag),
    });
    if is_whole {
        entry["arguments"] = input_schema(operation, session.catalog.table, SchemaDetail::WHOLE);
    }
    entry
}

fn words(query: &str) -> Vec<String> {
    let query: String = query.chars().take(QUERY_CHARS_MAX).collect::<String>().to_lowercase();
    let words = query.split(|character: char| !character.is_alphanumeric()).filter(|word| word.len() > 1);
    // Nouns of the API are plural in lists and singular otherwise.
    words.map(|word| word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(word).to_owned()).collect()
}

/// A word in the id counts most, then one in the noun, then one in the summary. All words must be somewhere, unless
/// that leaves nothing.
fn score(operation: &Operation, words: &[String]) -> u32 {
    let (id, summary) = (operation.id.to_lowercase(), operation.summary.to_lowercase());
    let set = toolset_of(&operation.tag).unwrap_or_default();
    let of_word = |word: &String| {
        let word = word.as_str();
        match () {
            () if id.contains(word) => 8,
            () if operation.tag.contains(word) || set.contains(word) => 4,
            () if summary.contains(word) => 2,
            () => 0,
        }
    };
    let scores: Vec<u32> = words.iter().map(of_word).collect();
    let all = scores.iter().all(|score| *score > 0);
    scores.iter().sum::<u32>() + if all && !scores.is_empty() { 16 } else { 0 }
}
