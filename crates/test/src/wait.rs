//! Waiting for what another process brings about, without taking the processor that it needs for that.

use std::time::{Duration, Instant};

/// Longer than anything takes on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_mins(5);
/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(2);

/// Looks until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some(what, || is_so().then_some(()));
}

/// Looks until something is there.
pub fn until_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "this does not come: {what}");
        std::thread::sleep(PAUSE);
    }
}
