//! The files of one instance: a self-contained task.

use std::collections::BTreeMap;

use aec_base::digest::Digest;
use aec_judge::scorer::{self, Answers, STANDARD_VERIFY_PY};
use aec_task::dataset::hash::{HashedFile, task_hash};
use aec_task::file::Visibility;
use aec_task::task::primary_output;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::draw::{Draw, Position};
use crate::floor::relative;
use crate::params::{CellTable, OutputKind, OutputTable, ParamKind, ToolMode};
use crate::render;
use crate::template::{LONG_DOCUMENTS, Template, Tier};
use crate::value::Value;

const TOOL_PY: &str = include_str!("../../../python/tool.py");
const TEST_SH: &str =
    "#!/usr/bin/env bash\nset -euo pipefail\nexec python3 -I \"$(dirname \"$0\")/verify.py\"\n";

/// The files of a task by path; scripts are executable.
pub type Files = BTreeMap<String, String>;

#[derive(Debug)]
pub(crate) struct Recipe<'a> {
    pub(crate) template: &'a Template,
    pub(crate) tier: &'a Tier,
    pub(crate) position: Position,
    pub(crate) mode: ToolMode,
    pub(crate) visibility: Visibility,
}

/// The engine's results for a draw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Computed {
    pub(crate) answers: Map<String, Json>,
    pub(crate) sources: BTreeMap<String, String>,
    pub(crate) golden_pass: Option<String>,
    pub(crate) golden_fail: Option<String>,
}

impl Recipe<'_> {
    pub(crate) fn name(&self, draw: &Draw) -> String {
        let seed = self.position.seed;
        let seed = if seed < 0 { format!("n{}", seed.unsigned_abs()) } else { seed.to_string() };
        format!("{}-{}-{seed}-{:03}", slug(&draw.site), self.tier.name, self.position.index)
    }

    /// The task's path below the output directory.
    pub(crate) fn path(&self, draw: &Draw) -> String {
        let template = self.template;
        format!("{}/{}/{}/{}", template.discipline, template.category, template.name, self.name(draw))
    }

    /// The prompt as the author wrote it, without the generator's additions.
    pub(crate) fn prompt(&self, draw: &Draw) -> Result<String, String> {
        render::instruction(self.template, self.tier, draw, self.mode)
    }

    /// Every file of the task.
    pub(crate) fn files(&self, draw: &Draw, computed: &Computed, prompt: &str) -> Result<Files, String> {
        let mut files = Files::new();
        let own_verifier = self.template.file("verify.py");
        let mut instruction = prompt.trim_end().to_owned();
        let named = primary_output(&instruction);
        let output = if instruction.contains("/workspace/") {
            named.strip_prefix("/workspace/").unwrap_or("output.json").to_owned()
        } else {
            "output.json".to_owned()
        };
        if self.mode == ToolMode::WithTool {
            instruction.push_str(&self.tool_section());
            let tool = self.tool()?;
            files.insert(self.tool_path(), tool);
        }
        match own_verifier {
            Some(source) => {
                files.insert("tests/verify.py".into(), source.to_owned());
                let values: IndexMap<&String, &Value> = draw.values.iter().collect();
                let instance = json!({"parameters": values, "ground_truth": computed.answers});
                files.insert("tests/instance.json".into(), pretty(&instance));
                if self.mode == ToolMode::WithTool {
                    // The last path in an instruction is the one for the answer.
                    instruction
                        .push_str(&format!("\n\n## Answer\n\nYour answer goes to `/workspace/{output}`."));
                }
            }
            None => {
                let sheet = answers_file(self.template, self.tier, &output, &computed.answers)?;
                let answers = Answers::parse(sheet.as_bytes()).map_err(|error| error.to_string())?;
                instruction.push_str("\n\n## Answer\n\n");
                instruction.push_str(scorer::contract(&answers).trim_end());
                files.insert("tests/verify.py".into(), STANDARD_VERIFY_PY.to_owned());
                files.insert("tests/answers.json".into(), sheet);
            }
        }
        instruction.push('\n');
        files.insert("instruction.md".into(), instruction);
        files.insert("tests/test.sh".into(), TEST_SH.to_owned());
        files.insert("task.toml".into(), self.task_toml(draw)?);
        let asked: Map<String, Json> = self
            .tier
            .outputs
            .iter()
            .filter_map(|name| Some((name.clone(), computed.answers.get(name)?.clone())))
            .collect();
        self.fixtures(&mut files, &asked, computed, &output);
        for (path, text) in &computed.sources {
            files.insert(format!("environment/{path}"), text.clone());
        }
        for name in ["system_prompt.md", "output_contract.json"] {
            if let Some(text) = self.template.file(name) {
                files.insert(format!("environment/{name}"), text.to_owned());
            }
        }
        for name in LONG_DOCUMENTS {
            if let Some(text) = self.template.file(name) {
                files.insert(name.to_owned(), text.to_owned());
            }
        }
        let copies: String = files
            .keys()
            .filter_map(|path| path.strip_prefix("environment/"))
            .fold(String::new(), |copies, path| copies + &format!("COPY {path} /workspace/{path}\n"));
        let dockerfile = format!("FROM python:3.12-slim\nWORKDIR /workspace\n{copies}");
        files.insert("environment/Dockerfile".into(), dockerfile);
        Ok(files)
    }

    fn fixtures(&self, files: &mut Files, asked: &Map<String, Json>, computed: &Computed, output: &str) {
        let golden = pretty(&Json::Object(asked.clone()));
        match &computed.golden_pass {
            Some(text) => files.insert("tests/fixtures/golden_pass.md".into(), text.clone()),
            None => files.insert("tests/fixtures/golden_pass.json".into(), golden.clone()),
        };
        match &computed.golden_fail {
            Some(text) => files.insert("tests/fixtures/golden_fail.md".into(), text.clone()),
            None => files.insert(
                "tests/fixtures/golden_fail.json".into(),
                pretty(&Json::Object(wrong(self.template, asked))),
            ),
        };
        let own: Vec<(&String, &String)> =
            self.template.files.iter().filter(|(name, _)| name.starts_with("solution/")).collect();
        for (name, text) in &own {
            files.insert((*name).clone(), (*text).clone());
        }
        if own.iter().any(|(name, _)| *name == "solution/solve.sh") {
            return;
        }
        let work = if own.iter().any(|(name, _)| *name == "solution/solve.py") {
            "cd /workspace\nexec python3 -I \"$(dirname \"$(realpath \"$0\")\")/solve.py\"\n".to_owned()
        } else {
            format!("cat > /workspace/{output} <<'ANSWER'\n{golden}ANSWER\n")
        };
        let script =
            format!("#!/usr/bin/env bash\n# Reference solution of this instance.\nset -euo pipefail\n{work}");
        files.insert("solution/solve.sh".into(), script);
    }

    fn task_toml(&self, draw: &Draw) -> Result<String, String> {
        let template = self.template;
        let known = aec_task::file::Difficulty::parse(&self.tier.name);
        let mut tags = template.tags.clone();
        tags.push(self.mode.name().to_owned());
        let task = TaskToml {
            version: "1.0",
            metadata: MetadataToml {
                difficulty: known.map_or("medium", aec_task::file::Difficulty::name),
                generation_difficulty: known.is_none().then_some(&self.tier.name),
                visibility: self.visibility.name(),
                category: &template.category,
                domain: &template.discipline,
                standard: template.standards.first(),
                tags,
            },
            agent: json!({"timeout_sec": 600.0}),
            verifier: json!({"timeout_sec": 120.0}),
            environment: EnvironmentToml {
                cpus: 1,
                memory_mb: 2048,
                storage_mb: 1024,
                allow_internet: false,
                tools: (self.mode == ToolMode::WithTool).then(|| {
                    vec![ToolToml {
                        name: format!("{}-calculator", template.name),
                        source: self.tool_path(),
                        description: &template.description,
                    }]
                }),
            },
            generation: GenerationToml {
                origin: "template",
                template: template.path(),
                template_version: template.version.to_string(),
                seed: self.position.seed,
                index: self.position.index,
                difficulty: &self.tier.name,
                visibility_level: self.tier.givens.name(),
                tool_mode: self.mode.name(),
                archetype: &draw.archetype,
                site_context: &draw.site,
            },
        };
        toml::to_string(&task).map_err(|error| error.to_string())
    }

    fn tool_path(&self) -> String {
        format!("tools/{}_calc.py", self.template.name.replace('-', "_"))
    }

    fn tool_section(&self) -> String {
        format!(
            "\n\n## Calculator\n\n`python3 /workspace/{path}` does this calculation for inputs in the units of their \
             names. `--help`\nlists its inputs; it takes them as flags or as one JSON object (`--json`) and prints one \
             JSON object.",
            path = self.tool_path()
        )
    }

    /// The calculator: the engine with a command line.
    fn tool(&self) -> Result<String, String> {
        let template = self.template;
        let params: Vec<Json> = template
            .params
            .iter()
            .map(|(name, quantity)| {
                let (kind, values) = match (quantity.kind, &quantity.grid) {
                    (ParamKind::Enum, crate::grid::Grid::Among(values)) => ("enum", Some(values)),
                    (ParamKind::Int, _) => ("int", None),
                    _ => ("float", None),
                };
                json!({
                    "name": name, "type": kind, "description": quantity.description, "unit": quantity.unit,
                    "values": values, "default": quantity.default.as_ref().map(Value::printed),
                })
            })
            .collect();
        let outputs: Vec<String> = template
            .outputs
            .iter()
            .map(|(name, output)| match &output.unit {
                Some(unit) => format!("{name} [{unit}]"),
                None => name.clone(),
            })
            .collect();
        let spec = json!({
            "description": template.description,
            "epilog": format!("Prints a JSON object with {}.", outputs.join(", ")),
            "params": params,
            "modules": template.modules(),
        });
        let spec = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
        // JSON text is also a Python literal.
        let literal = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
        let title = template.description.replace(['"', '\\'], "'");
        Ok(TOOL_PY.replace("@TITLE@", &format!("{title}.")).replace("@SPEC@", &literal))
    }
}

#[derive(Serialize)]
struct TaskToml<'a> {
    version: &'static str,
    metadata: MetadataToml<'a>,
    agent: Json,
    verifier: Json,
    environment: EnvironmentToml<'a>,
    generation: GenerationToml<'a>,
}

#[derive(Serialize)]
struct MetadataToml<'a> {
    difficulty: &'static str,
    generation_difficulty: Option<&'a String>,
    visibility: &'static str,
    category: &'a str,
    domain: &'a str,
    standard: Option<&'a String>,
    tags: Vec<String>,
}

#[derive(Serialize)]
struct EnvironmentToml<'a> {
    cpus: u32,
    memory_mb: u32,
    storage_mb: u32,
    allow_internet: bool,
    tools: Option<Vec<ToolToml<'a>>>,
}

#[derive(Serialize)]
struct ToolToml<'a> {
    name: String,
    source: String,
    description: &'a str,
}

#[derive(Serialize)]
struct GenerationToml<'a> {
    origin: &'static str,
    template: String,
    template_version: String,
    seed: i64,
    index: u32,
    difficulty: &'a str,
    visibility_level: &'static str,
    tool_mode: &'static str,
    archetype: &'a str,
    site_context: &'a str,
}

/// `tests/answers.json` for the outputs that a tier asks for.
fn answers_file(
    template: &Template,
    tier: &Tier,
    output: &str,
    answers: &Map<String, Json>,
) -> Result<String, String> {
    let mut fields = Map::new();
    for name in &tier.outputs {
        let spec = template.outputs.get(name).ok_or_else(|| format!("there is no output `{name}`"))?;
        let value = answers.get(name).ok_or_else(|| format!("the engine gives no `{name}`"))?;
        fields.insert(name.clone(), field(name, spec, value)?);
    }
    Ok(pretty(&json!({"version": 1, "output": output, "fields": fields})))
}

fn field(name: &str, spec: &OutputTable, value: &Json) -> Result<Json, String> {
    let kind = spec.kind.unwrap_or_default();
    let right = match kind {
        OutputKind::Number => value.as_f64().is_some_and(f64::is_finite),
        OutputKind::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        OutputKind::Boolean => value.is_boolean(),
        OutputKind::Choice | OutputKind::Text => value.is_string(),
        OutputKind::List | OutputKind::Table => value.is_array(),
    };
    if !right {
        return Err(format!("the engine gives {value} for `{name}`, which is no {}", kind_name(kind)));
    }
    let mut field = Map::new();
    field.insert("type".into(), json!(kind_name(kind)));
    match kind {
        OutputKind::Text => field.insert("accept".into(), json!([value])),
        OutputKind::List => field.insert("items".into(), value.clone()),
        OutputKind::Table => field.insert("rows".into(), value.clone()),
        OutputKind::Integer => field.insert("value".into(), json!(whole(value))),
        _ => field.insert("value".into(), value.clone()),
    };
    if kind == OutputKind::Number {
        let zero = value.as_f64().is_some_and(|number| number == 0.0);
        tolerances(&mut field, relative(spec), spec.abs_tol.or_else(|| zero.then_some(0.0)), spec.sig);
    }
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            field.insert(key.to_owned(), value);
        }
    };
    put("unit", spec.unit.as_ref().map(|unit| json!(unit)));
    put("unit_words", spec.unit_words.as_ref().map(|words| json!(words)));
    put("difference", spec.difference.map(|difference| json!(difference)));
    put("weight", spec.weight.map(|weight| json!(weight)));
    put("options", spec.values.as_ref().map(|values| json!(values)));
    put("aliases", spec.aliases.as_ref().map(|aliases| json!(aliases)));
    put("ordered", spec.ordered.map(|ordered| json!(ordered)));
    put("key", spec.key.as_ref().map(|key| json!(key)));
    put("item", spec.item.as_ref().map(cell));
    put(
        "columns",
        spec.columns.as_ref().map(|columns| {
            Json::Object(columns.iter().map(|(name, column)| (name.clone(), cell(column))).collect())
        }),
    );
    put("meaning", Some(json!(spec.description.trim())));
    Ok(Json::Object(field))
}

fn tolerances(
    field: &mut Map<String, Json>,
    relative: Option<f64>,
    absolute: Option<f64>,
    figures: Option<u32>,
) {
    let given = [
        ("rel_tol", relative.map(|number| json!(number))),
        ("abs_tol", absolute.map(|number| json!(number))),
    ];
    for (key, value) in given.into_iter().chain([("sig", figures.map(|figures| json!(figures)))]) {
        if let Some(value) = value {
            field.insert(key.to_owned(), value);
        }
    }
}

/// The type of an item or a column.
fn cell(cell: &CellTable) -> Json {
    let kind = cell.kind.unwrap_or_default();
    let mut field = Map::new();
    field.insert("type".into(), json!(kind_name(kind)));
    if let Some(unit) = &cell.unit {
        field.insert("unit".into(), json!(unit));
    }
    if kind == OutputKind::Number {
        let as_output = OutputTable {
            tolerance: cell.tolerance,
            abs_tol: cell.abs_tol,
            sig: cell.sig,
            ..OutputTable::default()
        };
        tolerances(&mut field, relative(&as_output), cell.abs_tol, cell.sig);
    }
    if let Some(values) = &cell.values {
        field.insert("options".into(), json!(values));
    }
    if let Some(description) = &cell.description {
        field.insert("meaning".into(), json!(description));
    }
    Json::Object(field)
}

fn kind_name(kind: OutputKind) -> &'static str {
    match kind {
        OutputKind::Number => "number",
        OutputKind::Integer => "integer",
        OutputKind::Boolean => "boolean",
        OutputKind::Choice => "choice",
        OutputKind::Text => "text",
        OutputKind::List => "list",
        OutputKind::Table => "table",
    }
}

#[expect(clippy::cast_possible_truncation, reason = "an engine's count is far below 2^53")]
fn whole(value: &Json) -> Json {
    value.as_i64().map_or_else(|| json!(value.as_f64().unwrap_or_default() as i64), |whole| json!(whole))
}

/// A completely wrong answer.
fn wrong(template: &Template, asked: &Map<String, Json>) -> Map<String, Json> {
    asked
        .iter()
        .map(|(name, value)| {
            let options = template.outputs.get(name).and_then(|output| output.values.as_ref());
            let wrong = match value {
                Json::Bool(flag) => json!(!flag),
                Json::Number(number) if number.is_f64() => {
                    json!(number.as_f64().unwrap_or_default() * 2.0 + 1.0)
                }
                Json::Number(number) => json!(number.as_i64().unwrap_or_default() * 2 + 1),
                Json::String(text) => {
                    let other = options.and_then(|options| options.iter().find(|option| *option != text));
                    json!(other.map_or("not worked out", String::as_str))
                }
                _ => json!([]),
            };
            (name.clone(), wrong)
        })
        .collect()
}

fn pretty(value: &Json) -> String {
    // A JSON value can always be written.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// A site's name for a directory name: no article, no spaces.
fn slug(site: &str) -> String {
    const LONGEST: usize = 40;
    let words = site.to_lowercase();
    let words =
        ["a ", "an ", "the "].iter().find_map(|article| words.strip_prefix(article)).unwrap_or(&words);
    let dashed: String = words.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let parts: Vec<&str> = dashed.split('-').filter(|part| !part.is_empty()).collect();
    let mut slug = String::new();
    for part in parts {
        if slug.len() + part.len() >= LONGEST {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(part);
    }
    if slug.is_empty() { "site".to_owned() } else { slug }
}

/// Whether a file of a task is executable.
pub(crate) fn is_executable(path: &str) -> bool {
    path.ends_with(".sh") || path.starts_with("tools/")
}

/// The hash that a dataset would give the task.
pub(crate) fn digest(files: &Files) -> Digest {
    let mut hashed: Vec<HashedFile> = files
        .iter()
        .map(|(path, content)| HashedFile {
            path: path.clone(),
            executable: is_executable(path),
            // By far the largest file, and the same in every task.
            content: if content == STANDARD_VERIFY_PY {
                scorer::standard_digest()
            } else {
                Digest::of(content.as_bytes())
            },
        })
        .collect();
    task_hash(&mut hashed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_places_become_parts_of_ids() {
        assert_eq!(slug("a footpath along a canal"), "footpath-along-a-canal");
        assert_eq!(slug("The Österberg quay, no. 4"), "sterberg-quay-no-4");
        assert_eq!(slug("///"), "site");
        assert!(slug(&"very long name ".repeat(20)).len() < 40);
        for site in ["a x", "perth-coastal", "A & B"] {
            assert!(aec_base::name::check(&slug(site)).is_ok());
        }
    }
}
