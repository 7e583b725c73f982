//! Turns a parsed `params.toml` into a template, and reports everything that is wrong or has no effect.

use std::collections::BTreeMap;
use std::path::Path;

use aec_base::decimal::Decimal;
use aec_base::digest::Digest;
use aec_base::document::{Document, Shared};
use aec_base::name;
use aec_base::problem::Problem;
use aec_base::text;
use indexmap::IndexMap;
use semver::Version;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::expression::{Expression, FUNCTIONS};
use crate::grid::{Grid, Limit};
use crate::params::{
    ARCHETYPE_KEYS, ArchetypeTable, FIRST_VERSION, Matching, OpenTable, OutputKind, ParamKind, ParamTable,
    ParamsFile, Scalar, TIER_KEYS, ToolModes,
};
use crate::template::{Archetype, FAMILY, Origin, Quantity, Template};
use crate::value::Value;

mod tiers;

/// Larger numbers are not exact.
const LARGEST: f64 = 1e15;
/// Names that prompts use for other things.
const RESERVED: [&str; 14] = [
    "givens",
    "rules",
    "visible_params",
    "outputs",
    "archetype",
    "archetype_description",
    "site_context",
    "difficulty",
    "tool_mode",
    "tool_available",
    "standards",
    "meta",
    "true",
    "false",
];

/// A check in progress: the file and the problems found so far.
struct Check<'a> {
    document: &'a Document,
    file: &'a ParamsFile,
    problems: Vec<Problem>,
}

/// Builds the template that a file describes, if possible, and reports all problems outside its tiers.
pub(crate) fn understand(
    document: &Document,
    file: &ParamsFile,
    files: BTreeMap<String, String>,
    origin: Origin,
    digest: Digest,
) -> (Option<Template>, Vec<Problem>) {
    let mut check = Check { document, file, problems: Vec::new() };
    let version = check.meta(&origin);
    let params = check.quantities("params", &file.params);
    let auxiliary = check.quantities("auxiliary", &file.auxiliary);
    check.names();
    check.tables(&params, &auxiliary);
    check.outputs();
    let archetypes = check.archetypes(&params, &auxiliary);
    let constraints = check.constraints();
    check.examples();
    let mut template = Template {
        name: file.meta.name.clone(),
        version,
        description: file.meta.description.clone(),
        long_description: file.meta.long_description.trim().to_owned(),
        discipline: file.meta.discipline.clone(),
        category: file.meta.category.clone(),
        standards: file.meta.standards.clone(),
        tags: file.meta.tags.clone(),
        tool_modes: file.meta.tool_mode.unwrap_or(ToolModes::Both),
        params,
        outputs: file.outputs.clone(),
        tiers: IndexMap::new(),
        origin,
        digest,
        examples: file.examples.clone(),
        archetypes,
        auxiliary,
        tables: file.tables.clone(),
        constraints,
        files,
    };
    if check.problems.is_empty() {
        check.tiers(&mut template);
        // Skip this if a tier is faulty: it might use what otherwise has no effect.
        if template.tiers.values().all(|tier| tier.problems.is_empty()) {
            check.without_effect(&template);
        }
    }
    let problems = check.problems;
    (problems.is_empty().then_some(template), problems)
}

impl Check<'_> {
    fn find(&mut self, number: u32, key: &str, what: impl Into<String>, fix: impl Into<String>) {
        let problem = Problem::error(what).id(FAMILY.number(number)).at(self.document.place(key));
        self.problems.push(problem.fix(fix));
    }

    fn bad_value(&mut self, key: &str, what: impl Into<String>, fix: impl Into<String>) {
        self.problems.push(self.document.problem(Shared::BadValue, key, what).fix(fix));
    }

    fn missing(&mut self, key: &str) {
        let problem = self.document.problem(Shared::MissingKey, key, format!("`{key}` is missing"));
        self.problems.push(problem.fix("add the key"));
    }

    fn unknown(&mut self, key: &str, what: &str, name: &str, known: &[&str]) {
        let fix = text::near_or(name, known.iter().copied(), "use one that is declared in this file");
        self.find(11, key, format!("there is no {what} `{}`", text::printable(name)), fix);
    }

    fn meta(&mut self, origin: &Origin) -> Version {
        let meta = &self.file.meta;
        for (key, value) in [
            ("meta.name", &meta.name),
            ("meta.description", &meta.description),
            ("meta.discipline", &meta.discipline),
            ("meta.category", &meta.category),
        ] {
            if value.trim().is_empty() {
                self.missing(key);
            }
        }
        if meta.tool_mode.is_none() {
            self.missing("meta.tool_mode");
        }
        for (key, value) in [
            ("meta.name", &meta.name),
            ("meta.discipline", &meta.discipline),
            ("meta.category", &meta.category),
        ] {
            if !value.trim().is_empty()
                && let Err(error) = name::check(value)
            {
                self.bad_value(key, format!("`{key}` {error}"), "use letters, digits, `-` and `_`");
            }
        }
        if let Origin::Directory(directory) = origin
            && let Some(last) = directory.file_name().and_then(|name| name.to_str())
            && !meta.name.is_empty()
            && last.replace('_', "-") != meta.name.replace('_', "-")
            && !last.starts_with('.')
            && !is_temporary(directory)
        {
            let what = format!("the template is called `{}`, its directory `{last}`", meta.name);
            self.find(12, "meta.name", what, "give both the same name");
        }
        let version = meta.version.as_deref().unwrap_or(FIRST_VERSION);
        Version::parse(version).unwrap_or_else(|error| {
            let what = format!("`{}` is not MAJOR.MINOR.PATCH: {error}", text::printable(version));
            self.bad_value("meta.version", what, "write a version such as 1.0.0");
            Version::new(1, 0, 0)
        })
    }

    fn quantities(
        &mut self,
        table: &str,
        tables: &IndexMap<String, ParamTable>,
    ) -> IndexMap<String, Quantity> {
        if table == "params" && tables.is_empty() {
            self.missing("params");
        }
        tables
            .iter()
            .filter_map(|(name, param)| {
                Some((name.clone(), self.quantity(&format!("{table}.{name}"), param)?))
            })
            .collect()
    }

    fn quantity(&mut self, key: &str, param: &ParamTable) -> Option<Quantity> {
        if param.description.trim().is_empty() {
            self.missing(&format!("{key}.description"));
        }
        let Some(kind) = param.kind else {
            self.missing(&format!("{key}.type"));
            return None;
        };
        if let Some(from) = &param.derivable_from
            && from != "archetype"
        {
            let what = format!("a value cannot be derived from `{}`", text::printable(from));
            self.bad_value(
                &format!("{key}.derivable_from"),
                what,
                "write \"archetype\", or give the tier a rule",
            );
        }
        let grid = self.grid(key, kind, param)?;
        let default = param.default.as_ref().and_then(|scalar| {
            let value = typed(scalar, kind);
            let inside = value
                .as_ref()
                .is_some_and(|value| !grid.within(&Limit::Among(vec![value.clone()])).is_empty());
            if !inside {
                self.bad_value(
                    &format!("{key}.default"),
                    "the usual value is not one of the values",
                    "correct either",
                );
            }
            value
        });
        let off = default.clone().or_else(|| param.optional.then(|| greatest(kind, param)).flatten());
        Some(Quantity {
            kind,
            description: param.description.trim().to_owned(),
            unit: param.unit.clone().filter(|unit| !unit.is_empty()),
            default,
            grid,
            off,
            from_archetype: param.derivable_from.is_some(),
        })
    }

    fn grid(&mut self, key: &str, kind: ParamKind, param: &ParamTable) -> Option<Grid> {
        let numbers = [("min", param.min), ("max", param.max), ("step", param.step)];
        for (name, number) in numbers {
            if number.is_some_and(|number| !number.is_finite() || number.abs() > LARGEST) {
                self.bad_value(&format!("{key}.{name}"), "the number is too large", "use another unit");
                return None;
            }
        }
        if let Some(values) = &param.values {
            let useless = numbers.iter().filter(|(_, number)| number.is_some()).map(|(name, _)| *name);
            let useless: Vec<&str> = useless.chain(param.sig.map(|_| "sig")).collect();
            if let [first, ..] = useless.as_slice() {
                self.useless(&format!("{key}.{first}"), "the values are listed");
            }
            let typed: Option<Vec<Value>> = values.iter().map(|value| typed(value, kind)).collect();
            let distinct = |values: &[Value]| {
                values
                    .iter()
                    .enumerate()
                    .all(|(at, value)| !values[..at].iter().any(|other| other.is_same(value)))
            };
            return match typed {
                Some(typed) if !typed.is_empty() && distinct(&typed) => Some(Grid::Among(typed)),
                _ => {
                    let what = "the values must be distinct and of the parameter's type";
                    self.bad_value(
                        &format!("{key}.values"),
                        what,
                        "write texts for an enum, numbers otherwise",
                    );
                    None
                }
            };
        }
        if kind == ParamKind::Enum {
            self.missing(&format!("{key}.values"));
            return None;
        }
        let (Some(min), Some(max)) = (param.min, param.max) else {
            self.missing(&format!("{key}.{}", if param.min.is_none() { "min" } else { "max" }));
            return None;
        };
        if min > max {
            self.bad_value(
                &format!("{key}.min"),
                format!("{min} is above the maximum, {max}"),
                "exchange them",
            );
            return None;
        }
        if param.step.is_some() && param.sig.is_some() {
            let problem =
                self.document.problem(Shared::Conflict, &format!("{key}.sig"), "both `step` and `sig`");
            self.problems.push(problem.fix("keep one of them"));
            return None;
        }
        let whole = kind == ParamKind::Int;
        if whole
            && [Some(min), Some(max), param.step].into_iter().flatten().any(|number| number.fract() != 0.0)
        {
            self.bad_value(key, "an int has whole limits and steps", "use whole numbers, or the type float");
            return None;
        }
        match (param.step, param.sig) {
            (Some(step), _) if step <= 0.0 => {
                self.bad_value(&format!("{key}.step"), "a step is above 0", "correct the step");
                None
            }
            (None, Some(figures)) if !(1..=9).contains(&figures) || whole => {
                self.bad_value(
                    &format!("{key}.sig"),
                    "a float has 1 to 9 significant figures",
                    "correct it, or use step",
                );
                None
            }
            (step, figures) if whole || step.is_some() => {
                debug_assert!(figures.is_none());
                let [Some(low), Some(high), Some(step)] = [min, max, step.unwrap_or(1.0)].map(Decimal::of)
                else {
                    self.bad_value(key, "limits and steps are finite", "use finite numbers");
                    return None;
                };
                Some(Grid::Step { base: low.clone(), step, min: low, max: high, whole })
            }
            (_, figures) => {
                let grid = Grid::Figures { min, max, figures: figures.unwrap_or(3) as usize };
                if grid.is_empty() {
                    let what = "no number with this many figures is between the limits";
                    self.bad_value(&format!("{key}.sig"), what, "allow more figures");
                    return None;
                }
                Some(grid)
            }
        }
    }

    fn names(&mut self) {
        let file = self.file;
        let lower = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let tables = [("params", file.params.keys()), ("auxiliary", file.auxiliary.keys())];
        let all: Vec<(String, &String)> = tables
            .into_iter()
            .flat_map(|(table, keys)| keys.map(move |name| (format!("{table}.{name}"), name)))
            .chain(file.outputs.keys().map(|name| (format!("outputs.{name}"), name)))
            .collect();
        for (at, (key, name)) in all.iter().enumerate() {
            if !lower(name) {
                let what = format!("`{}` is not a name", text::printable(name));
                self.bad_value(key, what, "use lower-case letters, digits and `_`: length_m");
            } else if RESERVED.contains(&name.as_str())
                || FUNCTIONS.contains(&name.as_str())
                || TIER_KEYS.contains(&name.as_str())
                || ARCHETYPE_KEYS.contains(&name.as_str())
            {
                self.find(13, key, format!("the name `{name}` means something else"), "choose another name");
            } else if all[..at].iter().any(|(_, other)| other == name) {
                self.find(
                    13,
                    key,
                    format!("`{name}` is there twice"),
                    "give inputs and outputs different names",
                );
            }
        }
    }

    fn tables(&mut self, params: &IndexMap<String, Quantity>, auxiliary: &IndexMap<String, Quantity>) {
        let quantity = |name: &str| params.get(name).or_else(|| auxiliary.get(name));
        for (name, table) in &self.file.tables {
            let key = format!("tables.{name}");
            if table.title.trim().is_empty() {
                self.missing(&format!("{key}.title"));
            }
            let Some(chooser) = quantity(&table.key) else {
                let known: Vec<&str> = params.keys().chain(auxiliary.keys()).map(String::as_str).collect();
                self.unknown(&format!("{key}.key"), "quantity", &table.key, &known);
                continue;
            };
            let columns: Vec<&String> =
                table.rows.first().map(|row| row.keys().collect()).unwrap_or_default();
            let mut fault = None;
            let mut keys: Vec<Value> = Vec::new();
            for row in &table.rows {
                if row.len() != columns.len() || !columns.iter().all(|column| row.contains_key(*column)) {
                    fault = Some("every row has the same quantities".to_owned());
                }
                match row.get(&table.key).and_then(|cell| typed(cell, chooser.kind)) {
                    Some(value) => keys.push(value),
                    None => fault = Some(format!("every row has a value of `{}`, of its type", table.key)),
                }
                for (column, cell) in row.iter().filter(|(column, _)| **column != table.key) {
                    match quantity(column) {
                        None => fault = Some(format!("there is no quantity `{}`", text::printable(column))),
                        Some(quantity) if typed(cell, quantity.kind).is_none() => {
                            fault = Some(format!("a value of `{column}` has the wrong type"));
                        }
                        Some(_) => {}
                    }
                }
            }
            if columns.len() < 2 {
                fault = Some("a table needs rows with the key and at least one other quantity".to_owned());
            }
            let ascending = |pair: &[Value]| match (pair[0].number(), pair[1].number()) {
                (Some(one), Some(other)) => one < other,
                _ => false,
            };
            let repeated = keys
                .iter()
                .enumerate()
                .any(|(at, value)| keys[..at].iter().any(|other| other.is_same(value)));
            if table.matching == Matching::UpTo && !keys.windows(2).all(ascending) {
                fault = Some("the keys must be numbers in ascending order".to_owned());
            } else if repeated {
                fault = Some("two rows have the same key".to_owned());
            }
            if let Some(fault) = fault {
                self.find(14, &key, fault, "correct the rows");
            }
        }
    }

    fn outputs(&mut self) {
        if self.file.outputs.is_empty() {
            self.missing("outputs");
        }
        for (name, output) in &self.file.outputs {
            let key = format!("outputs.{name}");
            if output.description.trim().is_empty() {
                self.missing(&format!("{key}.description"));
            }
            let kind = output.kind.unwrap_or_default();
            let number = kind == OutputKind::Number;
            let useless = [
                ("unit", output.unit.is_some() && !number && kind != OutputKind::Integer),
                ("unit_words", output.unit_words.is_some() && !number && kind != OutputKind::Integer),
                ("difference", output.difference.is_some() && !number),
                ("tolerance", output.tolerance.is_some() && !number),
                ("abs_tol", output.abs_tol.is_some() && !number),
                ("sig", output.sig.is_some() && !number),
                ("values", output.values.is_some() && kind != OutputKind::Choice),
                ("aliases", output.aliases.is_some() && kind != OutputKind::Choice),
                ("item", output.item.is_some() && kind != OutputKind::List),
                ("ordered", output.ordered.is_some() && kind != OutputKind::List),
                ("key", output.key.is_some() && kind != OutputKind::Table),
                ("columns", output.columns.is_some() && kind != OutputKind::Table),
            ];
            for (own, _) in useless.iter().filter(|(_, useless)| *useless) {
                self.useless(&format!("{key}.{own}"), "an output of this type does not have it");
            }
        }
    }

    fn archetypes(
        &mut self,
        params: &IndexMap<String, Quantity>,
        auxiliary: &IndexMap<String, Quantity>,
    ) -> IndexMap<String, Archetype> {
        if self.file.archetypes.is_empty() {
            self.missing("archetypes");
        }
        let mut archetypes = IndexMap::new();
        for (name, table) in &self.file.archetypes {
            let key = format!("archetypes.{name}");
            if let Err(error) = name::check(name) {
                self.bad_value(&key, format!("the name {error}"), "use letters, digits, `-` and `_`");
            }
            let Some((own, limits)) = self.split::<ArchetypeTable>(&key, table, &ARCHETYPE_KEYS) else {
                continue;
            };
            if own.description.trim().is_empty() {
                self.missing(&format!("{key}.description"));
            }
            let mut understood = IndexMap::new();
            for (param, limit) in limits {
                let at = format!("{key}.{param}");
                let Some(quantity) = params.get(&param).or_else(|| auxiliary.get(&param)) else {
                    let known: Vec<&str> = params
                        .keys()
                        .chain(auxiliary.keys())
                        .map(String::as_str)
                        .chain(ARCHETYPE_KEYS)
                        .collect();
                    self.unknown(&at, "parameter", &param, &known);
                    continue;
                };
                if let Some(limit) = self.limit(&at, quantity, &limit) {
                    understood.insert(param, limit);
                }
            }
            archetypes.insert(
                name.clone(),
                Archetype { description: own.description, sites: own.site_contexts, limits: understood },
            );
        }
        archetypes
    }

    /// Splits a table into its own keys, decoded, and the others, which are names of parameters.
    fn split<T: DeserializeOwned>(
        &mut self,
        key: &str,
        table: &OpenTable,
        own: &[&str],
    ) -> Option<(T, Vec<(String, Json)>)> {
        let (mine, others): (Vec<_>, Vec<_>) = table
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .partition(|(key, _)| own.contains(&key.as_str()));
        match serde_json::from_value(Json::Object(mine.into_iter().collect())) {
            Ok(decoded) => Some((decoded, others)),
            Err(error) => {
                let problem = self.document.problem(Shared::WrongType, key, format!("in `{key}`: {error}"));
                self.problems.push(problem.fix("see docs/templates.md for its keys"));
                None
            }
        }
    }

    /// Parses a limit of a parameter: a range, a list, or one value.
    fn limit(&mut self, key: &str, quantity: &Quantity, limit: &Json) -> Option<Limit> {
        let understood = match limit {
            Json::Object(range) if range.len() == 2 => {
                match (range.get("min").and_then(Json::as_f64), range.get("max").and_then(Json::as_f64)) {
                    (Some(min), Some(max)) if min <= max => Some(Limit::Range { min, max }),
                    _ => None,
                }
            }
            Json::Array(values) => {
                let values: Option<Vec<Value>> =
                    values.iter().map(|value| of_json(value, quantity.kind)).collect();
                values.filter(|values| !values.is_empty()).map(Limit::Among)
            }
            single => of_json(single, quantity.kind).map(|value| Limit::Among(vec![value])),
        };
        let Some(understood) = understood else {
            self.bad_value(
                key,
                "this is not a limit of the parameter",
                "write { min = …, max = … }, a list of values, or one value",
            );
            return None;
        };
        let left = quantity.grid.within(&understood);
        let lost = match (&understood, &left) {
            (Limit::Among(asked), Grid::Among(left)) => left.len() < asked.len(),
            _ => left.is_empty(),
        };
        if lost {
            self.find(
                15,
                key,
                "the limit is outside the parameter's values",
                "widen the parameter or narrow the limit",
            );
            return None;
        }
        Some(understood)
    }

    fn constraints(&mut self) -> Vec<Expression> {
        let file = self.file;
        let mut understood = Vec::new();
        for rule in &file.constraints.rules {
            let known = |name: &String| {
                file.params.contains_key(name)
                    || file.auxiliary.contains_key(name)
                    || file.outputs.contains_key(name)
            };
            match Expression::parse(rule) {
                Err(error) => {
                    let what = format!("`{}` is not an expression: {error}", text::printable(rule));
                    self.find(16, "constraints", what, "see docs/templates.md for what it may contain");
                }
                Ok(expression) => match expression.names().iter().find(|name| !known(name)) {
                    Some(name) => {
                        let all = file.params.keys().chain(file.auxiliary.keys()).chain(file.outputs.keys());
                        let known: Vec<&str> = all.map(String::as_str).collect();
                        self.unknown("constraints", "quantity", name, &known);
                    }
                    None => understood.push(expression),
                },
            }
        }
        understood
    }

    fn examples(&mut self) {
        let file = self.file;
        for (at, example) in file.examples.iter().enumerate() {
            let mut fault = |what: String, fix: &str| {
                let place = self.document.place_in_list("examples", at);
                let problem = Problem::error(format!("example {}: {what}", at + 1)).id(FAMILY.number(17));
                self.problems.push(problem.fix(fix).at(place));
            };
            if example.source.trim().is_empty() {
                fault(
                    "its source is missing".to_owned(),
                    "name the text, or write \"derived\" and the method",
                );
            }
            if example.source == "derived" && example.method.as_deref().unwrap_or_default().trim().is_empty()
            {
                fault(
                    "how it was derived is missing".to_owned(),
                    "describe the method, which is not the engine's",
                );
            }
            for name in file.params.keys().filter(|name| !example.inputs.contains_key(*name)) {
                fault(format!("the input `{name}` is missing"), "give every parameter");
            }
            for (name, value) in &example.inputs {
                let kind = file.params.get(name).and_then(|param| param.kind);
                if kind.is_none_or(|kind| typed(value, kind).is_none()) {
                    fault(format!("`{name}` is no parameter of this type"), "correct the name or the value");
                }
            }
            for name in example.outputs.keys().filter(|name| !file.outputs.contains_key(*name)) {
                fault(format!("there is no output `{name}`"), "correct the name");
            }
            if example.outputs.is_empty() {
                fault("it has no outputs".to_owned(), "give the figures of the source");
            }
            if example.tolerance.is_some_and(|tolerance| !(0.0..=0.1).contains(&tolerance)) {
                fault("its tolerance is not from 0 to 0.1".to_owned(), "correct the tolerance");
            }
        }
    }

    fn useless(&mut self, key: &str, why: &str) {
        let problem = Problem::error(format!("`{key}` has no effect")).id(FAMILY.number(18)).why(why);
        self.problems.push(problem.fix("remove it, or use it").at(self.document.place(key)));
    }

    /// Reports what nothing uses.
    fn without_effect(&mut self, template: &Template) {
        let tiers = || template.tiers.values();
        for name in self.file.archetypes.keys() {
            if !tiers().any(|tier| tier.archetypes.contains(name)) {
                self.useless(&format!("archetypes.{name}"), "no tier draws it");
            }
        }
        for name in self.file.auxiliary.keys() {
            if !tiers().any(|tier| tier.auxiliary.contains(name)) {
                self.useless(&format!("auxiliary.{name}"), "no rule or table of a tier uses it");
            }
        }
        for name in self.file.tables.keys() {
            if !tiers().any(|tier| tier.uses_table(name)) {
                self.useless(&format!("tables.{name}"), "no tier looks anything up in it");
            }
        }
        for name in self.file.outputs.keys() {
            if !tiers().any(|tier| tier.outputs.contains(name))
                && !template.constraints.iter().any(|constraint| constraint.names().contains(name))
            {
                self.useless(&format!("outputs.{name}"), "no tier asks for it");
            }
        }
        for (name, param) in &self.file.params {
            if param.optional && !tiers().any(|tier| tier.off.contains(name)) {
                self.useless(&format!("params.{name}.optional"), "no tier switches it off");
            }
            let hidden = tiers().any(|tier| tier.derived.contains_key(name));
            if param.derivable_from.is_some() && !hidden {
                self.useless(&format!("params.{name}.derivable_from"), "no tier hides it");
            }
        }
    }
}

/// Converts a scalar to a value of the given type.
pub(crate) fn typed(scalar: &Scalar, kind: ParamKind) -> Option<Value> {
    match (scalar, kind) {
        (Scalar::Text(text), ParamKind::Enum) => Some(Value::Text(text.clone())),
        (Scalar::Number(number), ParamKind::Float) if number.is_finite() && number.abs() <= LARGEST => {
            Some(Value::Float(*number))
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole and bounded just before")]
        (Scalar::Number(number), ParamKind::Int) if number.fract() == 0.0 && number.abs() <= LARGEST => {
            Some(Value::Int(*number as i64))
        }
        _ => None,
    }
}

fn of_json(value: &Json, kind: ParamKind) -> Option<Value> {
    match value {
        Json::Number(number) => typed(&Scalar::Number(number.as_f64()?), kind),
        Json::String(text) => typed(&Scalar::Text(text.clone()), kind),
        _ => None,
    }
}

fn greatest(kind: ParamKind, param: &ParamTable) -> Option<Value> {
    typed(&Scalar::Number(param.max?), kind)
}

/// Archived templates are in directories named by their digest.
fn is_temporary(directory: &Path) -> bool {
    directory.components().any(|part| part.as_os_str() == ".generation")
}
