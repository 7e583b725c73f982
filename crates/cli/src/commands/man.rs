//! `aec-bench man`.

use std::path::PathBuf;

use aec_base::file::write_atomic;
use aec_base::problem::Problem;
use aec_base::text;
use clap::{Args, Command, CommandFactory as _, ValueHint};
use serde_json::json;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench man\n  \
                        aec-bench man --output man")]
pub(crate) struct ManArguments {
    /// Write one page per command into this directory
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn man(context: &Context, arguments: &ManArguments) -> Result<Outcome, Failure> {
    // The groups contain terminal colours, and a manual page has its own layout.
    let mut tree = Arguments::command();
    tree.build();
    let Some(directory) = &arguments.output else {
        let page = page(&tree)?;
        return Outcome::new(context.format, &json!({ "page": page }), || page.clone());
    };
    let directory = context.absolute(directory)?;
    let mut files = Vec::new();
    write_pages(&tree, "aec-bench", &mut |name, page| {
        let path = directory.join(format!("{name}.1"));
        write_atomic(&path, page.as_bytes())?;
        files.push(path);
        Ok(())
    })?;
    let remark = format!("wrote {} to {}", text::count(files.len(), "page"), directory.display());
    Ok(Outcome::new(context.format, &json!({ "files": files }), String::new)?.remark(remark))
}

type WritePage<'a> = dyn FnMut(&str, &str) -> Result<(), Failure> + 'a;

fn write_pages(command: &Command, name: &str, write: &mut WritePage<'_>) -> Result<(), Failure> {
    write(name, &page(command)?)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        write_pages(sub, &format!("{name}-{}", sub.get_name()), write)?;
    }
    Ok(())
}

fn page(command: &Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(|error| {
        Failure::internal(Problem::error(format!("cannot render the manual page: {error}")))
    })?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
