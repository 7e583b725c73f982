//! How well two judges agree beyond chance.

use std::collections::BTreeMap;

use serde::Serialize;

use super::distribution::normal_quantile;
use super::interval::{Bounds, Confidence, Interval};
use super::real;

/// Cohen's kappa.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Kappa {
    /// 1 is full agreement, 0 is what chance gives.
    pub kappa: f64,
    /// Asymptotic standard error.
    pub standard_error: f64,
    /// Normal interval; absent if the standard error is 0, as it is when both agree everywhere.
    pub interval: Option<Interval>,
}

/// Cohen's kappa of two judges who assign the same items to categories, with the standard error for large samples.
///
/// `None` without items, or if both assign everything to the same category, so that chance explains all agreement.
pub fn cohens_kappa<Category: Ord>(pairs: &[(Category, Category)], confidence: Confidence) -> Option<Kappa> {
    let count = real(pairs.len());
    let mut margins: BTreeMap<&Category, [f64; 2]> = BTreeMap::new();
    for (first, second) in pairs {
        margins.entry(first).or_default()[0] += 1.0 / count;
        margins.entry(second).or_default()[1] += 1.0 / count;
    }
    if margins.len() < 2 {
        return None;
    }
    let observed = real(pairs.iter().filter(|(first, second)| first == second).count()) / count;
    let by_chance: f64 = margins.values().map(|[first, second]| first * second).sum();
    let disagreement = 1.0 - by_chance;
    let kappa = (observed - by_chance) / disagreement;

    let short = 1.0 - kappa;
    let squares: f64 = pairs
        .iter()
        .map(|(first, second)| {
            let crossed = margins[first][1] + margins[second][0];
            if first == second { (1.0 - crossed * short).powi(2) } else { (short * crossed).powi(2) }
        })
        .sum();
    let variance = (squares / count - (kappa - by_chance * short).powi(2)).max(0.0);
    // A variance of this size is a rounding error of 0.
    let variance = if variance < 1e-14 { 0.0 } else { variance };
    let standard_error = (variance / count).sqrt() / disagreement;
    let reach = standard_error * normal_quantile(1.0 - confidence.tail());
    let around = Interval { low: kappa - reach, high: kappa + reach };
    let interval = (standard_error > 0.0).then(|| around.within(Bounds::DIFFERENCE, kappa));
    Some(Kappa { kappa, standard_error, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::assert_close;

    fn from_table(table: &[&[usize]]) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for (first, row) in table.iter().enumerate() {
            for (second, count) in row.iter().enumerate() {
                pairs.extend(vec![(first, second); *count]);
            }
        }
        pairs
    }

    fn check(table: &[&[usize]], kappa: f64, standard_error: f64, interval: (f64, f64)) {
        let found = cohens_kappa(&from_table(table), Confidence::default()).unwrap();
        assert_close(found.kappa, kappa, 1e-12);
        assert_close(found.standard_error, standard_error, 1e-10);
        assert_close(found.interval.unwrap().low, interval.0, 1e-9);
        assert_close(found.interval.unwrap().high, interval.1, 1e-9);
    }

    #[test]
    fn kappa_is_that_of_statsmodels() {
        // statsmodels.stats.inter_rater.cohens_kappa: kappa, std_kappa, kappa_low, kappa_upp
        check(
            &[&[20, 5, 1], &[10, 15, 3], &[2, 4, 12]],
            0.469_339_622_641_509_47,
            0.086_187_624_326_532_5,
            (0.300_414_983_048_437_5, 0.638_264_262_234_581_4),
        );
        check(
            &[&[45, 15], &[25, 15]],
            0.130_434_782_608_695_54,
            0.098_661_537_623_439_6,
            (-0.062_938_277_792_589_65, 0.323_807_843_009_980_7),
        );
    }

    #[test]
    fn full_agreement_has_no_interval_and_one_category_no_kappa() {
        let full =
            cohens_kappa(&[("good", "good"), ("bad", "bad"), ("bad", "bad")], Confidence::default()).unwrap();
        assert_close(full.kappa, 1.0, 1e-12);
        assert_eq!(full.interval, None);
        assert_eq!(cohens_kappa(&[(1, 1), (1, 1)], Confidence::default()), None);
        assert_eq!(cohens_kappa::<bool>(&[], Confidence::default()), None);
    }
}
