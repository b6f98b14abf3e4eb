//! Reads an MJML source and writes what mrml gets.
//!
//! The reader checks each element against the grammar, with a stack of its own. Blocks of the template language may
//! stand between elements, so that sections or columns are repeated or left out: as `<mj-raw>` or without it. A block
//! ends in the element that it began in.

use std::borrow::Cow;
use std::ops::Range;

use model::template::markup::find_tags;
use model::template::{MarkupError, MarkupTag, MarkupTagKind};

use crate::grammar::{self, Content, Element};
use crate::placeholders::{MARK, Placeholders, RequiredTag};

/// Most elements of a source: each becomes some three hundred bytes of HTML, or more.
pub const ELEMENTS_MAX: usize = 2_000;
/// Most images of a carousel: its style rules grow with their square.
pub const CAROUSEL_IMAGES_MAX: usize = 20;
/// Longest attribute value that mrml gets; it repeats those that are defaults. A placeholder stands for a longer one.
const VALUE_BYTES_MAX: usize = 160;
/// Most classes of an element: each attribute is looked up in each of them.
const CLASSES_MAX: usize = 16;
/// Most attributes of an element.
const ATTRIBUTES_MAX: usize = 64;
/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// The text that mrml gets, and the texts that it does not get.
#[derive(Debug, Default)]
pub(crate) struct PreprocessedSource<'s> {
    pub(crate) text: String,
    pub(crate) placeholders: Placeholders<'s>,
    /// Offsets in `text`, ascending, with the offsets in the source that they come from.
    pub(crate) places: Vec<(usize, usize)>,
    /// Advice about the source.
    pub(crate) warnings: Vec<String>,
}

/// Reads a source.
///
/// # Errors
/// Returns the first place that is not MJML, or that the compiler refuses.
pub(crate) fn preprocess(source: &str) -> Result<PreprocessedSource<'_>, MarkupError> {
    let tags = find_tags(source)?;
    let mut reader = MjmlReader {
        source,
        tags,
        at: 0,
        stack: Vec::new(),
        elements: 0,
        has_root: false,
        out: PreprocessedSource {
            text: String::with_capacity(source.len().min(64 << 10)),
            ..PreprocessedSource::default()
        },
    };
    reader.read()?;
    Ok(reader.out)
}

struct OpenElement {
    element: Element,
    /// Offset of its start.
    at: usize,
    /// Offsets of the blocks that are open between its children.
    blocks: Vec<usize>,
    /// Names of the children that may occur once, and number of all.
    children: Vec<&'static str>,
    count: usize,
}

struct MjmlReader<'s> {
    source: &'s str,
    tags: Vec<MarkupTag>,
    at: usize,
    stack: Vec<OpenElement>,
    elements: usize,
    has_root: bool,
    out: PreprocessedSource<'s>,
}

impl<'s> MjmlReader<'s> {
    fn error(&self, at: usize, message: impl Into<String>) -> MarkupError {
        MarkupError::at_byte(self.source, at, message)
    }

    fn slice(&self, range: Range<usize>) -> &'s str {
        self.source.get(range).unwrap_or_default()
    }

    fn rest(&self) -> &'s str {
        self.slice(self.at..self.source.len())
    }

    /// The tags within a range.
    fn tags_in(&self, range: &Range<usize>) -> &[MarkupTag] {
        let first = self.tags.partition_point(|tag| tag.range.start < range.start);
        let end = self.tags.partition_point(|tag| tag.range.start < range.end);
        self.tags.get(first..end.max(first)).unwrap_or_default()
    }

    /// The offset of the first match from `from` on that is not within a tag. Callers go on behind the match, or refuse
    /// the source: so no text is searched twice.
    fn find(&self, from: usize, matches: impl Fn(&str) -> Option<usize>) -> Option<usize> {
        self.find_in(&(from..self.source.len()), matches)
    }

    /// The offset of the first match in a range that is not within a tag.
    fn find_in(&self, range: &Range<usize>, matches: impl Fn(&str) -> Option<usize>) -> Option<usize> {
        let mut from = range.start;
        loop {
            let at = from + matches(self.slice(from..range.end))?;
            let inside = self.tags.partition_point(|tag| tag.range.start <= at).checked_sub(1);
            match inside.and_then(|n| self.tags.get(n)).filter(|tag| tag.range.end > at) {
                Some(tag) => from = tag.range.end,
                None => return Some(at),
            }
        }
    }

    fn read(&mut self) -> Result<(), MarkupError> {
        self.skip_prolog()?;
        while self.at < self.source.len() {
            let rest = self.rest();
            if rest.starts_with("<!--") {
                self.skip_comment()?;
            } else if rest.starts_with("<!") || rest.starts_with("<?") {
                return Err(self.error(self.at, "declarations, `<!` and `<?`, are not supported in MJML: remove it"));
            } else if rest.starts_with("</") {
                self.close_element()?;
            } else if rest.starts_with('<') {
                self.open_element()?;
            } else {
                self.read_between()?;
            }
        }
        match self.stack.last() {
            Some(open) => {
                let name = open.element.name;
                Err(self.error(open.at, format!("`<{name}>` is not closed: `</{name}>` is missing")))
            }
            None if !self.has_root => Err(self.error(0, "there is no `<mjml>` with an `<mj-body>`")),
            None => Ok(()),
        }
    }

    fn skip_prolog(&mut self) -> Result<(), MarkupError> {
        self.at = self.source.len() - self.source.trim_start_matches(['\u{feff}', ' ', '\t', '\n']).len();
        if self.rest().starts_with("<?xml") {
            let end = self.rest().find("?>").ok_or_else(|| self.error(self.at, "`<?xml` is not closed"))?;
            self.at += end + 2;
        }
        Ok(())
    }

    /// Skips a comment. It is not part of the mail, so a block must not begin or end in it.
    fn skip_comment(&mut self) -> Result<(), MarkupError> {
        let start = self.at;
        let end = self.find(start + 4, |text| text.find("-->"));
        let end = end.ok_or_else(|| self.error(start, "the comment is not closed: `-->` is missing"))?;
        self.check_balance(&(start..end), "a comment, which is not included in the email: put it in `<mj-raw>`")?;
        self.at = end + 3;
        Ok(())
    }

    /// Checks that blocks that begin in a range end in it.
    fn check_balance(&self, range: &Range<usize>, place: &str) -> Result<(), MarkupError> {
        let mut open: Vec<usize> = Vec::new();
        self.follow_blocks(range, &mut open, place)?;
        match open.first() {
            Some(at) => {
                let text = self.tag_text(*at);
                Err(self.error(*at, format!("`{text}` begins a block that does not end in {place}")))
            }
            None => Ok(()),
        }
    }

    /// Adds the blocks that begin in a range to the open ones, and removes those that end in it.
    fn follow_blocks(&self, range: &Range<usize>, open: &mut Vec<usize>, place: &str) -> Result<(), MarkupError> {
        for tag in self.tags_in(range) {
            let at = tag.range.start;
            match tag.kind {
                MarkupTagKind::Open => open.push(at),
                MarkupTagKind::Else | MarkupTagKind::Close if open.is_empty() => {
                    let text = self.tag_text(at);
                    return Err(self.error(at, format!("`{text}` belongs to a block that does not begin in {place}")));
                }
                MarkupTagKind::Close => drop(open.pop()),
                MarkupTagKind::Else | MarkupTagKind::Value | MarkupTagKind::Comment => {}
            }
        }
        Ok(())
    }

    /// The tag that begins at an offset, for an error.
    fn tag_text(&self, at: usize) -> &'s str {
        const SHOWN_BYTES_MAX: usize = 60;
        let found = self.tags_in(&(at..at + 1)).first();
        let text = found.map(|tag| self.slice(tag.range.clone())).unwrap_or_default();
        text.get(..text.floor_char_boundary(SHOWN_BYTES_MAX)).unwrap_or_default()
    }

    /// Reads a tag of the template language, or white space, between elements.
    fn read_between(&mut self) -> Result<(), MarkupError> {
        let at = self.at;
        if let Some(tag) = self.tags_in(&(at..at + 1)).first().cloned() {
            self.at = tag.range.end;
            return self.read_tag_between(&tag);
        }
        let text = self.rest();
        let text = text.split(['<', '{']).next().unwrap_or_default();
        let is_text = |c: char| !c.is_whitespace() && c != '\u{feff}';
        match text.find(is_text) {
            // A brace that begins no tag.
            None if text.is_empty() => Err(self.text_error(at)),
            None => {
                self.at += text.len();
                Ok(())
            }
            Some(n) => Err(self.text_error(at + n)),
        }
    }

    fn text_error(&self, at: usize) -> MarkupError {
        match self.stack.last() {
            None => self.error(at, "text is not allowed outside of `<mjml>`"),
            Some(open) => {
                let name = open.element.name;
                self.error(
                    at,
                    format!("text is not allowed directly in `<{name}>`: put it in an element such as `<mj-text>`"),
                )
            }
        }
    }

    fn read_tag_between(&mut self, tag: &MarkupTag) -> Result<(), MarkupError> {
        let at = tag.range.start;
        let text = self.tag_text(at);
        if tag.kind == MarkupTagKind::Comment {
            return Ok(());
        }
        let Some(open) = self.stack.last() else {
            return Err(self.error(at, format!("`{text}` is not allowed outside of `<mjml>`")));
        };
        let name = open.element.name;
        if !takes_blocks(open.element) {
            let message = format!(
                "`{text}` is not allowed directly in `<{name}>`: put the block around `<{name}>`, or into the content \
                 of an element"
            );
            return Err(self.error(at, message));
        }
        if tag.kind == MarkupTagKind::Value {
            let message =
                format!("`{text}` is not allowed directly in `<{name}>`: put it in `<mj-text>`, or HTML in `<mj-raw>`");
            return Err(self.error(at, message));
        }
        self.count_blocks(&tag.range)?;
        self.write_verbatim(grammar::RAW, tag.range.clone());
        Ok(())
    }

    /// Applies the blocks that begin and end in a range to the innermost open element.
    fn count_blocks(&mut self, range: &Range<usize>) -> Result<(), MarkupError> {
        let Some(mut open) = self.stack.pop() else { return Ok(()) };
        self.follow_blocks(range, &mut open.blocks, &format!("the same `<{}>`", open.element.name))?;
        self.stack.push(open);
        Ok(())
    }

    fn close_element(&mut self) -> Result<(), MarkupError> {
        let start = self.at;
        self.at += 2;
        let name = self.read_name();
        self.skip_white_space();
        let Some(open) = self.stack.pop() else {
            return Err(self.error(start, format!("`</{name}>` closes an element that is not open")));
        };
        let expected = open.element.name;
        if name != expected {
            let line = self.error(open.at, "").line;
            let message =
                format!("`</{name}>` where `</{expected}>` is expected: `<{expected}>` from line {line} is still open");
            return Err(self.error(start, message));
        }
        if !self.rest().starts_with('>') {
            return Err(self.error(start, format!("`</{name}` is not closed by `>`")));
        }
        self.at += 1;
        if let Some(at) = open.blocks.last() {
            let text = self.tag_text(*at);
            return Err(
                self.error(*at, format!("`{text}` begins a block that does not end in the same `<{expected}>`"))
            );
        }
        if expected == grammar::ROOT && !open.children.contains(&grammar::BODY) {
            return Err(self.error(open.at, "`<mjml>` has no `<mj-body>`"));
        }
        if expected == grammar::ROOT {
            self.has_root = true;
        }
        self.out.text.push_str("</");
        self.out.text.push_str(expected);
        self.out.text.push('>');
        Ok(())
    }

    fn open_element(&mut self) -> Result<(), MarkupError> {
        let start = self.at;
        self.at += 1;
        let name = self.read_name();
        let element = self.check_element(start, name)?;
        self.elements += 1;
        if self.elements > ELEMENTS_MAX {
            return Err(self.error(start, format!("the template has more than {ELEMENTS_MAX} elements")));
        }
        let in_head = self.stack.iter().any(|open| open.element.name == grammar::HEAD);
        let name = element.name;
        self.note_place(start);
        self.out.text.push('<');
        self.out.text.push_str(name);
        // A default or a font that no element uses is lost rightly.
        let is_default = self.stack.last().is_some_and(|open| open.element.content == Content::Defaults);
        let is_empty = self.read_attributes(name, start, !is_default && name != "mj-font")?;
        if is_empty {
            self.out.text.push_str(" />");
            return Ok(());
        }
        self.out.text.push('>');
        match element.content {
            Content::Verbatim => self.read_verbatim(element, start, in_head),
            Content::Empty => {
                let end = format!("</{name}");
                let close = self.find(self.at, |text| text.find('<'));
                let close = close.filter(|at| self.slice(*at..self.source.len()).starts_with(&end));
                let between = close.map(|at| self.slice(self.at..at));
                let Some(close) = close.filter(|_| between.is_some_and(|text| text.trim().is_empty())) else {
                    return Err(self.error(start, format!("`<{name}>` must be empty: write `<{name} … />`")));
                };
                self.at = close;
                self.stack.push(OpenElement::new(element, start));
                self.close_element()
            }
            Content::Elements(_) | Content::Defaults => {
                self.stack.push(OpenElement::new(element, start));
                Ok(())
            }
        }
    }

    /// Checks that an element exists and may stand here.
    fn check_element(&mut self, start: usize, name: &str) -> Result<Element, MarkupError> {
        if name == "mj-include" {
            let message = "`<mj-include>` is refused, because a template cannot read files or URLs. Put the content \
                here, or compile it in before you send it";
            return Err(self.error(start, message));
        }
        let Some(open) = self.stack.last() else {
            return match grammar::find(name).filter(|_| name == grammar::ROOT && !self.has_root) {
                Some(element) => Ok(element),
                None => Err(self.error(start, "the source must be a single `<mjml>` element")),
            };
        };
        let parent = open.element.name;
        let allowed = match open.element.content {
            Content::Defaults => {
                let found = grammar::find_default(name);
                return found.ok_or_else(|| self.error(start, format!("`<{name}>` has no default attributes in MJML")));
            }
            Content::Elements(names) => names,
            Content::Empty | Content::Verbatim => &[],
        };
        let Some(element) = grammar::find(name) else {
            return Err(self.error(start, unknown_element(name)));
        };
        if !allowed.contains(&name) {
            let parents: Vec<String> = grammar::parents(name).iter().map(|name| format!("`<{name}>`")).collect();
            let place = if parents.is_empty() { "the outermost place".to_owned() } else { parents.join(", ") };
            return Err(self.error(start, format!("`<{name}>` is not allowed in `<{parent}>`, only in {place}")));
        }
        let is_once = matches!(name, grammar::HEAD | grammar::BODY);
        if is_once && open.children.contains(&name) {
            return Err(self.error(start, format!("there is a second `<{name}>`")));
        }
        if name == grammar::HEAD && open.children.contains(&grammar::BODY) {
            return Err(self.error(start, "`<mj-head>` must come before `<mj-body>`"));
        }
        if name == "mj-carousel-image" && open.count >= CAROUSEL_IMAGES_MAX {
            return Err(self.error(start, format!("a carousel has more than {CAROUSEL_IMAGES_MAX} images")));
        }
        if let Some(open) = self.stack.last_mut() {
            open.count += 1;
            if is_once {
                open.children.push(element.name);
            }
        }
        Ok(element)
    }

    /// Reads the content of an element that holds HTML, CSS or text, and its end.
    fn read_verbatim(&mut self, element: Element, start: usize, in_head: bool) -> Result<(), MarkupError> {
        let (name, content_at) = (element.name, self.at);
        let end = format!("</{name}");
        let is_end = |text: &str| {
            let mut found = text.match_indices(&end);
            found.find(|(at, _)| ends_name(text.get(at + end.len()..))).map(|(at, _)| at)
        };
        let Some(close) = self.find(content_at, is_end) else {
            return Err(self.error(start, format!("`<{name}>` is not closed: `</{name}>` is missing")));
        };
        let range = content_at..close;
        if let Some(inner) = self.find_in(&range, find_mjml_tag) {
            let line = self.error(start, "").line;
            let found = self.slice(inner..close).chars().take(NAME_BYTES_MAX);
            let found: String = found.take_while(|c| !matches!(c, '>' | ' ' | '\n')).collect();
            let message = format!("`{found}>` is not allowed in `<{name}>` of line {line}: is `</{name}>` missing?");
            return Err(self.error(inner, message));
        }
        if name == grammar::RAW && !in_head {
            self.count_blocks(&range)?;
        } else {
            self.check_balance(&range, &format!("the same `<{name}>`"))?;
        }
        let placeholder = self.add_placeholder(range.clone(), self.slice(range), name);
        self.out.text.push_str(&placeholder);
        self.at = close;
        self.stack.push(OpenElement::new(element, start));
        self.close_element()
    }

    /// Writes an element with content that is kept as it is.
    fn write_verbatim(&mut self, name: &str, range: Range<usize>) {
        self.note_place(range.start);
        let placeholder = self.add_placeholder(range.clone(), self.slice(range), name);
        for text in ["<", name, ">", &placeholder, "</", name, ">"] {
            self.out.text.push_str(text);
        }
    }

    /// Holds a text back; if tags are in it, it must not get lost.
    fn add_placeholder(&mut self, range: Range<usize>, text: impl Into<Cow<'s, str>>, place: &str) -> String {
        let required = self.tags_in(&range).iter().find(|tag| tag.kind != MarkupTagKind::Comment);
        let required = required.map(|tag| RequiredTag { range: tag.range.clone(), place: place.to_owned() });
        self.out.placeholders.add(text, required)
    }

    fn note_place(&mut self, at: usize) {
        self.out.places.push((self.out.text.len(), at));
    }

    fn read_name(&mut self) -> &'s str {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
        let rest = self.rest();
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end.min(NAME_BYTES_MAX)).unwrap_or_default()
    }

    fn skip_white_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Reads the attributes and the end of an opening tag. Returns whether the element ends with it.
    fn read_attributes(&mut self, element: &str, start: usize, is_used: bool) -> Result<bool, MarkupError> {
        let (mut names, mut has_source) = (Vec::new(), false);
        let is_end = loop {
            self.skip_white_space();
            let rest = self.rest();
            if rest.starts_with("/>") {
                self.at += 2;
                break true;
            }
            if rest.starts_with('>') {
                self.at += 1;
                break false;
            }
            let at = self.at;
            if !self.tags_in(&(at..at + 1)).is_empty() {
                let text = self.tag_text(at);
                let message =
                    format!("`{text}` is not allowed between the attributes of `<{element}>`: use it in a value");
                return Err(self.error(at, message));
            }
            let name = self.read_name();
            if name.is_empty() || name.contains(MARK) {
                let is_end = self.rest().is_empty() || self.rest().starts_with('<');
                let message = match is_end {
                    true => format!("the tag `<{element}` is not closed: `>` is missing"),
                    false => format!("an attribute of `<{element}>` cannot be parsed: write name=\"value\""),
                };
                return Err(self.error(if is_end { start } else { at }, message));
            }
            if names.contains(&name) {
                return Err(self.error(at, format!("`{name}` is given twice in `<{element}>`")));
            }
            names.push(name);
            if names.len() > ATTRIBUTES_MAX {
                return Err(self.error(at, format!("`<{element}>` has more than {ATTRIBUTES_MAX} attributes")));
            }
            has_source |= name == "src";
            self.read_value(element, name, at, is_used)?;
        };
        let is_icon = element == "mj-social-element" && is_used && !has_source && names.contains(&"name");
        if is_icon {
            self.warn("`mj-social-element` without `src` shows an icon from www.mailjet.com: set `src`");
        }
        Ok(is_end)
    }

    /// Adds advice, once.
    fn warn(&mut self, text: &str) {
        if !self.out.warnings.iter().any(|given| given == text) {
            self.out.warnings.push(text.to_owned());
        }
    }

    fn read_value(&mut self, element: &str, name: &str, at: usize, is_used: bool) -> Result<(), MarkupError> {
        self.skip_white_space();
        let unquoted = |reader: &Self| reader.error(at, format!("`{name}` needs a value in quotes: {name}=\"…\""));
        if !self.rest().starts_with('=') {
            return Err(unquoted(self));
        }
        self.at += 1;
        self.skip_white_space();
        let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            return Err(unquoted(self));
        };
        let start = self.at + 1;
        let end = self.find(start, |text| text.find(quote));
        let end =
            end.ok_or_else(|| self.error(at, format!("the value of `{name}` is not closed: {quote} is missing")))?;
        self.at = end + 1;
        let place = format!("`{name}` of `<{element}>`");
        self.check_balance(&(start..end), &format!("the same value, {place}"))?;
        if name == "mj-class" && self.slice(start..end).split_whitespace().count() > CLASSES_MAX {
            return Err(self.error(at, format!("`mj-class` has more than {CLASSES_MAX} names")));
        }
        if element == "mj-style" && name == "inline" && self.slice(start..end) == "inline" {
            self.warn("`inline` of `mj-style` has no effect: its rules stay in a style sheet");
            return Ok(());
        }
        let value = self.encode_value(name, start..end, is_used.then_some(place.as_str()));
        self.note_place(at);
        for text in [" ", name, "=\"", &value, "\""] {
            self.out.text.push_str(text);
        }
        Ok(())
    }

    /// The value for mrml: plain text, and placeholders.
    fn encode_value(&mut self, name: &str, range: Range<usize>, place: Option<&str>) -> String {
        let is_font = name == "font-family";
        let mut pieces: Vec<(Range<usize>, bool)> = Vec::new();
        let mut at = range.start;
        let mut length = 0;
        for tag in self.tags_in(&range).to_vec() {
            length += split_plain(self.source, at..tag.range.start, is_font, &mut pieces);
            pieces.push((tag.range.clone(), false));
            length += MARK.len();
            at = tag.range.end;
        }
        length += split_plain(self.source, at..range.end, is_font, &mut pieces);
        if length > VALUE_BYTES_MAX || pieces.len() > VALUE_BYTES_MAX / 8 || self.slice(range.clone()).contains(MARK) {
            pieces = vec![(range, false)];
        }
        let mut value = String::new();
        for (range, is_plain) in pieces {
            let text = self.slice(range.clone());
            if is_plain {
                // Both quotes mean the same in a list of fonts.
                value.push_str(&text.replace('"', "'"));
                continue;
            }
            let text = self.attribute_text(range.clone());
            let placeholder = match place {
                Some(place) => self.add_placeholder(range, text, place),
                None => self.out.placeholders.add(text, None),
            };
            value.push_str(&placeholder);
        }
        value
    }

    /// A piece of a value as it stands in an attribute in double quotes; tags are kept as they are.
    fn attribute_text(&self, range: Range<usize>) -> Cow<'s, str> {
        let (mut text, mut at) = (String::new(), range.start);
        let escaped = |text: &str| text.replace('"', "&quot;").replace('<', "&lt;");
        for tag in self.tags_in(&range) {
            text.push_str(&escaped(self.slice(at..tag.range.start)));
            text.push_str(self.slice(tag.range.clone()));
            at = tag.range.end;
        }
        text.push_str(&escaped(self.slice(at..range.end)));
        text.into()
    }
}

impl OpenElement {
    fn new(element: Element, at: usize) -> Self {
        Self { element, at, blocks: Vec::new(), children: Vec::new(), count: 0 }
    }
}

/// Splits the text between tags into what mrml gets as it is, and the rest. Returns the bytes of the first.
fn split_plain(source: &str, range: Range<usize>, is_font: bool, pieces: &mut Vec<(Range<usize>, bool)>) -> usize {
    let is_plain =
        |c: char| c == ' ' || (c.is_ascii_graphic() && !matches!(c, '\\' | '<' | '>') && (is_font || c != '"'));
    let mut length = 0;
    let text = source.get(range.clone()).unwrap_or_default();
    for (at, c) in text.char_indices().map(|(n, c)| (range.start + n, c)) {
        let plain = is_plain(c);
        length += usize::from(plain);
        match pieces.last_mut() {
            Some((last, was_plain)) if *was_plain == plain && last.end == at && at > range.start => {
                last.end = at + c.len_utf8();
            }
            _ => pieces.push((at..at + c.len_utf8(), plain)),
        }
    }
    length
}

/// Blocks may stand between the children.
fn takes_blocks(element: Element) -> bool {
    element.name != grammar::HEAD
        && matches!(element.content, Content::Elements(names) if names.contains(&grammar::RAW))
}

/// Finds the first tag of an element of MJML, in one pass.
fn find_mjml_tag(text: &str) -> Option<usize> {
    let is_mjml = |rest: &str| {
        let name = rest.strip_prefix("</").or_else(|| rest.strip_prefix('<')).unwrap_or_default();
        name.starts_with("mj-") || name.starts_with("mjml")
    };
    text.match_indices('<').map(|(at, _)| at).find(|at| text.get(*at..).is_some_and(is_mjml))
}

fn ends_name(rest: Option<&str>) -> bool {
    rest.is_none_or(|rest| rest.starts_with(['>', ' ', '\t', '\n', '\r']))
}

fn unknown_element(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if name.is_empty() {
        return "`<` begins an element: its name is missing; write `&lt;` for the character".to_owned();
    }
    if lower != name && grammar::find(&lower).is_some() {
        return format!("element names must be in lower case: `<{lower}>`");
    }
    match lower.starts_with("mj") {
        true => format!("`<{name}>` is not an element of MJML, or not supported"),
        false => format!(
            "`<{name}>` is HTML, which is not allowed between elements of MJML: put it in `<mj-text>` or `<mj-raw>`"
        ),
    }
}
