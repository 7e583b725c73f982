//! Checks the tiers of a template. Problems of a tier make only that tier unusable.

use aec_base::problem::Problem;
use aec_base::text;
use aec_judge::scorer;
use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::check::Check;
use crate::expression::Expression;
use crate::params::{DeriveTable, Givens, OpenTable, ParamKind, TIER_KEYS, TierTable};
use crate::template::{Derivation, FAMILY, Template, Tier};

impl Check<'_> {
    pub(super) fn tiers(&mut self, template: &mut Template) {
        if self.file.difficulty.is_empty() {
            self.missing("difficulty");
        }
        for (name, table) in &self.file.difficulty {
            let key = format!("difficulty.{name}");
            if let Err(error) = aec_base::name::check(name) {
                self.bad_value(&key, format!("the name {error}"), "use letters, digits, `-` and `_`");
                continue;
            }
            let outside = std::mem::take(&mut self.problems);
            let tier = self.tier(template, name, &key, table);
            let own = std::mem::replace(&mut self.problems, outside);
            match tier {
                Some(mut tier) => {
                    tier.problems = own;
                    template.tiers.insert(name.clone(), tier);
                }
                None => self.problems.extend(own),
            }
        }
    }

    fn tier(&mut self, template: &Template, name: &str, key: &str, table: &OpenTable) -> Option<Tier> {
        let (own, limits) = self.split::<TierTable>(key, table, &TIER_KEYS)?;
        if own.description.trim().is_empty() {
            self.missing(&format!("{key}.description"));
        }
        let Some(givens) = own.visibility else {
            self.missing(&format!("{key}.visibility"));
            return None;
        };
        let archetypes =
            own.archetypes.clone().unwrap_or_else(|| template.archetypes.keys().cloned().collect());
        for archetype in archetypes.iter().filter(|name| !template.archetypes.contains_key(*name)) {
            let known: Vec<&str> = template.archetypes.keys().map(String::as_str).collect();
            self.unknown(&format!("{key}.archetypes"), "archetype", archetype, &known);
        }
        let outputs = own.outputs.clone().unwrap_or_else(|| template.outputs.keys().cloned().collect());
        for output in outputs.iter().filter(|name| !template.outputs.contains_key(*name)) {
            let known: Vec<&str> = template.outputs.keys().map(String::as_str).collect();
            self.unknown(&format!("{key}.outputs"), "output", output, &known);
        }
        if archetypes.is_empty() || outputs.is_empty() {
            self.bad_value(key, "a tier needs an archetype and an output", "name one, or leave the key out");
        }
        let mut tier = Tier {
            name: name.to_owned(),
            description: own.description.clone(),
            givens,
            problems: Vec::new(),
            outputs,
            archetypes,
            limits: IndexMap::new(),
            off: Vec::new(),
            derived: IndexMap::new(),
            units: own.units.clone(),
            auxiliary: Vec::new(),
            replacement_text: own.replacement_text.clone().filter(|text| !text.trim().is_empty()),
        };
        for (param, limit) in limits {
            self.tier_limit(template, key, &param, &limit, &mut tier);
        }
        self.derivations(template, key, &own, &mut tier);
        if !self.problems.is_empty() {
            return Some(tier);
        }
        self.circles(key, template, &tier);
        self.visibility(key, template, &tier);
        self.units(key, template, &tier);
        self.values_left(key, template, &tier);
        Some(tier)
    }

    fn tier_limit(&mut self, template: &Template, key: &str, param: &str, limit: &Json, tier: &mut Tier) {
        let at = format!("{key}.{param}");
        if *limit == Json::Bool(false) {
            // A prefix of names switches off all optional parameters that begin with it.
            let off: Vec<&String> = template
                .params
                .iter()
                .filter(|(name, quantity)| quantity.off.is_some() && name.starts_with(param))
                .map(|(name, _)| name)
                .collect();
            if off.is_empty() {
                let what = format!("no parameter `{}` can be switched off", text::printable(param));
                self.find(11, &at, what, "give the parameter a default, or `optional = true` and a max");
            }
            tier.off.extend(off.into_iter().cloned());
            return;
        }
        let Some(quantity) = template.quantity(param) else {
            let names = template.params.keys().chain(template.auxiliary.keys()).map(String::as_str);
            let known: Vec<&str> = names.chain(TIER_KEYS).collect();
            self.unknown(&at, "parameter", param, &known);
            return;
        };
        if let Some(limit) = self.limit(&at, quantity, limit) {
            tier.limits.insert(param.to_owned(), limit);
        }
    }

    /// Determines how each hidden parameter is derived, and which auxiliary quantities that needs.
    fn derivations(&mut self, template: &Template, key: &str, own: &TierTable, tier: &mut Tier) {
        let params: Vec<&str> = template.params.keys().map(String::as_str).collect();
        for name in own.derive.keys().chain(&own.hidden_params) {
            if !template.params.contains_key(name) {
                let table = if own.derive.contains_key(name) { "derive" } else { "hidden_params" };
                self.unknown(&format!("{key}.{table}"), "parameter", name, &params);
            }
        }
        // In the order of the parameters, so that the order of the rules does not affect the prompt.
        for (name, quantity) in &template.params {
            let hidden = own.derive.contains_key(name) || own.hidden_params.contains(name);
            if !hidden {
                continue;
            }
            let at = format!("{key}.derive.{name}");
            let derivation = match own.derive.get(name) {
                Some(table) => self.derivation(template, &at, name, table),
                None if quantity.from_archetype => self.fixed_by_archetypes(template, key, name, tier),
                None => {
                    let problem =
                        Problem::error(format!("`{name}` is hidden and nothing says how to find it"))
                            .id(FAMILY.number(20))
                            .why("the task could only be guessed")
                            .fix(format!(
                                "add `{name}` to [{key}.derive] with a rule or a table, or print it"
                            ))
                            .at(self.document.place(&format!("{key}.hidden_params")));
                    self.problems.push(problem);
                    None
                }
            };
            let Some(derivation) = derivation else { continue };
            let used: Vec<String> = match &derivation {
                Derivation::Rule(rule) => rule.names().to_vec(),
                Derivation::Table(table) => {
                    template.tables.get(table).map(|table| table.key.clone()).into_iter().collect()
                }
                Derivation::Archetype => Vec::new(),
            };
            for auxiliary in used.into_iter().filter(|name| template.auxiliary.contains_key(name)) {
                if !tier.auxiliary.contains(&auxiliary) {
                    tier.auxiliary.push(auxiliary);
                }
            }
            tier.derived.insert(name.clone(), derivation);
        }
        let order = |name: &String| template.auxiliary.get_index_of(name);
        tier.auxiliary.sort_by_key(order);
    }

    fn derivation(
        &mut self,
        template: &Template,
        at: &str,
        name: &str,
        table: &DeriveTable,
    ) -> Option<Derivation> {
        match (&table.rule, &table.table) {
            (Some(rule), None) => match Expression::parse(rule) {
                Err(error) => {
                    let what = format!("`{}` is not an expression: {error}", text::printable(rule));
                    self.find(16, at, what, "see docs/templates.md for what it may contain");
                    None
                }
                Ok(expression) => {
                    if template.params.get(name).is_some_and(|quantity| quantity.kind != ParamKind::Float) {
                        self.find(16, at, "a rule gives a number, so it is for a float", "use a table");
                    }
                    let unknown = expression.names().iter().find(|name| template.quantity(name).is_none());
                    if let Some(unknown) = unknown {
                        let names = template.params.keys().chain(template.auxiliary.keys());
                        let known: Vec<&str> = names.map(String::as_str).collect();
                        self.unknown(at, "quantity", unknown, &known);
                    }
                    Some(Derivation::Rule(expression))
                }
            },
            (None, Some(table_name)) => {
                let Some(table) = template.tables.get(table_name) else {
                    let known: Vec<&str> = template.tables.keys().map(String::as_str).collect();
                    self.unknown(at, "table", table_name, &known);
                    return None;
                };
                if !table.rows.first().is_some_and(|row| row.contains_key(name)) || table.key == name {
                    self.find(14, at, format!("the table `{table_name}` has no `{name}`"), "add the column");
                    return None;
                }
                Some(Derivation::Table(table_name.clone()))
            }
            _ => {
                self.bad_value(at, "a hidden parameter has a `rule` or a `table`", "write one of them");
                None
            }
        }
    }

    fn fixed_by_archetypes(
        &mut self,
        template: &Template,
        key: &str,
        name: &str,
        tier: &Tier,
    ) -> Option<Derivation> {
        let quantity = template.params.get(name)?;
        for archetype in
            tier.archetypes.iter().filter_map(|name| Some((name, template.archetypes.get(name)?)))
        {
            let fixed = archetype.1.limits.get(name).and_then(|limit| quantity.grid.within(limit).only());
            if fixed.is_none() {
                let problem =
                    Problem::error(format!("`{name}` is hidden and `{}` leaves it open", archetype.0))
                        .id(FAMILY.number(20))
                        .why("a range cannot be derived, only guessed")
                        .fix(format!(
                            "fix `{name}` to one value in the archetype, or give [{key}.derive] a rule"
                        ))
                        .at(self.document.place(&format!("archetypes.{}.{name}", archetype.0)));
                self.problems.push(problem);
                return None;
            }
        }
        Some(Derivation::Archetype)
    }

    fn circles(&mut self, key: &str, template: &Template, tier: &Tier) {
        let mut known: Vec<&str> = tier.printed(template).collect();
        let mut open: Vec<&String> = tier.derived.keys().collect();
        while !open.is_empty() {
            let ready = |name: &String| match tier.derived.get(name) {
                Some(Derivation::Rule(rule)) => {
                    rule.names().iter().all(|name| known.contains(&name.as_str()))
                }
                Some(Derivation::Table(table)) => {
                    template.tables.get(table).is_some_and(|table| known.contains(&table.key.as_str()))
                }
                _ => true,
            };
            let (done, left): (Vec<&String>, Vec<&String>) = open.iter().partition(|name| ready(name));
            if done.is_empty() {
                let what = format!("the rules for `{}` need each other", left[0]);
                self.find(
                    21,
                    &format!("{key}.derive"),
                    what,
                    "let one of them start from printed quantities",
                );
                return;
            }
            known.extend(done.into_iter().map(String::as_str));
            open = left;
        }
    }

    fn visibility(&mut self, key: &str, template: &Template, tier: &Tier) {
        let hidden = tier.derived.len();
        let sound = match tier.givens {
            Givens::AllGiven => hidden == 0,
            Givens::Partial => hidden > 0 && hidden < template.params.len(),
            Givens::ScenarioOnly => hidden == template.params.len(),
        };
        if !sound {
            let what = format!(
                "the tier hides {hidden} of {}, which is not `{}`",
                text::count(template.params.len(), "parameter"),
                tier.givens.name()
            );
            self.find(22, &format!("{key}.visibility"), what, "correct the visibility, or what is hidden");
        }
        if tier.derived.is_empty() && tier.replacement_text.is_some() {
            self.useless(&format!("{key}.replacement_text"), "nothing is hidden");
        }
    }

    fn units(&mut self, key: &str, template: &Template, tier: &Tier) {
        for (name, unit) in &tier.units {
            let at = format!("{key}.units.{name}");
            let Some(quantity) = template.quantity(name) else {
                let names = template.params.keys().chain(template.auxiliary.keys());
                let known: Vec<&str> = names.map(String::as_str).collect();
                self.unknown(&at, "quantity", name, &known);
                continue;
            };
            let printed = tier.printed(template).any(|printed| printed == name);
            let factor = quantity.unit.as_deref().and_then(|own| scorer::conversion(unit, own));
            if !printed {
                self.useless(&at, "the tier does not print it");
            } else if quantity.kind != ParamKind::Float {
                self.find(23, &at, "only a float can be printed in another unit", "remove it");
            } else if factor.is_none() {
                let own = quantity.unit.as_deref().unwrap_or("no unit");
                let what = format!("`{}` cannot be brought into {own}", text::printable(unit));
                self.find(23, &at, what, "use units of the same kind, without an offset");
            } else if quantity.unit.as_deref() == Some(unit) {
                self.useless(&at, "it is the quantity's own unit");
            }
        }
    }

    /// Checks that the limits of archetype and tier together leave a value for every printed quantity.
    fn values_left(&mut self, key: &str, template: &Template, tier: &Tier) {
        for archetype in
            tier.archetypes.iter().filter_map(|name| Some((name, template.archetypes.get(name)?)))
        {
            for name in tier.printed(template) {
                let Some(quantity) = template.quantity(name) else { continue };
                let limits = [archetype.1.limits.get(name), tier.limits.get(name)];
                let left = limits
                    .into_iter()
                    .flatten()
                    .fold(quantity.grid.clone(), |grid, limit| grid.within(limit));
                if left.is_empty() && !tier.off.iter().any(|off| off == name) {
                    let what = format!("no value of `{name}` is left for archetype `{}`", archetype.0);
                    self.find(15, &format!("{key}.{name}"), what, "widen one of the limits");
                }
            }
        }
        for name in tier.limits.keys().filter(|name| tier.derived.contains_key(*name)) {
            self.useless(&format!("{key}.{name}"), "the value is derived, not drawn");
        }
    }
}

impl Tier {
    /// Whether a hidden parameter is looked up in this table.
    pub(crate) fn uses_table(&self, table: &str) -> bool {
        self.derived.values().any(|derivation| matches!(derivation, Derivation::Table(used) if used == table))
    }
}
