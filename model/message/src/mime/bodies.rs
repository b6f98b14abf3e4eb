//! Classifies the parts of a message as text or files (RFC 8621 4.1.4).

/// Properties of a leaf part that decide its class.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four independent properties, in any mixture")]
pub(super) struct LeafPart {
    pub(super) is_plain: bool,
    pub(super) is_html: bool,
    /// Its Content-Disposition is `attachment`.
    pub(super) is_attached: bool,
    pub(super) is_named: bool,
}

/// State of an open multipart.
#[derive(Debug, Clone, Copy)]
struct MultipartFrame {
    is_alternative: bool,
    is_related: bool,
    in_alternative: bool,
    takes_text: bool,
    takes_html: bool,
    text_before: usize,
    html_before: usize,
    parts: usize,
}

/// Part ids by class.
#[derive(Debug, Default)]
pub(super) struct BodyStructure {
    pub(super) html: Vec<u32>,
    pub(super) text: Vec<u32>,
    pub(super) attachments: Vec<u32>,
    frames: Vec<MultipartFrame>,
}

impl BodyStructure {
    fn frame(&mut self) -> &mut MultipartFrame {
        if self.frames.is_empty() {
            // The message itself counts as a multipart with one part.
            self.frames.push(MultipartFrame {
                is_alternative: false,
                is_related: false,
                in_alternative: false,
                takes_text: true,
                takes_html: true,
                text_before: 0,
                html_before: 0,
                parts: 0,
            });
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Opens a multipart.
    pub(super) fn open(&mut self, subtype: &str) {
        let (text_before, html_before) = (self.text.len(), self.html.len());
        let parent = self.frame();
        parent.parts += 1;
        let is_alternative = subtype.eq_ignore_ascii_case("alternative");
        let within = MultipartFrame {
            is_alternative,
            is_related: subtype.eq_ignore_ascii_case("related"),
            in_alternative: parent.in_alternative || is_alternative,
            text_before,
            html_before,
            parts: 0,
            ..*parent
        };
        self.frames.push(within);
    }

    /// Classifies a leaf part. Returns whether it is text to read. Everything else is a file, including inline images:
    /// RFC 8621 counts those as body, but a list of a message's files must include them.
    pub(super) fn add_leaf(&mut self, id: u32, leaf: &LeafPart) -> bool {
        let frame = self.frame();
        let is_first = frame.parts == 0;
        frame.parts += 1;
        let may_follow = is_first || (!frame.is_related && !leaf.is_named);
        let is_inline = !leaf.is_attached && (leaf.is_plain || leaf.is_html) && may_follow;
        let (mut to_text, mut to_html) = (false, false);
        if is_inline && frame.is_alternative {
            (to_text, to_html) = (leaf.is_plain, leaf.is_html);
        } else if is_inline {
            if frame.in_alternative {
                // Each of two alternative forms belongs to one of the two bodies.
                frame.takes_html &= !leaf.is_plain;
                frame.takes_text &= !leaf.is_html;
            }
            (to_text, to_html) = (frame.takes_text, frame.takes_html);
        }
        if to_text {
            self.text.push(id);
        }
        if to_html {
            self.html.push(id);
        }
        let is_shown = to_text || to_html;
        if !is_shown {
            self.attachments.push(id);
        }
        is_shown
    }

    /// Closes the innermost multipart.
    pub(super) fn close(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        if !(frame.is_alternative && frame.takes_text && frame.takes_html) {
            return;
        }
        let (has_text, has_html) = (self.text.len() > frame.text_before, self.html.len() > frame.html_before);
        if has_html && !has_text {
            self.text.extend_from_slice(self.html.get(frame.html_before..).unwrap_or_default());
        } else if has_text && !has_html {
            self.html.extend_from_slice(self.text.get(frame.text_before..).unwrap_or_default());
        }
    }
}
