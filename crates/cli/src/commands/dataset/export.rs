//! `aec-bench dataset export`.

use std::path::PathBuf;

use aec_base::settings::Setting;
use aec_base::text;
use aec_task::dataset::archive::{ExportError, Packed, export as export_dataset};
use aec_task::dataset::reference::DatasetRef;
use aec_task::dataset::store::Store;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench dataset export electrical-v1@1.0.0 --output electrical-v1.tar.zst")]
pub(crate) struct DatasetExportArguments {
    /// The dataset: NAME for its highest version, or NAME@VERSION
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) reference: String,
    /// File to write; an existing file is replaced
    #[arg(long, short, value_name = "FILE.tar.zst", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

#[derive(Serialize)]
struct Data {
    dataset: String,
    file: PathBuf,
    size: u64,
    #[serde(flatten)]
    packed: Packed,
}

pub(crate) fn export(context: &Context, arguments: &DatasetExportArguments) -> Result<Outcome, Failure> {
    let reference = DatasetRef::parse(&arguments.reference)?;
    let project = context.project(Vec::new())?;
    let manifest = Store::new(project.settings.path(Setting::Datasets)).read(&reference)?;
    let file = context.absolute(&arguments.output)?;
    let (packed, size) = aec_base::file::write_atomic_with(&file, |file| -> Result<_, ExportError> {
        let packed = export_dataset(&project.root, &manifest, &mut *file)?;
        Ok((packed, file.metadata()?.len()))
    })?;
    let data = Data { dataset: manifest.reference(), file, size, packed };
    let remark = format!(
        "Wrote {} with {} and {} to {}, {size} bytes.",
        data.dataset,
        text::count(packed.tasks, "task"),
        text::count(packed.files, "file"),
        text::printable(&arguments.output.to_string_lossy())
    );
    Ok(Outcome::new(context.format, &data, String::new)?.remark(remark))
}
