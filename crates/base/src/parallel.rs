//! Applies one function to many items on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `work` to every item on all cores and returns the results in the order of the items. Each core takes
/// `chunk` items at a time: use 1 for slow work, more for fast work.
pub fn map<T: Sync, R: Send>(items: &[T], chunk: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    if workers == 1 || items.len() <= chunk {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let mut chunks: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    loop {
                        let start = next.fetch_add(chunk, Ordering::Relaxed);
                        let Some(rest) = items.get(start..).filter(|rest| !rest.is_empty()) else {
                            return done;
                        };
                        let taken = &rest[..chunk.min(rest.len())];
                        done.push((start, taken.iter().map(&work).collect()));
                    }
                })
            })
            .collect();
        handles
            .into_iter()
            .flat_map(|handle| match handle.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    });
    chunks.sort_by_key(|(start, _)| *start);
    chunks.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        for (count, chunk) in [(0, 1), (1, 1), (5, 1), (1000, 32), (1000, 7), (31, 32)] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(map(&items, chunk, |n| n * 2), items.iter().map(|n| n * 2).collect::<Vec<_>>());
        }
    }
}
