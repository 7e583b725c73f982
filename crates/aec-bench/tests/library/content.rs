//! The content of the library, and the promises of each template.

use std::collections::BTreeMap;

use aec_author::params::{Givens, OutputKind, ToolModes};
use aec_author::template::Template;

use crate::library::{directory, library};

const DISCIPLINES: [&str; 6] = ["civil", "electrical", "ground", "maritime", "mechanical", "structural"];

/// Whether reading files is part of the task.
pub(crate) fn is_workspace(template: &Template) -> bool {
    directory().join(template.path()).join("solution/solve.py").is_file()
}

#[test]
fn ten_calculations_and_a_workspace_task_in_each_discipline() {
    let library = library();
    for discipline in DISCIPLINES {
        let of: Vec<&Template> =
            library.templates.iter().filter(|template| template.discipline == discipline).collect();
        let workspace = of.iter().filter(|template| is_workspace(template)).count();
        assert!(of.len() - workspace >= 10, "{discipline}: {}", of.len() - workspace);
        assert!(workspace >= 1, "{discipline}");
    }
    for name in [
        "voltage-drop",
        "cable-sizing",
        "short-circuit-current",
        "retaining-wall-stability",
        "terzaghi-bearing-capacity",
        "bolt-group-loading",
        "heat-load",
        "pump-power-npsh",
        "mannings-pipe-capacity",
        "berthing-energy",
    ] {
        assert!(library.find(name).is_ok(), "{name}");
    }
}

#[test]
fn every_template_has_tiers_archetypes_examples_and_sound_tolerances() {
    let mut hard_levels: BTreeMap<&str, usize> = BTreeMap::new();
    let library = library();
    for template in &library.templates {
        let name = template.path();
        let tiers: Vec<&str> = template.tiers.keys().map(String::as_str).collect();
        assert_eq!(tiers, ["easy", "medium", "hard"], "{name}");
        assert!(template.tiers.values().all(|tier| tier.problems.is_empty()), "{name}");
        assert_eq!(template.tiers["easy"].givens, Givens::AllGiven, "{name}");
        *hard_levels.entry(template.tiers["hard"].givens.name()).or_default() += 1;
        assert!(template.archetypes.len() >= 2, "{name}");
        assert!(template.examples.len() >= 2, "{name}");
        for example in &template.examples {
            assert!(example.source != "derived" || example.method.is_some(), "{name}");
        }
        let expected = if is_workspace(template) { ToolModes::NoTool } else { ToolModes::Both };
        assert_eq!(template.tool_modes, expected, "{name}");
        for (output, spec) in &template.outputs {
            let number = spec.kind.unwrap_or_default() == OutputKind::Number;
            assert!(!number || spec.tolerance.is_none_or(|tolerance| tolerance <= 0.03), "{name}: {output}");
        }
        // Names end with their unit, so that the reader of the proof knows what they mean.
        for (quantity, spec) in &template.params {
            if let Some(unit) = &spec.unit {
                let suffix =
                    unit.to_lowercase().replace('/', "_per_").replace('.', "_").replace('%', "percent");
                assert!(quantity.ends_with(&format!("_{suffix}")), "{name}: {quantity} in {unit}");
            }
        }
    }
    // Mixes of suites need both kinds.
    assert!(hard_levels["all_given"] >= 18 && hard_levels["partial"] >= 30, "{hard_levels:?}");
}
