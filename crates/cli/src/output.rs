//! The output of a command: one JSON envelope, or text for people. Data goes to stdout and everything else to stderr;
//! known secrets are removed.

use std::fmt::Write as _;
use std::io;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Instant;

use aec_base::problem::{Problem, Severity};
use aec_base::secret::Redactor;
use aec_base::text::printable;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::{Exit, Failure};

pub(crate) const HEADER: Style = Style::new().bold();
pub(crate) const STRONG: Style = Style::new().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const NOTE: Style = AnsiColor::Cyan.on_default().bold();

/// The format of stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// The result of a command that did its work.
pub(crate) struct Outcome {
    data: Rendered,
    /// Lines for people that are not data: what was done, what to do next.
    remarks: Vec<String>,
    problems: Vec<Problem>,
    /// Whether the text already shows the problems.
    problems_shown: bool,
    /// Work that continues after the outcome is printed.
    service: Option<Service>,
    /// An exit code that overrides the one from the problems.
    exit: Option<Exit>,
}

/// The work of a server, which reports that it is ready and then continues until the user stops it.
pub(crate) type Service = Box<dyn FnOnce() -> Result<(), Failure>>;

enum Rendered {
    Json(Box<RawValue>),
    Text(String),
}

impl Outcome {
    /// An outcome with data, serialised in JSON mode and otherwise rendered by `text`.
    pub(crate) fn new<T: Serialize>(
        format: Format,
        data: &T,
        text: impl FnOnce() -> String,
    ) -> Result<Self, Failure> {
        let data = match format {
            Format::Text => Rendered::Text(text()),
            // Types of results have no other reason to fail than the name of a file.
            Format::Json => Rendered::Json(serde_json::value::to_raw_value(data).map_err(|error| {
                let problem = Problem::error(format!("cannot write the result as JSON: {error}"));
                Failure::environment(problem.fix("leave out --json, or give files names in UTF-8"))
            })?),
        };
        Ok(Self {
            data,
            remarks: Vec::new(),
            problems: Vec::new(),
            problems_shown: false,
            service: None,
            exit: None,
        })
    }

    /// Adds a line for people.
    pub(crate) fn remark(mut self, remark: impl Into<String>) -> Self {
        self.remarks.push(remark.into());
        self
    }

    /// Adds work that continues after the outcome is printed: the outcome of a server is that it is ready.
    pub(crate) fn serve(mut self, service: impl FnOnce() -> Result<(), Failure> + 'static) -> Self {
        self.service = Some(Box::new(service));
        self
    }

    pub(crate) fn take_service(&mut self) -> Option<Service> {
        self.service.take()
    }

    /// Sets an exit code that overrides the one from the problems.
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = Some(exit);
        self
    }

    /// Adds problems, which text mode prints on stderr. Only errors and warnings belong here.
    pub(crate) fn problems(mut self, problems: Vec<Problem>) -> Self {
        self.problems = problems;
        self
    }
    /// Adds problems that the text already shows.
    pub(crate) fn problems_in_text(mut self, problems: Vec<Problem>) -> Self {
        self.problems = problems;
        self.problems_shown = true;
        self
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    command: &'a str,
    status: &'static str,
    data: Option<&'a RawValue>,
    errors: &'a [Problem],
    version: &'static str,
    duration_seconds: f64,
}

/// Prints results and failures.
pub(crate) struct Printer {
    pub(crate) format: Format,
    pub(crate) quiet: bool,
    pub(crate) color: bool,
    pub(crate) started: Instant,
    pub(crate) redactor: Redactor,
}

impl Printer {
    pub(crate) fn outcome(&self, command: &str, outcome: &Outcome) -> Exit {
        let found = outcome.problems.iter().any(Problem::counts);
        match &outcome.data {
            Rendered::Json(data) => {
                let status = if found { "partial" } else { "success" };
                self.envelope(command, status, Some(data), &outcome.problems);
            }
            Rendered::Text(text) => {
                self.stdout(text);
                if !outcome.problems_shown {
                    self.stderr(&outcome.problems.iter().map(problem_text).collect::<String>());
                }
                if !self.quiet {
                    let lines = outcome.remarks.iter().flat_map(|remark| [remark.as_str(), "\n"]);
                    self.stderr(&lines.collect::<String>());
                }
            }
        }
        self.delivered(outcome.exit.unwrap_or(if found { Exit::Found } else { Exit::Success }))
    }

    pub(crate) fn failure(&self, command: &str, failure: &Failure) -> Exit {
        match self.format {
            Format::Json => self.envelope(command, "error", None, &failure.problems),
            Format::Text => self.complain(failure),
        }
        if self.delivered(Exit::Success) != Exit::Success && self.format == Format::Json {
            self.complain(failure);
        }
        failure.exit
    }

    /// The exit code, unless output was lost: whoever reads it would take what is missing for the whole.
    fn delivered(&self, exit: Exit) -> Exit {
        let Some(Lost { what, error }) = LOST.get() else { return exit };
        self.complain(&Failure::environment(
            Problem::error(format!("cannot write {what}: {error}"))
                .why("what was written is not the whole output")
                .fix("make space, or send the output elsewhere, and run the command again"),
        ));
        Exit::Environment
    }

    /// Prints a failure on stderr, whatever the format of stdout is.
    pub(crate) fn complain(&self, failure: &Failure) {
        self.stderr(&failure.problems.iter().map(problem_text).collect::<String>());
    }

    /// Prints the help.
    pub(crate) fn help(&self, text: &str) -> Exit {
        self.stdout(text);
        self.delivered(Exit::Success)
    }

    fn stdout(&self, text: &str) {
        let stream = anstream::AutoStream::new(io::stdout().lock(), choice(self.color));
        note_loss("standard output", write(stream, &self.scrub(text)));
    }

    pub(crate) fn stderr(&self, text: &str) {
        // An error of this stream could be reported nowhere.
        write(anstream::AutoStream::new(io::stderr().lock(), choice(self.color)), &self.scrub(text)).ok();
    }

    fn envelope(&self, command: &str, status: &'static str, data: Option<&RawValue>, errors: &[Problem]) {
        let envelope = Envelope {
            command,
            status,
            data,
            errors,
            version: env!("CARGO_PKG_VERSION"),
            duration_seconds: (self.started.elapsed().as_secs_f64() * 1e6).round() / 1e6,
        };
        let line = serde_json::to_string(&envelope).unwrap_or_default();
        let line = self.redactor.scrub_json(line) + "\n";
        note_loss("standard output", write(io::stdout().lock(), &line));
    }

    fn scrub(&self, text: &str) -> String {
        self.redactor.scrub(text.to_owned())
    }
}

fn choice(color: bool) -> anstream::ColorChoice {
    if color { anstream::ColorChoice::Auto } else { anstream::ColorChoice::Never }
}

fn write(mut stream: impl io::Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush())
}

/// What the log of `--verbose` must not show. It belongs to the process, as the log does.
static UNSAID: RwLock<Option<Redactor>> = RwLock::new(None);

/// From now on, removes these secrets from the log.
pub(crate) fn scrub_log(redactor: Redactor) {
    *UNSAID.write().unwrap_or_else(PoisonError::into_inner) = Some(redactor);
}

/// Writes lines of the log to stderr.
pub(crate) struct LogWriter;

impl io::Write for LogWriter {
    /// The log writes each of its lines at once.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let text = match &*UNSAID.read().unwrap_or_else(PoisonError::into_inner) {
            Some(redactor) => redactor.scrub(text),
            None => text,
        };
        io::stderr().lock().write_all(text.as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Output that could not be written, say to a full disk.
struct Lost {
    what: String,
    error: io::Error,
}

/// The first output that was lost. It belongs to the process, as its standard output does: events are written by a thread
/// of their own, and the exit code is decided at the end.
static LOST: OnceLock<Lost> = OnceLock::new();

/// Remembers that output was lost, so that the command fails. A reader that closed the pipe, as `| head` does, has what it
/// wanted.
pub(crate) fn note_loss(what: &str, written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| Lost { what: what.to_owned(), error });
    }
}

/// A problem as text: the sentence with its place, then the reason, then the fix.
pub(crate) fn problem_text(problem: &Problem) -> String {
    let style = match problem.severity {
        Severity::Error => ERROR,
        Severity::Warning => WARNING,
        Severity::Note => NOTE,
    };
    let id = problem.id.as_deref().map(|id| format!("[{id}]")).unwrap_or_default();
    let mut text = format!("{style}{}{id}{style:#}: {}\n", problem.severity, printable(&problem.what));
    let place = problem.place_text();
    for (label, line) in [("at", place.as_deref()), ("why", problem.why.as_deref())] {
        if let Some(line) = line {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {label}: {}", printable(line).replace('\n', " "));
        }
    }
    if let Some(fix) = &problem.fix {
        // Lines to put into a file stand below each other. They are indented, so that they look like no other problem.
        let _ = writeln!(text, "  fix: {}", printable(fix).replace('\n', "\n       "));
    }
    text
}
