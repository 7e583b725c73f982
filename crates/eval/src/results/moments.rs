//! Sums without rounding errors, and the mean and deviation computed from them.
//!
//! A sum is kept as numbers that do not overlap (Shewchuk's expansions), so it does not depend on the order of its
//! terms, and a term can be removed. Terms must come from [`crate::results::number::countable`]: then neither they nor
//! their squares overflow or lose digits.

#[derive(Clone, Debug, Default)]
pub struct ExactSum {
    /// Non-overlapping numbers of growing size that add up to the sum.
    parts: Vec<f64>,
}

/// The rounded sum of two numbers, and the rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let (large, small) = if a.abs() < b.abs() { (b, a) } else { (a, b) };
    let sum = large + small;
    (sum, small - (sum - large))
}

/// The rounded product of two numbers, and the rounding error.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

impl ExactSum {
    pub fn add(&mut self, term: f64) {
        let mut carried = term;
        let mut kept = 0;
        for index in 0..self.parts.len() {
            let (sum, rest) = two_sum(carried, self.parts[index]);
            if rest != 0.0 {
                self.parts[kept] = rest;
                kept += 1;
            }
            carried = sum;
        }
        self.parts.truncate(kept);
        if carried != 0.0 {
            self.parts.push(carried);
        }
    }

    fn add_product(&mut self, a: f64, b: f64) {
        let (product, rest) = two_product(a, b);
        self.add(rest);
        self.add(product);
    }

    /// The sum divided by a count. The mean of equal numbers is exactly that number.
    pub fn divided_by(&self, count: u64) -> f64 {
        let count = as_number(count);
        let quotient = self.value() / count;
        // The remainder of the division is known exactly, and corrects the last bit.
        let mut rest = self.clone();
        rest.add_product(-quotient, count);
        quotient + rest.value() / count
    }

    /// The number nearest to the sum; of two equally near ones, the even one.
    pub fn value(&self) -> f64 {
        let mut parts = self.parts.iter().rev();
        let Some(mut sum) = parts.next().copied() else { return 0.0 };
        while let Some(part) = parts.next() {
            let (next, rest) = two_sum(sum, *part);
            sum = next;
            if rest != 0.0 {
                // Halfway between two numbers, the next part decides.
                let beyond = parts.next().copied().unwrap_or_default();
                let moved = sum + 2.0 * rest;
                if rest.signum() * beyond > 0.0 && moved - sum - 2.0 * rest == 0.0 {
                    sum = moved;
                }
                break;
            }
        }
        sum
    }
}

/// Count, sum and sum of squares of some numbers.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    count: u64,
    sum: ExactSum,
    squares: ExactSum,
}

impl Moments {
    pub fn add(&mut self, number: f64) {
        self.count += 1;
        self.sum.add(number);
        self.squares.add_product(number, number);
    }

    /// Removes a number that was added.
    pub fn take_back(&mut self, number: f64) {
        self.count = self.count.saturating_sub(1);
        self.sum.add(-number);
        self.squares.add_product(-number, number);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum(&self) -> f64 {
        self.sum.value()
    }

    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.divided_by(self.count))
    }

    /// The standard deviation with `ddof` 0, like numpy's `std`.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 0).then(|| self.spread().sqrt() / as_number(self.count))
    }

    /// The standard deviation of a sample, with `ddof` 1.
    pub fn sample_deviation(&self) -> Option<f64> {
        let count = as_number(self.count);
        (self.count > 1).then(|| (self.spread() / (count - 1.0) / count).sqrt())
    }

    /// The standard error of the mean of independent numbers.
    pub fn standard_error(&self) -> Option<f64> {
        self.sample_deviation().map(|deviation| deviation / as_number(self.count).sqrt())
    }

    /// `n Σx² − (Σx)²`, rounded once. It is 0 for equal numbers and never negative.
    fn spread(&self) -> f64 {
        let mut spread = ExactSum::default();
        for part in &self.squares.parts {
            spread.add_product(as_number(self.count), *part);
        }
        for a in &self.sum.parts {
            for b in &self.sum.parts {
                spread.add_product(-a, *b);
            }
        }
        spread.value().max(0.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(crate) fn as_number(count: u64) -> f64 {
    count as f64
}
