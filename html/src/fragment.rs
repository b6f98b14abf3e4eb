//! Rendered markup as a part of a page.

use hypertext::{Buffer, Raw, Rendered, prelude::*};

/// Rendered markup. Only markup makes it, so its text is escaped.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Fragment(String);

impl Fragment {
    pub fn new(markup: impl Renderable) -> Self {
        Self(render(markup))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl Renderable for Fragment {
    fn render_to(&self, buffer: &mut Buffer) {
        raw(&self.0).render_to(buffer);
    }
}

/// Renders markup to text.
pub fn render(markup: impl Renderable) -> String {
    let mut buffer = Buffer::new();
    markup.render_to(&mut buffer);
    let rendered: Rendered<String> = buffer.rendered();
    rendered.into_inner()
}

/// Inserts rendered markup.
pub fn raw(rendered: &str) -> Raw<&str> {
    Raw::dangerously_create(rendered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_literals_are_markup() {
        let name = "<script>\"a\" & 'b'</script>";
        let inner = Fragment::new(maud! { b { (name) } });
        assert!(Fragment::default().is_empty() && !inner.is_empty());
        let all = render(maud! { p title=(name) { (inner) (7) } });
        assert_eq!(
            all,
            "<p title=\"&lt;script&gt;&quot;a&quot; &amp; 'b'&lt;/script&gt;\">\
             <b>&lt;script&gt;\"a\" &amp; 'b'&lt;/script&gt;</b>7</p>"
        );
    }
}
