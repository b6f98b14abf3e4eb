//! The four blocks of a template, and what is said of a variable that is not there.
//!
//! They do what Handlebars' own do, and count: every element that a block renders is a step, and steps
//! are bounded, so that lists in lists cannot keep the machine busy. A value that is not there leaves its
//! name, and its tag in the text; the rendering goes on, so that all that is missing is told at once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use handlebars::{
    BlockContext, BlockParams, Context, Handlebars, Helper, HelperDef, HelperResult, JsonTruthy as _, Output,
    RenderContext, RenderErrorReason, Renderable as _, Template as Parsed,
};
use serde_json::{Value, json};

use super::UNSUBSCRIBE_URL;

/// Elements that are rendered within blocks: some five hundred entries of twenty tags each.
pub(super) const STEPS_MAX: usize = 20_000;
/// Names of missing variables that are told.
const MISSING_MAX: usize = 50;

/// How far a rendering has come, and what it did not find.
#[derive(Debug, Default)]
pub(super) struct RenderProgress {
    steps: AtomicUsize,
    missing: Mutex<Vec<String>>,
    /// Declared variables that need not be given and were not: they are blank.
    pub(super) blank: BTreeSet<String>,
}

impl RenderProgress {
    /// A variable is not there. Says whether that is a fault.
    pub(super) fn note_missing(&self, name: String) -> bool {
        let first = name.split(['.', '[']).next().unwrap_or_default();
        if self.blank.contains(first) {
            return false;
        }
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if missing.len() < MISSING_MAX && !missing.contains(&name) {
            missing.push(name);
        }
        true
    }

    /// What was missed so far.
    pub(super) fn missing(&self) -> Vec<String> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count_step(&self, template: &Parsed) -> HelperResult {
        let steps = 1 + template.elements.len();
        if self.steps.fetch_add(steps, Ordering::Relaxed) + steps > STEPS_MAX {
            let text = format!("its loops render more than {STEPS_MAX} elements");
            return Err(RenderErrorReason::Other(text).into());
        }
        Ok(())
    }
}

/// Makes the blocks known to a registry that knows nothing else.
pub(super) fn register(registry: &mut Handlebars<'static>, progress: &Arc<RenderProgress>) {
    let block = |kind| Box::new(BlockRenderer { kind, progress: Arc::clone(progress) });
    registry.register_helper("if", block(BlockKind::If));
    registry.register_helper("unless", block(BlockKind::Unless));
    registry.register_helper("each", block(BlockKind::Each));
    registry.register_helper("with", block(BlockKind::With));
    registry.register_helper("helperMissing", block(BlockKind::Missing));
    registry.register_helper(UNSUBSCRIBE_URL, block(BlockKind::Token));
}

#[derive(Clone, Copy)]
enum BlockKind {
    If,
    Unless,
    Each,
    With,
    /// Called for a tag whose value is not there.
    Missing,
    /// `{{unsubscribe_url}}`, in whatever scope.
    Token,
}

struct BlockRenderer {
    kind: BlockKind,
    progress: Arc<RenderProgress>,
}

/// What is handed from one block to the next.
struct RenderTarget<'a, 'reg: 'rc, 'rc> {
    registry: &'reg Handlebars<'reg>,
    context: &'rc Context,
    scope: &'a mut RenderContext<'reg, 'rc>,
    out: &'a mut dyn Output,
}

impl HelperDef for BlockRenderer {
    fn call<'reg: 'rc, 'rc>(
        &self,
        tag: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        scope: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let mut pen = RenderTarget { registry, context, scope, out };
        match self.kind {
            BlockKind::If => self.render_if(tag, true, &mut pen),
            BlockKind::Unless => self.render_if(tag, false, &mut pen),
            BlockKind::Each => self.render_each(tag, &mut pen),
            BlockKind::With => self.render_with(tag, &mut pen),
            BlockKind::Missing if self.progress.note_missing(full_name(tag.name(), pen.scope)) => {
                pen.out.write(&format!("{{{{{}}}}}", tag.name())).map_err(Into::into)
            }
            BlockKind::Missing => Ok(()),
            BlockKind::Token => pen.out.write(&format!("{{{{{UNSUBSCRIBE_URL}}}}}")).map_err(Into::into),
        }
    }
}

impl BlockRenderer {
    fn render<'reg: 'rc, 'rc>(
        &self,
        template: Option<&'rc Parsed>,
        pen: &mut RenderTarget<'_, 'reg, 'rc>,
    ) -> HelperResult {
        let Some(template) = template else { return Ok(()) };
        self.progress.count_step(template)?;
        template.render(pen.registry, pen.context, pen.scope, pen.out)
    }

    fn render_if<'reg: 'rc, 'rc>(
        &self,
        tag: &Helper<'rc>,
        wanted: bool,
        pen: &mut RenderTarget<'_, 'reg, 'rc>,
    ) -> HelperResult {
        let include_zero = tag.hash_get("includeZero").is_some_and(|value| value.value() == &json!(true));
        let holds = tag.param(0).is_some_and(|value| value.value().is_truthy(include_zero));
        self.render(if holds == wanted { tag.template() } else { tag.inverse() }, pen)
    }

    /// Without a value and without an `{{else}}`, the value is missing.
    fn render_else<'reg: 'rc, 'rc>(&self, tag: &Helper<'rc>, pen: &mut RenderTarget<'_, 'reg, 'rc>) -> HelperResult {
        if let Some(value) = tag.param(0).filter(|value| value.is_value_missing())
            && tag.inverse().is_none()
        {
            let name = value.relative_path().map_or("", String::as_str);
            self.progress.note_missing(full_name(name, pen.scope));
        }
        self.render(tag.inverse(), pen)
    }

    fn render_with<'reg: 'rc, 'rc>(&self, tag: &Helper<'rc>, pen: &mut RenderTarget<'_, 'reg, 'rc>) -> HelperResult {
        let found = tag.param(0).filter(|value| value.value().is_truthy(false));
        let Some(path) = found.and_then(|value| value.context_path()) else {
            return self.render_else(tag, pen);
        };
        let mut block = BlockContext::new();
        block.base_path_mut().clone_from(path);
        if let Some(around) = pen.scope.block() {
            // `@index` is that of the `each` around it.
            block.local_variables_mut().clone_from(around.local_variables());
        }
        if let Some(name) = tag.block_param() {
            let mut names = BlockParams::new();
            names.add_path(name, Vec::new())?;
            block.set_block_params(names);
        }
        pen.scope.push_block(block);
        self.render(tag.template(), pen)?;
        pen.scope.pop_block();
        Ok(())
    }

    fn render_each<'reg: 'rc, 'rc>(&self, tag: &Helper<'rc>, pen: &mut RenderTarget<'_, 'reg, 'rc>) -> HelperResult {
        let found = tag.param(0).and_then(|value| Some((value.value(), value.context_path()?)));
        match found {
            Some((Value::Array(list), path)) if !list.is_empty() => {
                for n in 0..list.len() {
                    self.render_entry(tag, LoopEntry { path, at: json!(n), n, of: list.len() }, pen)?;
                }
                Ok(())
            }
            Some((Value::Object(fields), path)) if !fields.is_empty() => {
                for (n, name) in fields.keys().enumerate() {
                    self.render_entry(tag, LoopEntry { path, at: json!(name), n, of: fields.len() }, pen)?;
                }
                Ok(())
            }
            _ => self.render_else(tag, pen),
        }
    }

    fn render_entry<'reg: 'rc, 'rc>(
        &self,
        tag: &Helper<'rc>,
        entry: LoopEntry<'_>,
        pen: &mut RenderTarget<'_, 'reg, 'rc>,
    ) -> HelperResult {
        let mut block = BlockContext::new();
        block.base_path_mut().clone_from(entry.path);
        match &entry.at {
            Value::String(name) => {
                block.base_path_mut().push(name.clone());
                block.set_local_var("key", entry.at.clone());
            }
            _ => block.base_path_mut().push(entry.n.to_string()),
        }
        block.set_local_var("first", json!(entry.n == 0));
        block.set_local_var("last", json!(entry.n + 1 == entry.of));
        block.set_local_var("index", json!(entry.n));
        let mut names = BlockParams::new();
        if let Some(name) = tag.block_param() {
            names.add_path(name, Vec::new())?;
        } else if let Some((name, at)) = tag.block_param_pair() {
            names.add_path(name, Vec::new())?;
            names.add_value(at, entry.at)?;
        }
        block.set_block_params(names);
        pen.scope.push_block(block);
        self.render(tag.template(), pen)?;
        pen.scope.pop_block();
        Ok(())
    }
}

/// An entry of what `each` goes over.
struct LoopEntry<'a> {
    path: &'a Vec<String>,
    /// Its place in the list, or its name.
    at: Value,
    n: usize,
    of: usize,
}

/// A variable's name as its giver knows it: `items[2].price` for `{{price}}` in `{{#each items}}`. A path
/// that climbs is shown from where it climbs to.
fn full_name(raw: &str, scope: &RenderContext<'_, '_>) -> String {
    let mut path = raw;
    for start in ["./", "this.", "this/"] {
        path = path.strip_prefix(start).unwrap_or(path);
    }
    let from_root = path.strip_prefix("@root.").or_else(|| path.strip_prefix("@root/"));
    let mut climbs = from_root.is_some();
    path = from_root.unwrap_or(path);
    while let Some(rest) = path.strip_prefix("../") {
        (path, climbs) = (rest, true);
    }
    let mut name = String::new();
    if !climbs && let Some(block) = scope.block() {
        for part in block.base_path() {
            push_part(&mut name, part);
        }
        let first = path.split(['.', '/']).next().unwrap_or_default();
        if block.get_block_param(first).is_some() {
            path = path.get(first.len() + 1..).unwrap_or_default();
        }
    }
    path.split(['.', '/']).filter(|part| !part.is_empty()).for_each(|part| push_part(&mut name, part));
    name
}

fn push_part(name: &mut String, part: &str) {
    if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
        name.push('[');
        name.push_str(part);
        name.push(']');
        return;
    }
    if !name.is_empty() {
        name.push('.');
    }
    name.push_str(part);
}
