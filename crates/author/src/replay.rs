//! `generate replay`: makes the instances of a manifest again and compares every byte.

use std::path::{Path, PathBuf};

use aec_base::parallel;
use aec_base::problem::Problem;
use serde::Serialize;

use crate::engine::Engines;
use crate::generate::{GenerateError, Order, again};
use crate::instance::{self, Files, is_executable};
use crate::library::Library;
use crate::manifest::{FAMILY, InstanceSource, MANIFEST_FILE, Manifest, TemplateSource};
use crate::publish::{Published, Staging};
use crate::template::Template;

#[derive(Clone, Debug, Serialize)]
pub struct Replay {
    /// Instances of the manifest.
    pub instances: usize,
    /// Instances that were made identically and are identical on disk.
    pub identical: usize,
    pub different: Vec<Difference>,
    /// The result of publishing to the output directory, if there is one.
    pub published: Option<Published>,
}

/// An instance that differs from the manifest.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// Path of the task from the manifest's directory.
    pub task: String,
    pub what: String,
}

/// Makes every instance of a manifest again, and publishes the result if there is an output directory.
pub fn replay(engines: &Engines, path: &Path, output: Option<&Path>) -> Result<Replay, GenerateError> {
    let manifest = Manifest::read(path).map_err(GenerateError::Template)?;
    let root =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut templates = Vec::new();
    let mut problems = Vec::new();
    for source in &manifest.templates {
        match find(source, root) {
            Ok(template) => templates.push((source.clone(), template)),
            Err(problem) => problems.push(*problem),
        }
    }
    if !problems.is_empty() {
        return Err(GenerateError::Template(problems));
    }
    let staging = output.map(Staging::begin).transpose()?;
    let results = parallel::map(&manifest.instances, 8, |instance| {
        let (task, files) = remake(engines, &templates, instance, path)?;
        if let Some(staging) = &staging {
            staging.write(&instance.task, &files)?;
        }
        let mut what = None;
        if !task.ends_with(&instance.task) {
            what = Some(format!("it is now called {task}"));
        } else if instance.content_hash != Some(instance::digest(&files)) {
            what = Some("making it again gave other files".to_owned());
        } else if let Some(file) = changed(&root.join(&instance.task), &files) {
            what = Some(format!("{file} on disk is not what was made"));
        }
        Ok::<_, GenerateError>(what.map(|what| Difference { task: instance.task.clone(), what }))
    });
    let mut different = Vec::new();
    for result in results {
        different.extend(result?);
    }
    let published = match staging {
        None => None,
        Some(staging) => {
            for (source, template) in templates.iter().filter(|(source, _)| !source.library) {
                staging.write(&source.archive().to_string_lossy(), &template.files)?;
            }
            staging.write("", &[(MANIFEST_FILE.to_owned(), manifest.to_json())].into())?;
            let published = staging.publish(false)?;
            if published.is_none() {
                let problem =
                    Problem::error("the output directory has something else in it").id(FAMILY.number(10));
                let problem =
                    problem.fix("name a directory that does not exist").in_file(output.unwrap_or(root));
                return Err(GenerateError::Template(vec![problem]));
            }
            published
        }
    };
    let instances = manifest.instances.len();
    Ok(Replay { instances, identical: instances - different.len(), different, published })
}

/// The template with exactly the files that were used.
fn find(source: &TemplateSource, root: &Path) -> Result<Template, Box<Problem>> {
    let missing = |why: &str| {
        Box::new(
            Problem::error(format!("the template `{}` {} that was used is not here", source.template, source.version))
                .id(FAMILY.number(11))
                .why(why.to_owned())
                .fix("use the version of aec-bench that made the manifest, or bring the .generation directory back")
                .in_file(root.join(source.archive())),
        )
    };
    let digest = source.content_hash.ok_or_else(|| missing("the manifest does not say which it was"))?;
    if source.library {
        return Library::embedded_with(&source.template, digest)
            .ok_or_else(|| missing("this program's template of that name is another one"));
    }
    let template =
        Template::read(&root.join(source.archive())).map_err(|_| missing("its files cannot be read"))?;
    if template.digest == digest { Ok(template) } else { Err(missing("its files have been changed")) }
}

fn remake(
    engines: &Engines,
    templates: &[(TemplateSource, Template)],
    instance: &InstanceSource,
    path: &Path,
) -> Result<(String, Files), GenerateError> {
    let wrong = |what: &str| {
        let problem = Problem::error(format!("`{}`: {what}", instance.task)).id(FAMILY.number(12));
        GenerateError::Template(vec![
            problem.fix("the manifest has been changed; take the original").in_file(path),
        ])
    };
    // This path is written to, so it must stay below the output directory.
    if !instance.task.split('/').all(|part| aec_base::name::check(part).is_ok()) {
        return Err(wrong("its path cannot be that of a task"));
    }
    let mut found = None;
    for (_, template) in templates.iter().filter(|(source, _)| source.template == instance.template) {
        let tier = template.tiers.get(&instance.difficulty).filter(|tier| tier.problems.is_empty());
        let tier = tier.ok_or_else(|| wrong("the template has no such tier"))?;
        let order = Order {
            template,
            tier,
            seed: instance.seed,
            index: instance.index,
            tool_mode: instance.mode().ok_or_else(|| wrong("its tool mode is unknown"))?,
            visibility: instance.seen_by().ok_or_else(|| wrong("its visibility is unknown"))?,
        };
        let made = again(engines, &order, instance.draw)?;
        // Instances in one directory may come from several versions of a template.
        let exact = instance.content_hash == Some(instance::digest(&made.1));
        found = Some(made);
        if exact {
            break;
        }
    }
    found.ok_or_else(|| wrong("its template is not listed"))
}

/// The first file on disk that differs from what was made; additional files count too.
fn changed(directory: &Path, files: &Files) -> Option<String> {
    for (path, content) in files {
        let file = directory.join(path);
        let same = fs_err::read(&file).is_ok_and(|bytes| bytes == content.as_bytes());
        let mode = std::fs::symlink_metadata(&file)
            .map(|metadata| std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0);
        if !same || mode.ok() != Some(is_executable(path)) {
            return Some(path.clone());
        }
    }
    let mut extra = Vec::new();
    list(directory, directory, &mut extra);
    extra.into_iter().find(|path| !files.contains_key(path))
}

fn list(root: &Path, directory: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs_err::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path: PathBuf = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(root, &path, found);
        } else if let Ok(relative) = path.strip_prefix(root) {
            found.push(relative.to_string_lossy().into_owned());
        }
    }
}
