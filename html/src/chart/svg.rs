//! The SVG elements of charts, for the markup macro.

pub mod hypertext_elements {
    pub use hypertext::validation::hypertext_elements::*;

    hypertext::define_elements! {
        svg { x y width height viewBox preserveAspectRatio overflow }
        g
        rect { x y width height rx fill_opacity }
        line { x1 y1 x2 y2 }
        circle { cx cy r }
        polyline { points }
        text { x y dx dy text_anchor }
    }
}

/// A coordinate: a share of the plot, in percent.
pub fn share(value: f64) -> String {
    let text = format!("{:.2}", value.clamp(0.0, 100.0));
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}
