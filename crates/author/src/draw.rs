//! One draw: archetype, site, and a value for every quantity of a tier.

use std::collections::BTreeMap;

use aec_base::digest::Hasher;
use aec_judge::scorer;
use indexmap::IndexMap;
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng as _;

use crate::derive::derive;
use crate::grid::{index_below, round_to_figures};
use crate::params::ParamKind;
use crate::template::{Quantity, Template, Tier};
use crate::value::{Value, printed_number};

/// Identifies an instance of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Position {
    pub(crate) seed: i64,
    pub(crate) index: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Draw {
    pub(crate) archetype: String,
    pub(crate) site: String,
    /// Every parameter and every printed quantity, in the engine's units.
    pub(crate) values: IndexMap<String, Value>,
    /// What the prompt prints, in order.
    pub(crate) printed: IndexMap<String, Printed>,
}

/// A quantity as the prompt prints it.
#[derive(Clone, Debug)]
pub(crate) struct Printed {
    pub(crate) value: Value,
    pub(crate) unit: String,
}

impl Printed {
    /// Value and unit.
    pub(crate) fn text(&self) -> String {
        let value = self.value.printed();
        if self.unit.is_empty() { value } else { format!("{value} {}", self.unit) }
    }
}

impl Draw {
    /// All drawn values, for expressions.
    pub(crate) fn context(&self) -> BTreeMap<String, minijinja::Value> {
        self.values.iter().map(|(name, value)| (name.clone(), value.context())).collect()
    }

    /// The engine's arguments.
    pub(crate) fn arguments(&self, template: &Template) -> IndexMap<String, Value> {
        template
            .params
            .keys()
            .filter_map(|name| Some((name.clone(), self.values.get(name)?.clone())))
            .collect()
    }

    /// What a reader of the prompt sees; draws with the same identity are the same task.
    pub(crate) fn identity(&self) -> String {
        let shown: Vec<String> =
            self.printed.iter().map(|(name, printed)| format!("{name}={}", printed.text())).collect();
        shown.join("\n")
    }
}

/// Draws once. The same arguments give the same values on every machine; `number` counts the draws of one instance.
/// The error says why the draw is not usable.
pub(crate) fn draw(
    template: &Template,
    tier: &Tier,
    position: Position,
    number: u32,
) -> Result<Draw, String> {
    let mut random = generator(template, tier, position, number);
    let name = &tier.archetypes[index_below(&mut random, tier.archetypes.len())];
    let archetype = template.archetypes.get(name).ok_or_else(|| format!("there is no archetype `{name}`"))?;
    let site = match archetype.sites.len() {
        0 => name.replace(['-', '_'], " "),
        count => archetype.sites[index_below(&mut random, count)].clone(),
    };
    let mut values = IndexMap::new();
    let mut printed = IndexMap::new();
    for quantity_name in tier.printed(template) {
        let quantity = template
            .quantity(quantity_name)
            .ok_or_else(|| format!("there is no quantity `{quantity_name}`"))?;
        let value = if tier.off.iter().any(|off| off == quantity_name) {
            quantity.off.clone()
        } else {
            let limits = [archetype.limits.get(quantity_name), tier.limits.get(quantity_name)];
            limits
                .into_iter()
                .flatten()
                .fold(quantity.grid.clone(), |grid, limit| grid.within(limit))
                .draw(&mut random)
        };
        let value = value.ok_or_else(|| format!("no value of `{quantity_name}` is left"))?;
        let (value, as_printed) = match tier.units.get(quantity_name) {
            Some(unit) => in_unit(&value, quantity, unit)?,
            None => {
                let unit = quantity.unit.clone().unwrap_or_default();
                (value.clone(), Printed { value, unit })
            }
        };
        values.insert(quantity_name.to_owned(), value);
        printed.insert(quantity_name.to_owned(), as_printed);
    }
    let mut drawn = Draw { archetype: name.clone(), site, values, printed };
    derive(template, tier, archetype, &mut drawn)?;
    let context = drawn.context();
    for constraint in
        template.constraints.iter().filter(|constraint| is_about_inputs(template, constraint.names()))
    {
        // A constraint on a quantity that this tier does not have is not checked.
        let applies = constraint.names().iter().all(|name| context.contains_key(name));
        if applies && !constraint.holds(&context)? {
            return Err(format!("it breaks `{}`", constraint.text()));
        }
    }
    Ok(drawn)
}

/// Whether a constraint can be checked before the engine has run.
pub(crate) fn is_about_inputs(template: &Template, names: &[String]) -> bool {
    names.iter().all(|name| !template.outputs.contains_key(name))
}

fn generator(template: &Template, tier: &Tier, position: Position, number: u32) -> ChaCha12Rng {
    let mut hasher = Hasher::default();
    hasher.part(b"aec-bench instance");
    hasher.part(template.path().as_bytes());
    hasher.part(template.version.to_string().as_bytes());
    hasher.part(tier.name.as_bytes());
    hasher.part(&position.seed.to_le_bytes());
    hasher.part(&position.index.to_le_bytes());
    let mut random = ChaCha12Rng::from_seed(*hasher.finish().bytes());
    random.set_stream(number.into());
    random
}

/// Converts a value to another unit, rounded for the prompt, and returns the value that the rounded one means.
fn in_unit(value: &Value, quantity: &Quantity, unit: &str) -> Result<(Value, Printed), String> {
    // A value with more figures than people write was not on the grid: the conversion added them.
    const EXACT: usize = 12;
    const WRITTEN: usize = 6;
    const CONVERTED: usize = 4;
    let own = quantity.unit.as_deref().unwrap_or_default();
    let (Some(number), Some(factor), ParamKind::Float) =
        (value.number(), scorer::conversion(unit, own), quantity.kind)
    else {
        return Err(format!("a value cannot be printed in {unit}"));
    };
    let exact = round_to_figures(number / factor, EXACT);
    let figures =
        printed_number(exact).trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
    let shown = if figures <= WRITTEN { exact } else { round_to_figures(exact, CONVERTED) };
    let used = round_to_figures(shown * factor, 15);
    let printed = Printed { value: Value::Float(shown), unit: unit.to_owned() };
    Ok((Value::Float(used), printed))
}
