//! Trials whose rewards are unknown, although they were run: one place says what that means for a mean.

use aec_base::text::count;
use serde::Serialize;

/// Trials without a known reward, and the mean reward if they had one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unknown {
    /// Trials that an imported package withheld.
    pub withheld: usize,
    /// Trials that were not judged here and whose rewards from elsewhere do not count.
    pub unverified: usize,
    /// The mean reward if all of these earned 0.
    pub low: f64,
    /// The mean reward if all of these earned 1.
    pub high: f64,
}

impl Unknown {
    /// `None` if nothing is unknown. `sum` and `counted` are those of the rewards that are known.
    #[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^52")]
    pub fn of(sum: f64, counted: usize, withheld: usize, unverified: usize) -> Option<Self> {
        let unknown = withheld + unverified;
        let all = (counted + unknown) as f64;
        (unknown > 0).then(|| Self {
            withheld,
            unverified,
            low: sum / all,
            high: (sum + unknown as f64) / all,
        })
    }

    pub fn count(&self) -> usize {
        self.withheld + self.unverified
    }

    /// `4 trials withheld, 1 unverified`
    pub fn names(&self) -> String {
        let mut names = Vec::new();
        if self.withheld > 0 {
            names.push(format!("{} withheld", count(self.withheld, "trial")));
        }
        if self.unverified > 0 {
            let what =
                if names.is_empty() { count(self.unverified, "trial") } else { self.unverified.to_string() };
            names.push(format!("{what} unverified"));
        }
        names.join(", ")
    }

    /// `4 trials withheld: 0.222 to 0.889 of 6`
    pub fn text(&self, counted: usize) -> String {
        format!("{}: {:.3} to {:.3} of {}", self.names(), self.low, self.high, counted + self.count())
    }

    /// The same as a sentence without its full stop, for the notes of reports.
    pub fn sentence(&self, counted: usize) -> String {
        format!(
            "the rewards of some trials are unknown ({}): a mean marked with * is of the other {counted}; it is {:.3} \
             if they earned 0, which ranks count, and {:.3} if they earned 1",
            self.names(),
            self.low,
            self.high
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_trials_are_part_of_the_denominator() {
        assert_eq!(Unknown::of(1.0, 3, 0, 0), None);
        let unknown = Unknown::of(4.0 / 3.0, 2, 4, 0).unwrap();
        assert_eq!(unknown.text(2), "4 trials withheld: 0.222 to 0.889 of 6");
        assert_eq!(Unknown::of(0.0, 0, 1, 1).unwrap().names(), "1 trial withheld, 1 unverified");
    }
}
