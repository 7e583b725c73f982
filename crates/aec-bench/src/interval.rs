//! How sure a mean is: an interval from the differences between tasks.

/// The interval of a mean reward with 95 % confidence, with tasks as the units that were drawn: repetitions of one task
/// say nothing about other tasks. A few tasks have no interval, and neither has a mean without differences.
#[expect(clippy::cast_precision_loss, reason = "counts of tasks are small")]
pub(crate) fn mean_interval(by_task: &[Vec<f64>]) -> Option<(f64, f64)> {
    let means: Vec<f64> = by_task
        .iter()
        .filter(|rewards| !rewards.is_empty())
        .map(|rewards| rewards.iter().sum::<f64>() / rewards.len() as f64)
        .collect();
    let n = means.len();
    if n < 2 {
        return None;
    }
    let mean = means.iter().sum::<f64>() / n as f64;
    let variance = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    let half = student_95(n - 1) * (variance / n as f64).sqrt();
    Some(((mean - half).max(0.0), (mean + half).min(1.0)))
}

/// The 97.5 % point of Student's distribution. The table ends where the formula is as good.
#[expect(clippy::cast_precision_loss, reason = "degrees of freedom are small")]
fn student_95(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    // Beyond the table, the first terms of the expansion in the number of degrees.
    let beyond = |n: f64| 1.959_964 + 2.372_27 / n + 2.822_5 / (n * n);
    TABLE.get(degrees.saturating_sub(1)).copied().unwrap_or_else(|| beyond(degrees as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_published_samples() {
        // Student's t for n = 5: mean 0.5, s = 0.1581, t = 2.776.
        let tasks: Vec<Vec<f64>> = [0.3, 0.4, 0.5, 0.6, 0.7].iter().map(|value| vec![*value]).collect();
        let (low, high) = mean_interval(&tasks).unwrap();
        assert!((low - 0.3037).abs() < 1e-3 && (high - 0.6963).abs() < 1e-3, "{low} {high}");
        assert_eq!(mean_interval(&[vec![1.0, 0.0]]), None, "one task is no sample of tasks");
        assert_eq!(mean_interval(&[vec![1.0], vec![1.0]]), Some((1.0, 1.0)));
        assert_eq!(mean_interval(&[]), None);
        for (degrees, expected) in [(40, 2.0211), (60, 2.0003), (120, 1.9799)] {
            assert!((student_95(degrees) - expected).abs() < 5e-4, "{degrees}");
        }
    }
}
