//! The file of Prime's shared `LoRA` training.

use super::text::{float, quoted};
use super::{DifficultyFiltering, TrainOptions, View};

pub(super) fn write(options: &TrainOptions) -> String {
    let views = options.views();
    let mut text = format!(
        "model = {}\nmax_steps = {}\nbatch_size = {}\nrollouts_per_example = {}\n\n[sampling]\nmax_tokens = {}\n",
        quoted(&options.model),
        options.max_steps,
        options.batch_size,
        options.rollouts_per_example,
        options.max_tokens,
    );
    for view in &views {
        text.push_str(&environment("env", options, view, &options.split, options.num_examples));
    }
    text.push_str(&buffer(options.filtering.as_ref(), &views));
    text.push_str(&format!(
        "\n[eval]\ninterval = {}\nnum_examples = {}\nrollouts_per_example = {}\neval_base_model = {}\n",
        options.eval_interval,
        options.eval_num_examples,
        options.eval_rollouts_per_example,
        options.eval_base_model,
    ));
    // Without its own environments, the service drops the evaluation.
    for view in &views {
        text.push_str(&environment("eval.env", options, view, "eval", None));
    }
    text.push_str(&format!("\n[adapters]\ninterval = 0\nkeep_last = {}\n", options.keep_last));
    text
}

fn environment(
    table: &str,
    options: &TrainOptions,
    view: &View,
    split: &str,
    examples: Option<u32>,
) -> String {
    let arguments = options.arguments(view, split, examples);
    let inline: Vec<String> = arguments.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let mut text = format!("\n[[{table}]]\nid = {}\n", quoted(&options.environment.to_string()));
    if !view.suffix.is_empty() {
        // Views of one environment need different names.
        text.push_str(&format!(
            "name = {}\n",
            quoted(&format!("{}{}", options.environment.name, view.suffix))
        ));
    }
    text.push_str(&format!("args = {{ {} }}\n", inline.join(", ")));
    text
}

fn buffer(filtering: Option<&DifficultyFiltering>, views: &[View]) -> String {
    let mut lines = String::new();
    let ratios: Vec<String> = views.iter().filter_map(|view| view.ratio).map(float).collect();
    if !ratios.is_empty() {
        lines.push_str(&format!("env_ratios = [{}]\n", ratios.join(", ")));
    }
    if let Some(filtering) = filtering {
        lines.push_str("online_difficulty_filtering = true\n");
        for (key, number) in [
            ("easy_threshold", filtering.easy_threshold),
            ("hard_threshold", filtering.hard_threshold),
            ("easy_fraction", filtering.easy_fraction),
            ("hard_fraction", filtering.hard_fraction),
        ] {
            lines.push_str(&format!("{key} = {}\n", float(number)));
        }
    }
    if lines.is_empty() { lines } else { format!("\n[buffer]\n{lines}") }
}
