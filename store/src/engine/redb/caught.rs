//! Catches panics that redb raises on a damaged file, reports them as errors, and suppresses their output.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// True while a panic of this thread is caught by [`caught`].
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Calls redb and returns the message of its panic, if it panics. The captured objects must not be used after a panic.
pub(super) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    // A panicking thread cannot set the hook.
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let before = take_hook();
            set_hook(Box::new(move |panic| {
                if !IS_CAUGHT.get() {
                    before(panic);
                }
            }));
        });
    }
    let was_caught = IS_CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    IS_CAUGHT.set(was_caught);
    result.map_err(|panic| text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_returns_its_message() {
        assert_eq!(caught(|| 1), Ok(1));
        assert_eq!(caught(|| panic!("page {}", 7)), Err::<(), _>("page 7".to_owned()));
        assert!(!IS_CAUGHT.get());
    }
}
