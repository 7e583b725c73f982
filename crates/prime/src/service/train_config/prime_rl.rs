//! The file of prime-rl: one training source for each view, and an evaluation on the eval split.
//!
//! prime-rl no longer has a difficulty buffer. Ratios are now weights of sources, and online filtering is a sampler
//! with pools by mean reward, together with a gate that rejects groups without any signal.

use super::text::{float, quoted};
use super::{DifficultyFiltering, TrainOptions, View};

/// Least context requested; tasks have long instructions and several turns.
const LEAST_CONTEXT: u32 = 8192;

/// Number of answers that must fit into the context.
const TURNS_IN_CONTEXT: u32 = 4;

pub(super) fn write(options: &TrainOptions, notes: &mut Vec<String>) -> String {
    let seq_len = options.max_tokens.saturating_mul(TURNS_IN_CONTEXT).max(LEAST_CONTEXT);
    let module = &options.environment.name;
    let mut text = format!(
        "max_steps = {}\nseq_len = {seq_len}\n\n[model]\nname = {}\n\n[deployment]\nnum_train_gpus = 1\n\
         num_infer_gpus = 1\n\n[trainer.optim]\nlr = 1e-5\n\n[trainer.model.lora]\nrank = 16\n\n\
         [orchestrator]\nbatch_size = {}\ngroup_size = {}\n\n[orchestrator.train.sampling]\n\
         max_completion_tokens = {}\n",
        options.max_steps,
        quoted(&options.model),
        options.batch_size,
        options.rollouts_per_example,
        options.max_tokens,
    );
    let views = options.views();
    for view in &views {
        text.push_str(&source("train", &format!("{module}{}", view.suffix), module));
        if let Some(ratio) = view.ratio {
            text.push_str(&format!("ratio = {}\n", float(ratio)));
        }
        text.push_str(&taskset(options, view, &options.split, options.num_examples));
        if let Some(filtering) = &options.filtering {
            text.push_str(&curriculum(filtering));
        }
    }
    text.push_str(&format!(
        "\n[orchestrator.eval]\ninterval = {}\ngroup_size = {}\nskip_first_step = {}\n\n\
         [orchestrator.eval.sampling]\nmax_completion_tokens = {}\n",
        options.eval_interval,
        options.eval_rollouts_per_example,
        !options.eval_base_model,
        options.max_tokens,
    ));
    for view in &views {
        text.push_str(&source("eval", &format!("{module}{}-eval", view.suffix), module));
        // The number of examples is set on the taskset, because prime-rl has renamed its own setting more than once.
        text.push_str(&taskset(options, view, "eval", Some(options.eval_num_examples)));
    }
    text.push_str(&format!("\n[inference]\n\n[ckpt]\nkeep_last = {}\n", options.keep_last));
    notes.push(format!(
        "install the package {module} in prime-rl's environment, and fit [deployment], seq_len and lr to the machine"
    ));
    if options.filtering.is_some_and(|filtering| filtering.easy_threshold >= 1.0) {
        notes.push("with an easy threshold of 1 no example counts as easy".to_owned());
    }
    text
}

fn source(kind: &str, name: &str, module: &str) -> String {
    format!(
        "\n[[orchestrator.{kind}.source]]\nname = {}\nenv.taskset.id = {}\nenv.agent.harness.id = \"null\"\n\
         env.agent.runtime.type = \"subprocess\"\n",
        quoted(name),
        quoted(module),
    )
}

fn taskset(options: &TrainOptions, view: &View, split: &str, examples: Option<u32>) -> String {
    let arguments = options.arguments(view, split, examples);
    let lines: Vec<String> =
        arguments.iter().map(|(key, value)| format!("env.taskset.{key} = {value}\n")).collect();
    lines.concat()
}

/// A pool's threshold is the highest mean reward in it; thresholds must differ.
fn curriculum(filtering: &DifficultyFiltering) -> String {
    let mut pools = vec![("hard", filtering.hard_threshold, filtering.hard_fraction)];
    if filtering.easy_threshold < 1.0 {
        pools.push(("normal", filtering.easy_threshold, 1.0));
        pools.push(("easy", 1.0, filtering.easy_fraction));
    } else {
        pools.push(("normal", 1.0, 1.0));
    }
    let mut text = "curriculum.sampler.type = \"difficulty_pool\"\n".to_owned();
    for (name, threshold, weight) in pools {
        let pool = format!("curriculum.sampler.pools.{name}");
        text.push_str(&format!(
            "{pool}.threshold = {}\n{pool}.weight = {}\n",
            float(threshold),
            float(weight)
        ));
    }
    text.push_str(
        "curriculum.gates.no_signal.type = \"advantage_range\"\ncurriculum.gates.no_signal.reject_min = 0.0\n\
         curriculum.gates.no_signal.reject_max = 0.0\n",
    );
    text
}
