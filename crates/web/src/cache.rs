//! Keeps answers as long as the data that they were made from stay the same.

use std::sync::{Arc, Mutex, PoisonError};

/// A small number of values, each with a key and the state of the data that it was made from.
pub(crate) struct Cache<T> {
    most: usize,
    slots: Mutex<Vec<Slot<T>>>,
}

struct Slot<T> {
    key: String,
    state: u64,
    value: Arc<Mutex<Option<Arc<T>>>>,
}

impl<T> Cache<T> {
    /// Keeps at most this many values; the least recently used one is dropped first.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, slots: Mutex::default() }
    }

    /// The value of a key at a state. It is made once, even for concurrent callers.
    pub(crate) fn get<E>(
        &self,
        key: &str,
        state: u64,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let value = self.slot(key, state);
        let mut value = value.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*value {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(make()?);
        *value = Some(Arc::clone(&made));
        Ok(made)
    }

    /// The value, if it is in the cache.
    pub(crate) fn known(&self, key: &str, state: u64) -> Option<Arc<T>> {
        let value = self.slot(key, state);
        // A value that is being made is not available yet.
        value.try_lock().ok()?.clone()
    }

    fn slot(&self, key: &str, state: u64) -> Arc<Mutex<Option<Arc<T>>>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match slots.iter().position(|slot| slot.key == key) {
            Some(at) if slots[at].state == state => slots.remove(at),
            Some(at) => {
                slots.remove(at);
                Slot { key: key.to_owned(), state, value: Arc::default() }
            }
            None => Slot { key: key.to_owned(), state, value: Arc::default() },
        };
        let value = Arc::clone(&slot.value);
        slots.push(slot);
        if slots.len() > self.most {
            slots.remove(0);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_made_once_for_each_state_and_the_oldest_goes() {
        let cache: Cache<u32> = Cache::new(2);
        let mut made = 0;
        let mut get = |key: &str, state| {
            cache.get::<()>(key, state, || {
                made += 1;
                Ok(made)
            })
        };
        assert_eq!(*get("a", 1).unwrap(), 1);
        assert_eq!(*get("a", 1).unwrap(), 1);
        assert_eq!(*get("a", 2).unwrap(), 2, "the state is another");
        assert_eq!(*get("b", 1).unwrap(), 3);
        assert_eq!(*get("c", 1).unwrap(), 4);
        assert_eq!(*get("a", 2).unwrap(), 5, "it had to go");
        assert_eq!(cache.known("a", 2).as_deref(), Some(&5));
        assert_eq!(cache.known("a", 3), None);
    }

    #[test]
    fn a_failure_is_not_kept() {
        let cache: Cache<u32> = Cache::new(2);
        assert_eq!(cache.get("a", 1, || Err("no")), Err("no"));
        assert_eq!(cache.get::<&str>("a", 1, || Ok(1)).as_deref(), Ok(&1));
    }
}
