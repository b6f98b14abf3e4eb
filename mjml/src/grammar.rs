//! The elements of MJML 4 that mrml has, and where each may stand.

/// An element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Element {
    pub(crate) name: &'static str,
    pub(crate) content: Content,
}

/// Content of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing.
    Empty,
    /// HTML, CSS or text, which is kept as it is.
    Verbatim,
    /// These elements.
    Elements(&'static [&'static str]),
    /// Elements that carry default attributes of others.
    Defaults,
}

use Content::{Defaults, Elements, Empty, Verbatim};

/// The root.
pub(crate) const ROOT: &str = "mjml";
pub(crate) const HEAD: &str = "mj-head";
pub(crate) const BODY: &str = "mj-body";
pub(crate) const RAW: &str = "mj-raw";

/// The head, then `BODY` and the elements of the layout.
const ELEMENTS: &[Element] = &[
    element(ROOT, Elements(&[HEAD, BODY])),
    element(HEAD, Elements(&["mj-attributes", "mj-breakpoint", "mj-font", "mj-preview", RAW, "mj-style", "mj-title"])),
    element("mj-attributes", Defaults),
    element("mj-breakpoint", Empty),
    element("mj-font", Empty),
    element("mj-preview", Verbatim),
    element("mj-style", Verbatim),
    element("mj-title", Verbatim),
    element(RAW, Verbatim),
    element(BODY, Elements(&["mj-hero", RAW, "mj-section", "mj-wrapper"])),
    element("mj-wrapper", Elements(&["mj-hero", RAW, "mj-section"])),
    element("mj-section", Elements(&["mj-column", "mj-group", RAW])),
    element("mj-group", Elements(&["mj-column", RAW])),
    element("mj-column", Elements(CONTENTS)),
    element("mj-hero", Elements(CONTENTS)),
    element("mj-accordion", Elements(&["mj-accordion-element"])),
    element("mj-accordion-element", Elements(&["mj-accordion-title", "mj-accordion-text"])),
    element("mj-accordion-title", Verbatim),
    element("mj-accordion-text", Verbatim),
    element("mj-button", Verbatim),
    element("mj-carousel", Elements(&["mj-carousel-image"])),
    element("mj-carousel-image", Empty),
    element("mj-divider", Empty),
    element("mj-image", Empty),
    element("mj-navbar", Elements(&["mj-navbar-link"])),
    element("mj-navbar-link", Verbatim),
    element("mj-social", Elements(&["mj-social-element"])),
    element("mj-social-element", Verbatim),
    element("mj-spacer", Empty),
    element("mj-table", Verbatim),
    element("mj-text", Verbatim),
];

/// Elements that stand in a column.
const CONTENTS: &[&str] = &[
    "mj-accordion",
    "mj-button",
    "mj-carousel",
    "mj-divider",
    "mj-image",
    "mj-navbar",
    RAW,
    "mj-social",
    "mj-spacer",
    "mj-table",
    "mj-text",
];

const fn element(name: &'static str, content: Content) -> Element {
    Element { name, content }
}

/// Finds an element by its name.
pub(crate) fn find(name: &str) -> Option<Element> {
    ELEMENTS.iter().find(|element| element.name == name).copied()
}

/// Finds `mj-all`, `mj-class`, or an element of the layout by its name, as a carrier of default attributes.
pub(crate) fn find_default(name: &str) -> Option<Element> {
    let layout = ELEMENTS.iter().map(|element| element.name).skip_while(|name| *name != BODY);
    ["mj-all", "mj-class"].into_iter().chain(layout).find(|known| *known == name).map(|name| element(name, Empty))
}

/// The elements that one may stand in.
pub(crate) fn parents(name: &str) -> Vec<&'static str> {
    let holds = |element: &&Element| matches!(element.content, Elements(names) if names.contains(&name));
    ELEMENTS.iter().filter(holds).map(|element| element.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest way from an element down, in elements.
    fn depth(name: &str, above: usize) -> usize {
        assert!(above < 20, "the grammar is recursive at {name}");
        let names = match find(name).unwrap().content {
            Elements(names) => names,
            Defaults => &["mj-spacer"],
            Empty | Verbatim => &[],
        };
        1 + names.iter().map(|name| depth(name, above + 1)).max().unwrap_or(0)
    }

    #[test]
    fn the_grammar_bounds_the_depth() {
        assert_eq!(depth(ROOT, 0), 9);
    }
}
