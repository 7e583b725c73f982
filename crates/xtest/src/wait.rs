//! Waits for the effects of another process, without taking the processor time that it needs.

use std::time::{Duration, Instant};

/// Longer than anything takes on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_mins(5);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until a condition holds.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some(what, || is_so().then_some(()));
}

/// Waits until a value is available.
pub fn until_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(PAUSE);
    }
}
