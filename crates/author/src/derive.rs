//! Values that are not drawn but derived from others by a rule, a table or the archetype.

use aec_base::text;

use crate::check::typed;
use crate::draw::Draw;
use crate::params::{LookupTable, Matching, ParamKind, Scalar};
use crate::template::{Archetype, Derivation, Template, Tier};
use crate::value::Value;

/// Adds the hidden parameters of a tier to a draw. Rules may need each other's results, in any order.
pub(crate) fn derive(
    template: &Template,
    tier: &Tier,
    archetype: &Archetype,
    draw: &mut Draw,
) -> Result<(), String> {
    let mut open: Vec<&String> = tier.derived.keys().collect();
    while !open.is_empty() {
        let mut left = Vec::new();
        for name in &open {
            match derived(template, tier, archetype, draw, name)? {
                Some(value) => {
                    draw.values.insert((*name).clone(), value);
                }
                None => left.push(*name),
            }
        }
        if left.len() == open.len() {
            return Err(format!("nothing says how to find `{}`", left[0]));
        }
        open = left;
    }
    Ok(())
}

/// A hidden value; `None` while the values that it needs are missing.
fn derived(
    template: &Template,
    tier: &Tier,
    archetype: &Archetype,
    draw: &Draw,
    name: &str,
) -> Result<Option<Value>, String> {
    let quantity = template.params.get(name).ok_or_else(|| format!("there is no parameter `{name}`"))?;
    match tier.derived.get(name) {
        Some(Derivation::Rule(rule)) => {
            if rule.names().iter().any(|name| !draw.values.contains_key(name)) {
                return Ok(None);
            }
            rule.number(&draw.context()).map(|number| Some(Value::Float(number)))
        }
        Some(Derivation::Table(table)) => {
            let table = template.tables.get(table).ok_or_else(|| format!("there is no table `{table}`"))?;
            let Some(key) = draw.values.get(&table.key) else { return Ok(None) };
            let cell = cell(table, key, name).ok_or_else(|| {
                format!(
                    "the table for `{name}` has no row for {} = {}",
                    table.key,
                    text::printable(&key.printed())
                )
            })?;
            Ok(typed(cell, quantity.kind))
        }
        Some(Derivation::Archetype) => {
            let limit =
                archetype.limits.get(name).ok_or_else(|| format!("the archetype does not fix `{name}`"))?;
            Ok(quantity.grid.within(limit).only())
        }
        None => Err(format!("`{name}` is not hidden")),
    }
}

/// The cell of a table in the row that `key` selects.
fn cell<'a>(table: &'a LookupTable, key: &Value, column: &str) -> Option<&'a Scalar> {
    let row = table.rows.iter().find(|row| match (row.get(&table.key), table.matching) {
        (Some(Scalar::Number(at)), Matching::UpTo) => key.number().is_some_and(|number| number <= *at),
        (Some(Scalar::Number(at)), Matching::Exact) => key.is_same(&Value::Float(*at)),
        (Some(at @ Scalar::Text(_)), _) => typed(at, ParamKind::Enum).is_some_and(|at| key.is_same(&at)),
        (None, _) => false,
    })?;
    row.get(column)
}
