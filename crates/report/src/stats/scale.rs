//! Rewards relative to what needs no work.

/// The reward on a scale where `floor` is 0 and full reward stays 1: (reward − floor) / (1 − floor).
///
/// A reward below the floor becomes negative and stays so: cutting it off at 0 would lift the mean of an agent that
/// merely guesses above 0. `None` if the floor leaves nothing to earn, or for a number that is not finite.
pub fn rescale(reward: f64, floor: f64) -> Option<f64> {
    let rescaled = (reward - floor) / (1.0 - floor);
    (floor < 1.0 && rescaled.is_finite()).then_some(rescaled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_zero_and_full_marks_stay() {
        assert_eq!(rescale(0.2, 0.2), Some(0.0));
        assert_eq!(rescale(1.0, 0.2), Some(1.0));
        assert_eq!(rescale(0.75, 0.5), Some(0.5));
        assert_eq!(rescale(0.25, 0.5), Some(-0.5));
        assert_eq!(rescale(0.4, 0.0), Some(0.4));
    }

    #[test]
    fn a_floor_that_leaves_nothing_to_earn_is_refused() {
        for (reward, floor) in
            [(1.0, 1.0), (0.5, 1.5), (0.5, f64::NAN), (f64::NAN, 0.1), (0.5, f64::NEG_INFINITY)]
        {
            assert_eq!(rescale(reward, floor), None, "{reward} {floor}");
        }
    }
}
