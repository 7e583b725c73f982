//! `aec-bench runs keygen`.

use std::path::PathBuf;

use aec_ledger::package::signature::generate;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench runs keygen team.key")]
pub(crate) struct RunsKeygenArguments {
    /// File for the private key; the public one goes to FILE.pub
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

#[derive(Serialize)]
struct Data {
    file: PathBuf,
    public_file: PathBuf,
    key: String,
}

pub(crate) fn keygen(context: &Context, arguments: &RunsKeygenArguments) -> Result<Outcome, Failure> {
    let file = context.absolute(&arguments.file)?;
    let (key, public_file) = generate(&file)?;
    let data = Data { file, public_file, key: key.to_string() };
    let outcome = Outcome::new(context.format, &data, || format!("{key}\n"))?;
    Ok(outcome.remark("Keep the private key secret; give the public key to the recipients of your packages."))
}
