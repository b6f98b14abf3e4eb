//! Numbers as coordinates of a picture.

/// A count as a coordinate.
#[expect(clippy::cast_precision_loss, reason = "a picture is less precise than a float")]
pub fn as_f64(count: u64) -> f64 {
    count as f64
}

/// A number of things in memory as a coordinate.
#[expect(clippy::cast_precision_loss, reason = "things in memory are few")]
pub(super) fn size_f64(size: usize) -> f64 {
    size as f64
}
