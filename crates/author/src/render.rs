//! The prompt of an instance: the template's text with the values of one draw.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value as Json, context};

use crate::draw::Draw;
use crate::params::{Matching, Scalar, ToolMode};
use crate::template::{Derivation, Template, Tier};
use crate::value::{number_context, printed_number};

/// Most steps of rendering one prompt.
const FUEL: u64 = 1_000_000;

/// The prompt without the generator's additions. The author's text must contain everything that is printed.
pub(crate) fn instruction(
    template: &Template,
    tier: &Tier,
    draw: &Draw,
    mode: ToolMode,
) -> Result<String, String> {
    let source = template.file("instruction.md").unwrap_or_default();
    let archetype = template.archetypes.get(&draw.archetype).map(|found| found.description.as_str());
    let archetype = archetype.unwrap_or_default();
    let visible: Vec<Json> = draw
        .printed
        .iter()
        .map(|(name, printed)| {
            let description = template.quantity(name).map(|quantity| quantity.description.clone());
            context! { name, value => printed.value.context(), unit => printed.unit.clone(), description }
        })
        .collect();
    let outputs: Vec<Json> = tier
        .outputs
        .iter()
        .filter_map(|name| {
            let output = template.outputs.get(name)?;
            Some(context! { name, description => output.description.clone(), unit => output.unit.clone().unwrap_or_default() })
        })
        .collect();
    let named: BTreeMap<String, Json> =
        draw.printed.iter().map(|(name, printed)| (name.clone(), printed.value.context())).collect();
    let context = context! {
        givens => givens(template, draw),
        rules => rules(template, tier),
        visible_params => visible,
        outputs,
        archetype => context! { description => archetype, site_context => draw.site.clone(), name => draw.archetype.clone() },
        archetype_description => archetype,
        site_context => draw.site.clone(),
        difficulty => tier.name.clone(),
        tool_mode => mode.name(),
        tool_available => mode == ToolMode::WithTool,
        standards => template.standards.clone(),
        meta => context! {
            name => template.name.clone(), version => template.version.to_string(),
            description => template.description.clone(), long_description => template.long_description.clone(),
            discipline => template.discipline.clone(), category => template.category.clone(),
            standards => template.standards.clone(), tags => template.tags.clone(),
            tool_mode => template.tool_modes.name(),
        },
        ..Json::from(named)
    };
    let text = environment()
        .render_named_str("instruction.md", source, context)
        .map_err(|error| describe(&error))?;
    Ok(text)
}

/// The printed quantities and their values, as a table.
fn givens(template: &Template, draw: &Draw) -> String {
    let mut text = String::from("| quantity | name | value |\n|---|---|---|");
    for (name, printed) in &draw.printed {
        let description =
            template.quantity(name).map(|quantity| quantity.description.as_str()).unwrap_or_default();
        text.push_str(&format!("\n| {} | `{name}` | {} |", cell(description), cell(&printed.text())));
    }
    text
}

/// How the hidden parameters are derived.
pub(crate) fn rules(template: &Template, tier: &Tier) -> String {
    let mut blocks: Vec<String> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for (name, derivation) in &tier.derived {
        if let Derivation::Rule(rule) = derivation {
            let description = template.params.get(name).map(|quantity| quantity.description.as_str());
            lines.push(format!("- {}: `{name}` = `{}`", description.unwrap_or_default(), rule.text()));
        }
    }
    if !lines.is_empty() {
        blocks.push(lines.join("\n"));
    }
    for name in template.tables.keys().filter(|name| tier.uses_table(name)) {
        blocks.extend(lookup_table(template, name));
    }
    let by_archetype: Vec<&str> = tier
        .derived
        .iter()
        .filter(|(_, derivation)| matches!(derivation, Derivation::Archetype))
        .map(|(name, _)| name.as_str())
        .collect();
    if !by_archetype.is_empty() {
        blocks.push(archetype_table(template, tier, &by_archetype));
    }
    if let Some(replacement) = &tier.replacement_text {
        blocks.push(replacement.trim().to_owned());
    }
    blocks.join("\n\n")
}

fn lookup_table(template: &Template, name: &str) -> Option<String> {
    let table = template.tables.get(name)?;
    let columns: Vec<&String> = std::iter::once(&table.key)
        .chain(table.rows.first()?.keys().filter(|column| **column != table.key))
        .collect();
    let mut heads: Vec<String> = columns.iter().map(|column| heading(template, column)).collect();
    if table.matching == Matching::UpTo {
        heads[0].push_str(" up to");
    }
    let rows = table.rows.iter().map(|row| {
        columns
            .iter()
            .map(|column| match row.get(*column) {
                Some(Scalar::Number(number)) => printed_number(*number),
                Some(Scalar::Text(text)) => cell(text),
                None => String::new(),
            })
            .collect()
    });
    Some(format!("{}:\n\n{}", table.title.trim(), markdown(&heads, rows)))
}

fn archetype_table(template: &Template, tier: &Tier, names: &[&str]) -> String {
    let mut heads = vec!["situation".to_owned()];
    heads.extend(names.iter().map(|name| heading(template, name)));
    let rows = tier.archetypes.iter().filter_map(|archetype| {
        let archetype = template.archetypes.get(archetype)?;
        let mut cells = vec![cell(&archetype.description)];
        for name in names {
            let quantity = template.params.get(*name)?;
            let fixed = archetype.limits.get(*name).and_then(|limit| quantity.grid.within(limit).only())?;
            cells.push(cell(&fixed.printed()));
        }
        Some(cells)
    });
    markdown(&heads, rows)
}

/// A quantity's name and unit for the head of a column.
fn heading(template: &Template, name: &str) -> String {
    match template.quantity(name).and_then(|quantity| quantity.unit.as_deref()) {
        Some(unit) => format!("`{name}` ({})", cell(unit)),
        None => format!("`{name}`"),
    }
}

fn markdown(heads: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let mut lines = vec![line(heads), format!("|{}", "---|".repeat(heads.len()))];
    lines.extend(rows.map(|cells| line(&cells)));
    lines.join("\n")
}

/// Text that cannot break out of its table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The printed values that a rendered prompt does not contain.
pub(crate) fn unprinted<'a>(draw: &'a Draw, prompt: &str) -> Vec<&'a str> {
    let shown = |value: &crate::value::Value| {
        let exact = value.printed();
        // The number as an expression in the author's text renders it.
        let rendered = value.number().map(|number| number_context(number).to_string());
        prompt.contains(&exact) || rendered.is_some_and(|rendered| prompt.contains(&rendered))
    };
    draw.printed.iter().filter(|(_, printed)| !shown(&printed.value)).map(|(name, _)| name.as_str()).collect()
}

fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_fuel(Some(FUEL));
        if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
            environment.set_syntax(syntax);
        }
        environment
    })
}

fn describe(error: &minijinja::Error) -> String {
    let line = error.line().map(|line| format!("line {line}: ")).unwrap_or_default();
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{line}{}{detail}", error.kind())
}
