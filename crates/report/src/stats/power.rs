//! What an experiment of a given size can detect, and how large it must be.

use serde::Serialize;

use super::distribution::{bisect, normal_cdf, normal_quantile, student_upper_quantile};
use super::real;

/// Steps of the integral over the standard error; even.
const STEPS: u32 = 1000;
/// How far the integral reaches on each side, in standard deviations of the standard error.
const REACH: f64 = 10.0;
/// With more degrees of freedom, Student's t equals the normal distribution.
const MANY: f64 = 1e9;
const MOST: usize = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Probability of finding a difference where there is none.
    pub alpha: f64,
    /// Probability of finding an existing difference.
    pub power: f64,
}

impl Goal {
    fn is_sound(self) -> bool {
        self.alpha > 0.0 && self.alpha < self.power && self.power < 1.0
    }
}

impl Default for Goal {
    fn default() -> Self {
        Self { alpha: 0.05, power: 0.8 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Design {
    pub tasks: usize,
    /// Repetitions of each task by each agent.
    pub repetitions: usize,
    /// Variance of the true means of tasks.
    pub between: f64,
    /// Variance of repetitions within a task.
    pub within: f64,
    /// Correlation of the true means of tasks between two agents: 1 if tasks are equally hard for both, 0 if using the
    /// same tasks gains nothing.
    pub correlation: f64,
}

impl Design {
    /// Standard error of one agent's mean; `None` for an impossible design.
    pub fn standard_error_of_mean(&self) -> Option<f64> {
        self.is_sound()
            .then(|| ((self.between + self.within / real(self.repetitions)) / real(self.tasks)).sqrt())
    }

    /// Standard error of the difference of two agents on the same tasks; `None` for an impossible design.
    pub fn standard_error_of_difference(&self) -> Option<f64> {
        self.is_sound().then(|| {
            let of_repetitions = 2.0 * self.within / real(self.repetitions);
            ((self.between_differences() + of_repetitions) / real(self.tasks)).sqrt()
        })
    }

    /// Variance of the true differences of tasks.
    fn between_differences(&self) -> f64 {
        2.0 * self.between * (1.0 - self.correlation)
    }

    fn is_sound(&self) -> bool {
        let is_variance = |value: f64| value >= 0.0 && value.is_finite();
        self.tasks > 0
            && self.repetitions > 0
            && is_variance(self.between)
            && is_variance(self.within)
            && (-1.0..=1.0).contains(&self.correlation)
    }
}

/// Probability that a two-sided test at `alpha` finds an effect: of the t test with the given degrees of freedom, or
/// of the normal test with `None`.
///
/// `None` for a standard error that is not above 0, fewer than one degree of freedom, or numbers that are not finite.
pub fn power(effect: f64, standard_error: f64, degrees: Option<f64>, alpha: f64) -> Option<f64> {
    let shift = (effect / standard_error).abs();
    let is_sound = standard_error > 0.0
        && standard_error.is_finite()
        && shift.is_finite()
        && alpha > 0.0
        && alpha < 1.0
        && degrees.is_none_or(|degrees| degrees >= 1.0);
    is_sound.then(|| power_at(shift, degrees, alpha))
}

/// The smallest effect that a two-sided test finds with the power of the goal.
///
/// `None` for a standard error that is negative or not finite, fewer than one degree of freedom, or an invalid goal (a
/// power that is not above alpha, or either outside 0 to 1).
pub fn minimal_detectable_effect(standard_error: f64, degrees: Option<f64>, goal: Goal) -> Option<f64> {
    let is_sound = standard_error >= 0.0
        && standard_error.is_finite()
        && goal.is_sound()
        && degrees.is_none_or(|degrees| degrees >= 1.0);
    is_sound.then(|| standard_error * detectable_shift(degrees, goal))
}

/// The fewest repetitions of each task with which a paired comparison finds `effect`; those of the design are ignored.
///
/// `None` if no number of repetitions is enough, because tasks are too few, and for an impossible effect or design.
pub fn repetitions_needed(design: &Design, effect: f64, goal: Goal) -> Option<usize> {
    let design = Design { repetitions: 1, ..*design };
    if !design.is_sound() || !goal.is_sound() || design.tasks < 2 || !effect.is_finite() || effect == 0.0 {
        return None;
    }
    let shift = detectable_shift(Some(real(design.tasks - 1)), goal);
    let variance_of_task = real(design.tasks) * (effect / shift).powi(2);
    let left = variance_of_task - design.between_differences();
    let needed = 2.0 * design.within / left;
    if left < 0.0 || needed.is_nan() || needed > real(MOST) {
        // Without noise within tasks, one repetition is enough.
        return (left >= 0.0 && design.within == 0.0).then_some(1);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 2^40")]
    let whole = (needed - 1e-9).ceil() as usize;
    Some(whole.max(1))
}

/// The fewest tasks, at least two, with which a paired comparison finds `effect`; those of the design are ignored.
///
/// `None` for an effect that needs unaffordably many tasks, and for an impossible effect or design.
pub fn tasks_needed(design: &Design, effect: f64, goal: Goal) -> Option<usize> {
    let one = Design { tasks: 1, ..*design }.standard_error_of_difference()?;
    if !goal.is_sound() || !effect.is_finite() || effect == 0.0 {
        return None;
    }
    let is_enough = |tasks: usize| {
        let shift = effect.abs() / (one / real(tasks).sqrt());
        power_at(shift, Some(real(tasks - 1)), goal.alpha) >= goal.power
    };
    let mut high = 2;
    while !is_enough(high) {
        high *= 2;
        if high > MOST {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high.max(2))
}

/// The effect in standard errors that is found with the power of a valid goal.
fn detectable_shift(degrees: Option<f64>, goal: Goal) -> f64 {
    let critical = critical_value(degrees, goal.alpha);
    let is_found = |shift: f64| power_beyond(critical, shift, degrees) >= goal.power;
    let mut high = 4.0;
    while !is_found(high) && high < 1e150 {
        high *= 2.0;
    }
    bisect(0.0, high, is_found)
}

/// Power if the effect is `shift` standard errors.
fn power_at(shift: f64, degrees: Option<f64>, alpha: f64) -> f64 {
    power_beyond(critical_value(degrees, alpha), shift, degrees)
}

/// How many standard errors from 0 an estimate must be to be significant.
fn critical_value(degrees: Option<f64>, alpha: f64) -> f64 {
    match degrees {
        Some(degrees) if degrees < MANY => student_upper_quantile(alpha / 2.0, degrees),
        _ => normal_quantile(1.0 - alpha / 2.0),
    }
}

/// Probability that an estimate around `shift` standard errors is beyond the critical value on either side.
fn power_beyond(critical: f64, shift: f64, degrees: Option<f64>) -> f64 {
    match degrees {
        Some(degrees) if degrees < MANY => {
            over_standard_errors(degrees, |error| outside(shift, critical * error))
        }
        _ => outside(shift, critical),
    }
}

/// Probability that a normal variable around `shift` is outside `-critical` to `critical`.
fn outside(shift: f64, critical: f64) -> f64 {
    normal_cdf(shift - critical) + normal_cdf(-shift - critical)
}

/// Mean of `value` over the estimated standard error as a multiple of the true one, whose square times the degrees of
/// freedom has a chi-square distribution. Simpson's rule; the density is normalised to one.
fn over_standard_errors(degrees: f64, value: impl Fn(f64) -> f64) -> f64 {
    let deviation = (2.0 * degrees).sqrt().recip();
    let low = (1.0 - REACH * deviation).max(0.0);
    let high = 1.0 + REACH * deviation;
    let log_density = |error: f64| {
        // With one degree of freedom the density is highest at 0, where the logarithm is not defined.
        let growth = if degrees > 1.0 { (degrees - 1.0) * error.ln() } else { 0.0 };
        growth - degrees / 2.0 * (error * error - 1.0)
    };
    let (mut mass, mut sum) = (0.0, 0.0);
    for step in 0..=STEPS {
        let error = low + (high - low) * f64::from(step) / f64::from(STEPS);
        let weight = match step {
            0 | STEPS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let density = weight * log_density(error).exp();
        mass += density;
        sum += density * value(error);
    }
    sum / mass
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::assert_close;

    const DESIGN: Design =
        Design { tasks: 50, repetitions: 4, between: 0.08, within: 0.12, correlation: 0.75 };

    #[test]
    fn power_of_the_t_test_is_that_of_statsmodels() {
        // statsmodels.stats.power.TTestPower().power(effect_size, nobs, alpha)
        for (effect, tasks, alpha, expected) in [
            (0.5, 34, 0.05, 0.807_777_501_279_273_7),
            (0.2, 40, 0.05, 0.234_596_494_028_367_66),
            (1.2, 5, 0.01, 0.191_956_571_854_620_7),
            (0.3, 400, 0.05, 0.999_971_578_079_144_3),
            (3.0, 2, 0.05, 0.260_770_714_229_109_36),
            (0.0, 20, 0.05, 0.05),
            (-0.5, 34, 0.05, 0.807_777_501_279_273_7),
        ] {
            let error = real(tasks).sqrt().recip();
            assert_close(power(effect, error, Some(real(tasks - 1)), alpha).unwrap(), expected, 1e-8);
        }
    }

    #[test]
    fn detectable_effects_are_those_of_statsmodels() {
        // scipy.optimize.brentq on the power from scipy.stats.chi.pdf and norm.cdf, integrated by quad; TTestPower's
        // solve_power gives the same to the six digits that it looks for.
        let effect = minimal_detectable_effect(40.0_f64.sqrt().recip(), Some(39.0), Goal::default());
        assert_close(effect.unwrap(), 0.454_256_939_683_566_73, 1e-8);
        let strict = Goal { alpha: 0.01, power: 0.9 };
        let effect = minimal_detectable_effect(10.0_f64.sqrt().recip(), Some(9.0), strict);
        assert_close(effect.unwrap(), 1.509_734_485_574_937_3, 1e-8);
        // norm.ppf(0.975) + norm.ppf(0.8); the chance of finding it on the wrong side is 10^-6.
        let effect = minimal_detectable_effect(0.1, None, Goal::default());
        assert_close(effect.unwrap(), 0.280_158_521_811_296_83, 1e-5);
        let many = minimal_detectable_effect(0.1, Some(1e8), Goal::default());
        assert_close(many.unwrap(), effect.unwrap(), 1e-6);
    }

    #[test]
    fn tasks_needed_are_those_of_statsmodels() {
        // TTestPower().solve_power(effect_size=..., alpha=0.05, power=0.8): 89.15, 3141.47, 14.30
        let unit = Design { tasks: 1, repetitions: 1, between: 0.5, within: 0.0, correlation: 0.0 };
        for (effect, tasks) in [(0.3, 90), (0.05, 3142), (0.8, 15), (-0.8, 15), (1e6, 2)] {
            assert_eq!(tasks_needed(&unit, effect, Goal::default()), Some(tasks), "{effect}");
        }
        assert_eq!(tasks_needed(&unit, 1e-9, Goal::default()), None);
    }

    #[test]
    fn errors_follow_from_the_components() {
        // sqrt((0.08 + 0.12 / 4) / 50) and sqrt((2 * 0.08 * 0.25 + 2 * 0.12 / 4) / 50)
        assert_close(DESIGN.standard_error_of_mean().unwrap(), 0.0022_f64.sqrt(), 1e-12);
        assert_close(DESIGN.standard_error_of_difference().unwrap(), 0.002_f64.sqrt(), 1e-12);
    }

    #[test]
    fn repetitions_needed_are_just_enough() {
        let goal = Goal::default();
        for effect in [0.1, 0.11, 0.125, 0.2, -0.2, 0.9] {
            let needed = repetitions_needed(&DESIGN, effect, goal).unwrap();
            let reached = |repetitions| {
                let error = Design { repetitions, ..DESIGN }.standard_error_of_difference().unwrap();
                power(effect, error, Some(49.0), goal.alpha).unwrap() >= goal.power - 1e-9
            };
            assert!(reached(needed), "{effect} {needed}");
            assert!(needed == 1 || !reached(needed - 1), "{effect} {needed}");
        }
    }

    #[test]
    fn tasks_limit_what_repetitions_can_do() {
        // Even without noise the error is sqrt(0.04 / 50) = 0.0283, so 0.08 is just above and 0.0815 below what 50
        // tasks can find: t(49) needs 2.8576 standard errors.
        assert_eq!(repetitions_needed(&DESIGN, 0.08, Goal::default()), None);
        assert!(repetitions_needed(&DESIGN, 0.0815, Goal::default()).is_some_and(|needed| needed > 100));
        let noiseless = Design { within: 0.0, ..DESIGN };
        assert_eq!(repetitions_needed(&noiseless, 0.0815, Goal::default()), Some(1));
        let alike = Design { within: 0.0, correlation: 1.0, ..DESIGN };
        assert_eq!(repetitions_needed(&alike, 0.001, Goal::default()), Some(1));
        assert_eq!(tasks_needed(&alike, 0.001, Goal::default()), Some(2));
    }

    #[test]
    fn goals_and_designs_that_cannot_be_are_refused() {
        for goal in [(0.0, 0.8), (0.05, 1.0), (0.8, 0.05), (f64::NAN, 0.8), (0.05, f64::NAN)] {
            let goal = Goal { alpha: goal.0, power: goal.1 };
            assert_eq!(minimal_detectable_effect(0.1, None, goal), None);
            assert_eq!(repetitions_needed(&DESIGN, 0.1, goal), None);
            assert_eq!(tasks_needed(&DESIGN, 0.1, goal), None);
        }
        for effect in [0.0, f64::NAN, f64::INFINITY] {
            assert_eq!(repetitions_needed(&DESIGN, effect, Goal::default()), None);
            assert_eq!(tasks_needed(&DESIGN, effect, Goal::default()), None);
        }
        for error in [-0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(minimal_detectable_effect(error, None, Goal::default()), None);
            assert_eq!(power(0.1, error, None, 0.05), None);
        }
        assert_eq!(minimal_detectable_effect(0.1, Some(0.5), Goal::default()), None);
        for design in [
            Design { tasks: 0, ..DESIGN },
            Design { repetitions: 0, ..DESIGN },
            Design { between: -1.0, ..DESIGN },
            Design { within: f64::NAN, ..DESIGN },
            Design { correlation: 1.5, ..DESIGN },
        ] {
            assert_eq!(design.standard_error_of_mean(), None);
            assert_eq!(design.standard_error_of_difference(), None);
        }
        assert_eq!(repetitions_needed(&Design { tasks: 1, ..DESIGN }, 0.5, Goal::default()), None);
    }
}
