//! The results of evaluations, as text.

use std::fmt::Write as _;

use aec_base::decimal::rounded;
use aec_base::text::count;
use aec_eval::evaluation::Ended;
use aec_eval::results::metadata::Metadata;
use aec_eval::results::summary::{Statistic, Summary};

use crate::progress::figures::{cost, grouped};

pub(crate) fn summary_text(ended: &[Ended]) -> String {
    let mut text = String::new();
    for (at, one) in ended.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        if ended.len() > 1 {
            let started = &one.started;
            let _ =
                writeln!(text, "{} with {} ({} rollouts)", started.env_id, started.model, one.summary.rows);
        }
        text.push_str(&results(&one.summary));
        if one.spent.calls > 0 {
            let cost = cost(one.spent.spent, one.spent.unpriced_calls);
            let all = one.cost.map_or(0.0, |all| all.total_usd);
            let before = if all > one.spent.spent.dollars() {
                format!(", ${} with earlier sessions", rounded(all, 4))
            } else {
                String::new()
            };
            let _ = writeln!(text, "  Cost: {cost}{before}");
        }
    }
    text
}

pub(crate) fn saved_text(metadata: &Metadata, summary: &Summary) -> String {
    let mut text = format!(
        "{} with {}: {} examples, {} rollouts each, {}\n",
        metadata.name.as_deref().unwrap_or(&metadata.env_id),
        metadata.model,
        metadata.num_examples,
        metadata.rollouts_per_example,
        if metadata.complete == Some(false) { "not complete" } else { "complete" },
    );
    text.push_str(&results(summary));
    if let Some(cost) = metadata.cost {
        let _ = writeln!(text, "  Cost: ${}", rounded(cost.total_usd, 4));
    }
    text
}

/// Mean and deviation of reward and metrics, then other results.
fn results(summary: &Summary) -> String {
    let mut text = String::from("Results:\n");
    match &summary.reward {
        Some(reward) => {
            let _ =
                writeln!(text, "  Reward: {} ± {}", rounded(reward.mean, 2), rounded(reward.deviation, 2));
        }
        None => text.push_str("  Reward: none\n"),
    }
    for (name, statistic) in &summary.metrics {
        let _ = writeln!(text, "  {name}: {}", mean_and_deviation(statistic));
    }
    if let Some(error) = summary.reward.and_then(|reward| reward.standard_error) {
        let _ = writeln!(text, "  Standard error of the mean reward: {}", rounded(error, 4));
    }
    for (name, passes) in [("pass@k", &summary.pass_at_k), ("pass^k", &summary.pass_all_k)] {
        if !passes.is_empty() {
            let passes: Vec<String> =
                passes.iter().map(|(k, share)| format!("{k}: {}", rounded(*share, 3))).collect();
            let _ = writeln!(text, "  {name}: {} (reward ≥ {})", passes.join(", "), summary.pass_threshold);
        }
    }
    if let Some(usage) = &summary.usage {
        let whole = |number: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tokens are counted")]
            let number = number.max(0.0) as u64;
            grouped(number)
        };
        let _ = writeln!(
            text,
            "  Tokens: {} in and {} out in all, {} and {} per rollout",
            whole(usage.total.input_tokens),
            whole(usage.total.output_tokens),
            rounded(usage.mean.input_tokens, 1),
            rounded(usage.mean.output_tokens, 1)
        );
    }
    if let Some(timing) = &summary.timing {
        let _ = writeln!(
            text,
            "  Seconds per rollout: {} (from {} to {}); model {}, environment {}, scoring {}, \
             overhead {}",
            rounded(timing.total.mean, 3),
            rounded(timing.total.min, 3),
            rounded(timing.total.max, 3),
            rounded(timing.model.mean, 3),
            rounded(timing.env.mean, 3),
            rounded(timing.scoring.mean, 3),
            rounded(timing.overhead.mean, 3)
        );
    }
    if !summary.stop_conditions.is_empty() {
        let stops: Vec<String> =
            summary.stop_conditions.iter().map(|(stop, number)| format!("{stop} {number}")).collect();
        let _ = writeln!(text, "  Stopped by: {}", stops.join(", "));
    }
    if summary.truncated > 0 {
        let _ = writeln!(text, "  Cut short by a limit: {}", summary.truncated);
    }
    if !summary.errors.is_empty() {
        let errors: Vec<String> =
            summary.errors.iter().map(|(chain, number)| format!("{chain} {number}")).collect();
        let rollouts = usize::try_from(summary.errored).unwrap_or(usize::MAX);
        let _ = writeln!(text, "  Errors in {}: {}", count(rollouts, "rollout"), errors.join(", "));
    }
    text
}

/// Two decimals for numbers between 0 and 1, one for larger numbers.
fn mean_and_deviation(statistic: &Statistic) -> String {
    let places = if statistic.mean.abs() < 1.0 && statistic.deviation < 1.0 { 2 } else { 1 };
    format!("{:.places$} ± {:.places$}", statistic.mean, statistic.deviation)
}
