//! A limit on how many containers or builds run at once; others wait.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A limited number of places.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    all: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

#[derive(Debug)]
pub(crate) struct Taken {
    places: Places,
    count: usize,
}

impl Places {
    pub(crate) fn new(count: usize) -> Self {
        let all = count.max(1);
        Self(Arc::new(Shared { all, free: Mutex::new(all), freed: Condvar::new() }))
    }

    /// Takes all places at once, because two callers that each hold half of what they need would block each other. A
    /// caller that wants more than exist gets all of them.
    pub(crate) fn take(&self, count: usize) -> Taken {
        let count = count.min(self.0.all);
        let free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.0.freed.wait_while(free, |free| *free < count).unwrap_or_else(PoisonError::into_inner);
        *free -= count;
        drop(free);
        Taken { places: self.clone(), count }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let shared = &self.places.0;
        *shared.free.lock().unwrap_or_else(PoisonError::into_inner) += self.count;
        // Waiting callers want different numbers, so all must check.
        shared.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_and_nobody_gets_more_than_there_are() {
        let places = Places::new(4);
        let (most, now) = (Mutex::new(0), Mutex::new(0_usize));
        std::thread::scope(|scope| {
            for count in [1, 2, 3, 4, 9, 1, 2, 3] {
                let (places, most, now) = (&places, &most, &now);
                scope.spawn(move || {
                    let taken = places.take(count);
                    let here = {
                        let mut now = now.lock().unwrap();
                        *now += taken.count;
                        *now
                    };
                    let mut most = most.lock().unwrap();
                    *most = here.max(*most);
                    drop(most);
                    *now.lock().unwrap() -= taken.count;
                });
            }
        });
        assert!((1..=4).contains(&*most.lock().unwrap()));
        assert_eq!(places.take(4).count, 4);
        assert_eq!(Places::new(0).take(1).count, 1);
    }
}
