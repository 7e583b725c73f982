//! `generate task`: some instances of one template.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::text;
use aec_task::file::Visibility;

use crate::engine::Engines;
use crate::generate::{GenerateError, Order};
use crate::params::ToolMode;
use crate::produce::{Destination, Production, produce};
use crate::template::{FAMILY, Template, Tier};

/// A request for instances of one template.
#[derive(Clone, Debug)]
pub struct TaskRequest {
    /// Tiers by name, used in turn; all of them if empty.
    pub difficulties: Vec<String>,
    pub instances: u32,
    pub seed: i64,
    /// Index of the first draw.
    pub start_index: u32,
    /// The template's default if absent.
    pub tool_mode: Option<ToolMode>,
    /// Who may see the tasks.
    pub visibility: Visibility,
    /// Output directory; the paths of tasks below it begin with the discipline.
    pub output: PathBuf,
    /// Whether existing tasks that differ may be replaced.
    pub replace: bool,
}

/// The orders of a request: tiers take turns, and indices increase.
pub fn orders<'a>(template: &'a Template, request: &TaskRequest) -> Result<Vec<Order<'a>>, Vec<Problem>> {
    let tiers: Vec<&Tier> = if request.difficulties.is_empty() {
        template.tiers.values().collect()
    } else {
        request.difficulties.iter().map(|name| tier(template, name)).collect::<Result<_, _>>()?
    };
    let problems: Vec<Problem> = tiers.iter().flat_map(|tier| tier.problems.iter().cloned()).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let tool_mode = request.tool_mode.unwrap_or_else(|| template.tool_modes.usual());
    if !template.tool_modes.allows(tool_mode) {
        let what = format!("`{}` makes no {} instances", template.path(), tool_mode.name());
        return Err(vec![template.problem(32, what).fix("leave out --tool-mode")]);
    }
    let last = request.start_index.checked_add(request.instances);
    if tiers.is_empty() || last.is_none() {
        return Err(vec![
            template.problem(32, "there is no such instance").fix("choose a lower --start-index"),
        ]);
    }
    Ok((0..request.instances)
        .zip(tiers.into_iter().cycle())
        .map(|(at, tier)| Order {
            template,
            tier,
            seed: request.seed,
            index: request.start_index + at,
            tool_mode,
            visibility: request.visibility,
        })
        .collect())
}

/// Makes and publishes the instances of a request.
pub fn make(
    engines: &Engines,
    template: &Template,
    request: &TaskRequest,
) -> Result<Production, GenerateError> {
    let orders = orders(template, request).map_err(GenerateError::Template)?;
    let inside = format!("{}/{}/{}", template.discipline, template.category, template.name);
    let destination =
        Destination { directory: request.output.join(&inside), extend: true, replace: request.replace };
    produce(engines, &orders, &destination, &inside, None, &|| ())
}

fn tier<'a>(template: &'a Template, name: &str) -> Result<&'a Tier, Vec<Problem>> {
    template.tiers.get(name).ok_or_else(|| {
        let known: Vec<&str> = template.tiers.keys().map(String::as_str).collect();
        let what = format!("`{}` has no tier `{}`", template.path(), text::printable(name));
        vec![
            Problem::error(what)
                .id(FAMILY.number(32))
                .fix(format!("choose {}", text::one_of(&known)))
                .about(template.path()),
        ]
    })
}
