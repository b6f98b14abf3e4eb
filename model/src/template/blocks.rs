//! The four template blocks, and the handling of missing variables.
//!
//! The blocks behave like those of Handlebars, and count: each rendered element is a step, and steps are bounded, so
//! that nested loops cannot run long. A missing value is recorded, and its tag stays in the text. Rendering continues,
//! so that all missing values are reported at once.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use handlebars::{
    BlockContext, BlockParams, Context, Handlebars, Helper, HelperDef, HelperResult, JsonTruthy as _, Output,
    RenderContext, RenderErrorReason, Renderable as _, Template as Parsed,
};
use serde_json::{Value, json};

use super::UNSUBSCRIBE_URL;

/// Maximum number of elements rendered in blocks: about five hundred list entries of twenty tags each.
pub(super) const STEPS_MAX: usize = 20_000;
/// Maximum number of missing variables that are reported.
const MISSING_MAX: usize = 50;

/// Step count and missing variables of a rendering.
#[derive(Debug, Default)]
pub(super) struct RenderProgress {
    steps: AtomicUsize,
    missing: Mutex<Vec<String>>,
    /// Optional declared variables without a value: they render as empty.
    pub(super) blank: BTreeSet<String>,
}

impl RenderProgress {
    /// Records a missing variable. Returns false if it is optional and renders as empty.
    pub(super) fn note_missing(&self, name: String) -> bool {
        let first = name.split(['.', '[']).next().unwrap_or_default();
        if self.blank.contains(first) {
            return false;
        }
        let mut missing = self.missing.lock();
        if missing.len() < MISSING_MAX && !missing.contains(&name) {
            missing.push(name);
        }
        true
    }

    /// The missing variables so far.
    pub(super) fn missing(&self) -> Vec<String> {
        self.missing.lock().clone()
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

/// Registers the blocks in a registry without helpers.
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
    /// Called for a tag without a value.
    Missing,
    /// `{{unsubscribe_url}}` in any scope.
    Token,
}

struct BlockRenderer {
    kind: BlockKind,
    progress: Arc<RenderProgress>,
}

/// Rendering state that is passed between blocks.
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
        let mut target = RenderTarget { registry, context, scope, out };
        match self.kind {
            BlockKind::If => self.render_if(tag, true, &mut target),
            BlockKind::Unless => self.render_if(tag, false, &mut target),
            BlockKind::Each => self.render_each(tag, &mut target),
            BlockKind::With => self.render_with(tag, &mut target),
            BlockKind::Missing if self.progress.note_missing(full_name(tag.name(), target.scope)) => {
                target.out.write(&format!("{{{{{}}}}}", tag.name())).map_err(Into::into)
            }
            BlockKind::Missing => Ok(()),
            BlockKind::Token => target.out.write(&format!("{{{{{UNSUBSCRIBE_URL}}}}}")).map_err(Into::into),
        }
    }
}

impl BlockRenderer {
    fn render<'reg: 'rc, 'rc>(
        &self,
        template: Option<&'rc Parsed>,
        target: &mut RenderTarget<'_, 'reg, 'rc>,
    ) -> HelperResult {
        let Some(template) = template else { return Ok(()) };
        self.progress.count_step(template)?;
        template.render(target.registry, target.context, target.scope, target.out)
    }

    fn render_if<'reg: 'rc, 'rc>(
        &self,
        tag: &Helper<'rc>,
        wanted: bool,
        target: &mut RenderTarget<'_, 'reg, 'rc>,
    ) -> HelperResult {
        let include_zero = tag.hash_get("includeZero").is_some_and(|value| value.value() == &json!(true));
        let holds = tag.param(0).is_some_and(|value| value.value().is_truthy(include_zero));
        self.render(if holds == wanted { tag.template() } else { tag.inverse() }, target)
    }

    /// Renders `{{else}}`. Without an `{{else}}` and without a value, the variable is missing.
    fn render_else<'reg: 'rc, 'rc>(&self, tag: &Helper<'rc>, target: &mut RenderTarget<'_, 'reg, 'rc>) -> HelperResult {
        if let Some(value) = tag.param(0).filter(|value| value.is_value_missing())
            && tag.inverse().is_none()
        {
            let name = value.relative_path().map_or("", String::as_str);
            self.progress.note_missing(full_name(name, target.scope));
        }
        self.render(tag.inverse(), target)
    }

    fn render_with<'reg: 'rc, 'rc>(&self, tag: &Helper<'rc>, target: &mut RenderTarget<'_, 'reg, 'rc>) -> HelperResult {
        let found = tag.param(0).filter(|value| value.value().is_truthy(false));
        let Some(path) = found.and_then(|value| value.context_path()) else {
            return self.render_else(tag, target);
        };
        let mut block = BlockContext::new();
        block.base_path_mut().clone_from(path);
        if let Some(around) = target.scope.block() {
            // `@index` refers to the surrounding `each`.
            block.local_variables_mut().clone_from(around.local_variables());
        }
        if let Some(name) = tag.block_param() {
            let mut names = BlockParams::new();
            names.add_path(name, Vec::new())?;
            block.set_block_params(names);
        }
        target.scope.push_block(block);
        self.render(tag.template(), target)?;
        target.scope.pop_block();
        Ok(())
    }

    fn render_each<'reg: 'rc, 'rc>(&self, tag: &Helper<'rc>, target: &mut RenderTarget<'_, 'reg, 'rc>) -> HelperResult {
        let found = tag.param(0).and_then(|value| Some((value.value(), value.context_path()?)));
        match found {
            Some((Value::Array(list), path)) if !list.is_empty() => {
                for n in 0..list.len() {
                    self.render_entry(tag, LoopEntry { path, at: json!(n), n, count: list.len() }, target)?;
                }
                Ok(())
            }
            Some((Value::Object(fields), path)) if !fields.is_empty() => {
                for (n, name) in fields.keys().enumerate() {
                    self.render_entry(tag, LoopEntry { path, at: json!(name), n, count: fields.len() }, target)?;
                }
                Ok(())
            }
            _ => self.render_else(tag, target),
        }
    }

    fn render_entry<'reg: 'rc, 'rc>(
        &self,
        tag: &Helper<'rc>,
        entry: LoopEntry<'_>,
        target: &mut RenderTarget<'_, 'reg, 'rc>,
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
        block.set_local_var("last", json!(entry.n + 1 == entry.count));
        block.set_local_var("index", json!(entry.n));
        let mut names = BlockParams::new();
        if let Some(name) = tag.block_param() {
            names.add_path(name, Vec::new())?;
        } else if let Some((name, at)) = tag.block_param_pair() {
            names.add_path(name, Vec::new())?;
            names.add_value(at, entry.at)?;
        }
        block.set_block_params(names);
        target.scope.push_block(block);
        self.render(tag.template(), target)?;
        target.scope.pop_block();
        Ok(())
    }
}

struct LoopEntry<'a> {
    path: &'a Vec<String>,
    /// Index in the list, or name in the object.
    at: Value,
    n: usize,
    count: usize,
}

/// The full name of a variable for error messages: `items[2].price` for `{{price}}` in `{{#each items}}`. A path with
/// `../` or `@root` is shown without its scope.
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
