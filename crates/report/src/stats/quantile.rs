//! Quantiles of observed values.

use super::real;

/// The value below which the given share of the values is, interpolated linearly between neighbours (type 7, the
/// default of R and `NumPy`).
///
/// `None` without values, with one that is not finite, and for a share outside 0 to 1.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) || !(0.0..=1.0).contains(&share) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(quantile_of_sorted(&sorted, share))
}

/// The quantile at one half; `None` as for [`quantile`].
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Like [`quantile`], for at least one value, sorted, and a share between 0 and 1.
pub(super) fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = real(last) * share;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the last index"
    )]
    let index = (place.floor() as usize).min(last);
    let (low, high) = (sorted[index], sorted[(index + 1).min(last)]);
    let part = place - real(index);
    // The weighted sum cannot overflow, as a difference could; rounding must not carry it past a neighbour.
    (low * (1.0 - part) + high * part).clamp(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_numpy() {
        // np.quantile([3, 1, 4, 1, 5, 9, 2, 6], q)
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        for (share, expected) in [(0.0, 1.0), (0.1, 1.0), (0.25, 1.75), (0.5, 3.5), (0.9, 6.9), (1.0, 9.0)] {
            assert!((quantile(&values, share).unwrap() - expected).abs() < 1e-12, "{share}");
        }
        assert_eq!(median(&values), Some(3.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[1e308, 1.5e308]), Some(1.25e308));
    }

    #[test]
    fn values_without_a_quantile_are_refused() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[1.0, f64::INFINITY]), None);
        for share in [-0.1, 1.1, f64::NAN] {
            assert_eq!(quantile(&[1.0], share), None);
        }
    }
}
