//! P values of many tests at once.

use super::real;

/// P values adjusted by Holm's method, in the order given: if all values of at most α are called significant, the
/// probability of any error is at most α.
///
/// `None` if one of them is not between 0 and 1.
pub fn holm(p_values: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p_values)?;
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.iter().enumerate() {
        largest = largest.max(p_values[*index] * real(p_values.len() - rank)).min(1.0);
        adjusted[*index] = largest;
    }
    Some(adjusted)
}

/// P values adjusted by the method of Benjamini and Hochberg, in the order given: among the values of at most α, the
/// expected share of errors is at most α.
///
/// `None` if one of them is not between 0 and 1.
pub fn benjamini_hochberg(p_values: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p_values)?;
    let mut adjusted = vec![0.0; p_values.len()];
    let mut smallest: f64 = 1.0;
    for (rank, index) in order.iter().enumerate().rev() {
        // The factor is at least 1, and computed first so that rounding cannot make the product smaller than p.
        smallest = smallest.min(p_values[*index] * (real(p_values.len()) / real(rank + 1)));
        adjusted[*index] = smallest;
    }
    Some(adjusted)
}

/// Indices from the smallest p value to the largest.
fn ascending(p_values: &[f64]) -> Option<Vec<usize>> {
    if p_values.iter().any(|p_value| !(0.0..=1.0).contains(p_value)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::assert_close;

    const P_VALUES: [f64; 8] = [0.01, 0.04, 0.03, 0.005, 0.5, 0.9, 0.04, 0.2];

    fn check(adjusted: Option<Vec<f64>>, expected: [f64; 8]) {
        for (adjusted, expected) in adjusted.unwrap().iter().zip(expected) {
            assert_close(*adjusted, expected, 1e-12);
        }
    }

    #[test]
    fn adjusted_values_are_those_of_statsmodels() {
        // multipletests(p, method="holm") and method="fdr_bh"
        check(holm(&P_VALUES), [0.07, 0.2, 0.18, 0.04, 1.0, 1.0, 0.2, 0.6]);
        check(
            benjamini_hochberg(&P_VALUES),
            [0.04, 0.064, 0.064, 0.04, 0.571_428_571_428_571_4, 0.9, 0.064, 0.266_666_666_666_666_66],
        );
        assert_eq!(holm(&[]), Some(vec![]));
        assert_eq!(benjamini_hochberg(&[0.3]), Some(vec![0.3]));
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        for bad in [f64::NAN, -0.1, 1.1] {
            assert_eq!(holm(&[0.5, bad]), None);
            assert_eq!(benjamini_hochberg(&[bad, 0.5]), None);
        }
    }
}
