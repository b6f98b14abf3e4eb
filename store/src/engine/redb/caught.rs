//! Panics of redb over a damaged file: they are caught and told as damage, and print nothing.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught and told by [`caught`].
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Calls redb, and gives the text of its panic if it panics. What the call was given is not to be used after that.
pub(super) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    // The hook cannot be set by a thread that panics.
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
    let done = catch_unwind(AssertUnwindSafe(call));
    IS_CAUGHT.set(was_caught);
    done.map_err(|panic| text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason is given").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_gives_its_text() {
        assert_eq!(caught(|| 1), Ok(1));
        assert_eq!(caught(|| panic!("page {}", 7)), Err::<(), _>("page 7".to_owned()));
        assert!(!IS_CAUGHT.get());
    }
}
