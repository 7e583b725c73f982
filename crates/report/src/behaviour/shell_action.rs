//! Interprets the effects of shell commands on files.

use super::action::{Act, Deed, Family, Interpreter};
use super::paths::base_name;
use super::program::{Class, asks_for_help, class, says_check, unwrapped};
use super::shell::{Command, Redirect, Script, Word, parse};

/// How deep nested shells are followed.
const DEEPEST: usize = 6;

/// The input and the directory of one command.
pub(crate) struct Setting<'s> {
    pub(crate) current: &'s str,
    /// Text on its standard input, if known.
    pub(crate) input: Option<&'s str>,
    piped: bool,
    /// The pattern of the files that the command before it names.
    named: Option<&'s Word>,
    pub(crate) depth: usize,
}

impl Interpreter<'_> {
    pub(crate) fn shell(&mut self, line: &str, start: &str, depth: usize, deed: &mut Deed) {
        if depth > DEEPEST {
            return;
        }
        let script = parse(line);
        let mut directories = vec![(0, start.to_owned())];
        let mut shows = depth == 0 && !script.commands.is_empty();
        let mut said: Option<String> = None;
        let mut named: Option<Word> = None;
        for command in &script.commands {
            while directories.len() > 1 && directories.last().is_some_and(|(depth, _)| *depth > command.depth)
            {
                directories.pop();
            }
            let current = directories.last().map(|(_, current)| current.clone()).unwrap_or_default();
            let (words, from_pipe) = unwrapped(&command.words);
            let program = words.first().map_or("", |word| base_name(&word.text));
            if let ("cd" | "pushd", Some(to)) = (program, words.get(1)) {
                let to = self.path(&current, &to.text);
                match directories.last_mut() {
                    Some((depth, current)) if *depth == command.depth => *current = to,
                    _ => directories.push((command.depth, to)),
                }
            }
            let here = here(&script, command);
            let input = here.or_else(|| said.as_deref().filter(|_| command.piped));
            let setting = Setting {
                current: &current,
                input,
                piped: command.piped,
                named: named.as_ref().filter(|_| from_pipe && command.piped),
                depth,
            };
            shows &= matches!(
                class(program),
                Class::View(_) | Class::Filter(_) | Class::List | Class::Find | Class::Say
            );
            self.command(words, &setting, deed);
            self.redirects(command, words, &setting, deed);
            named = names(words);
            said = printed(words).or_else(|| here.filter(|_| program == "cat").map(str::to_owned));
        }
        if depth == 0 {
            deed.only_shows = shows;
            let last = script.commands.last().map(|command| unwrapped(&command.words).0);
            let last = last.and_then(|words| words.first()).map_or("", |word| base_name(&word.text));
            deed.may_say_no =
                matches!(class(last), Class::Compare | Class::Condition | Class::Filter("grep"))
                    || matches!(last, "which" | "type" | "command" | "pgrep" | "false");
        }
        if script.commands.iter().all(|command| command.words.is_empty()) && deed.acts.is_empty() {
            deed.acts.push(Act::Say);
        }
    }

    fn command(&mut self, words: &[Word], setting: &Setting<'_>, deed: &mut Deed) {
        let [program, arguments @ ..] = words else { return };
        let name = base_name(&program.text);
        let class = class(name);
        if asks_for_help(arguments)
            && !matches!(class, Class::View(_) | Class::Say | Class::Filter(_) | Class::List)
        {
            deed.acts.push(Act::Help);
            let family = match self.declared_among(words, setting.current) {
                Some(number) => Family::Declared(number),
                None => Family::Named(name.to_owned()),
            };
            return deed.family(name, family);
        }
        let family = match class {
            Class::View(how) => self.view(how, name, arguments, setting, deed),
            Class::Filter(how) => self.filter(how, arguments, setting, deed),
            Class::Find => self.find(arguments, setting, deed),
            Class::List => {
                deed.acts.push(Act::List);
                Family::List
            }
            Class::Look => {
                deed.acts.push(Act::Look);
                Family::Named(name.to_owned())
            }
            Class::Compare => {
                deed.acts.push(Act::Compare);
                self.reads(operands(arguments), "diff", setting, deed);
                Family::Test
            }
            Class::Test => {
                deed.acts.push(Act::Test);
                Family::Test
            }
            Class::Condition => {
                let of_output =
                    arguments.iter().any(|word| self.path(setting.current, &word.text) == self.output);
                deed.acts.push(if of_output { Act::Test } else { Act::Look });
                Family::Test
            }
            Class::Copy => self.copy(arguments, setting, deed),
            Class::Tidy => {
                deed.acts.push(Act::Tidy);
                Family::Named(name.to_owned())
            }
            Class::Python => self.python(arguments, setting, deed),
            Class::Shell => self.subshell(arguments, setting, deed),
            Class::Tee => self.tee(arguments, setting, deed),
            Class::Say => {
                if !matches!(name, "cd" | "set" | "export" | "pushd" | "popd") {
                    deed.acts.push(Act::Say);
                }
                return;
            }
            Class::Install => {
                let first = arguments.first().map_or("", |word| word.text.as_str());
                let looks =
                    matches!(first, "list" | "show" | "freeze" | "status" | "log" | "diff" | "search");
                deed.acts.push(if looks { Act::Look } else { Act::Install });
                Family::Named(name.to_owned())
            }
            Class::Calculate => {
                deed.acts.push(Act::Compute);
                Family::Code
            }
            Class::Other => self.other(program, name, arguments, setting, deed),
        };
        self.outputs(arguments, setting, deed);
        deed.family(name, family);
    }

    fn declared_among(&self, words: &[Word], current: &str) -> Option<usize> {
        words.iter().take(3).find_map(|word| self.declared_at(&self.path(current, &word.text)))
    }

    pub(crate) fn reads<'w>(
        &self,
        operands: impl Iterator<Item = &'w Word>,
        how: &'static str,
        setting: &Setting<'_>,
        deed: &mut Deed,
    ) {
        let read = |word: &Word| Act::Read {
            path: self.path(setting.current, &word.text),
            pattern: word.pattern,
            how,
        };
        deed.acts.extend(operands.filter(|word| word.text != "-").map(read));
        deed.acts.extend(setting.named.map(read));
    }

    fn writes(
        &self,
        word: &Word,
        how: &'static str,
        bytes: Option<u64>,
        appends: bool,
        setting: &Setting<'_>,
    ) -> Act {
        Act::Write { path: self.path(setting.current, &word.text), how, bytes, appends }
    }

    fn view(
        &self,
        how: &'static str,
        name: &str,
        arguments: &[Word],
        setting: &Setting<'_>,
        deed: &mut Deed,
    ) -> Family {
        let mut files = operands(arguments);
        if how == "convert" {
            self.reads(files.next().into_iter(), how, setting, deed);
            if let Some(to) = files.next().filter(|to| name == "pdftotext" && to.text != "-") {
                deed.acts.push(self.writes(to, "convert", None, false, setting));
            }
        } else {
            self.reads(files, how, setting, deed);
        }
        Family::Read
    }

    fn filter(
        &self,
        how: &'static str,
        arguments: &[Word],
        setting: &Setting<'_>,
        deed: &mut Deed,
    ) -> Family {
        let explicit =
            |word: &Word| matches!(word.text.as_str(), "-e" | "-f" | "--expression" | "--file" | "--regexp");
        let in_place = |word: &Word| {
            let text = word.text.as_str();
            how != "grep"
                && (text.starts_with("-i") || text.starts_with("--in-place") || text.starts_with("-pi"))
        };
        // The value of `-e X` is an operand like the plain pattern, so the first operand is left out either way.
        let files: Vec<&Word> = operands(arguments).skip(1).collect();
        if how == "grep" {
            deed.acts.push(Act::Search);
        }
        if how != "jq" && arguments.iter().any(in_place) {
            deed.acts.extend(files.iter().map(|file| self.writes(file, "edit", None, false, setting)));
            return Family::Write;
        }
        if files.is_empty() && !setting.piped && how != "grep" && !arguments.iter().any(explicit) {
            deed.acts.push(Act::Compute);
            return Family::Code;
        }
        self.reads(files.into_iter(), how, setting, deed);
        Family::Read
    }

    fn find(&self, arguments: &[Word], setting: &Setting<'_>, deed: &mut Deed) -> Family {
        deed.acts.push(Act::List);
        let run = arguments.iter().position(|word| matches!(word.text.as_str(), "-exec" | "-execdir"));
        if let Some(program) = run.and_then(|at| arguments.get(at + 1))
            && let Class::View(how) | Class::Filter(how) = class(base_name(&program.text))
            && let Some(found) = found(arguments)
        {
            self.reads([&found].into_iter(), how, setting, deed);
            return Family::Read;
        }
        Family::List
    }

    fn copy(&self, arguments: &[Word], setting: &Setting<'_>, deed: &mut Deed) -> Family {
        let files: Vec<&Word> = operands(arguments).collect();
        if let [sources @ .., to] = files.as_slice() {
            let target = self.path(setting.current, &to.text);
            let is_directory =
                to.text.ends_with('/') || target.is_empty() || to.text == "." || sources.len() > 1;
            for source in sources {
                let path = match (is_directory, target.as_str()) {
                    (false, _) => target.clone(),
                    (true, "") => base_name(&source.text).to_owned(),
                    (true, _) => format!("{target}/{}", base_name(&source.text)),
                };
                deed.acts.push(Act::Write { path, how: "copy", bytes: None, appends: false });
            }
        }
        Family::Write
    }

    fn tee(&mut self, arguments: &[Word], setting: &Setting<'_>, deed: &mut Deed) -> Family {
        let appends = arguments.iter().any(|word| word.text == "-a" || word.text == "--append");
        for file in operands(arguments) {
            let bytes = setting.input.map(|input| input.len() as u64);
            deed.acts.push(self.writes(file, "tee", bytes, appends, setting));
            let path = self.path(setting.current, &file.text);
            self.remember(&path, setting.input, appends);
        }
        Family::Write
    }

    fn subshell(&mut self, arguments: &[Word], setting: &Setting<'_>, deed: &mut Deed) -> Family {
        let takes_line = |word: &Word| {
            word.text.starts_with('-') && !word.text.starts_with("--") && word.text.ends_with('c')
        };
        if let Some(at) = arguments.iter().position(takes_line) {
            let line = arguments.get(at + 1).map_or("", |word| word.text.as_str());
            self.shell(line, setting.current, setting.depth + 1, deed);
        } else if let Some(file) = operands(arguments).next() {
            let path = self.path(setting.current, &file.text);
            return self.program(&path, &[], setting, deed, true);
        } else if let Some(input) = setting.input {
            self.shell(input, setting.current, setting.depth + 1, deed);
        }
        Family::Code
    }

    fn other(
        &mut self,
        program: &Word,
        name: &str,
        arguments: &[Word],
        setting: &Setting<'_>,
        deed: &mut Deed,
    ) -> Family {
        let path = self.path(setting.current, &program.text);
        if program.text.contains('/') {
            return self.program(&path, arguments, setting, deed, !name.ends_with(".py"));
        }
        let tests = matches!(name, "make" | "just") && arguments.iter().any(|word| says_check(&word.text));
        deed.acts.push(match name {
            "command" => Act::Look,
            _ if tests => Act::Test,
            _ => Act::Run,
        });
        self.handed(arguments, setting.current, deed);
        Family::Named(name.to_owned())
    }

    /// `-o FILE` and similar options, with which most programs name their output file.
    fn outputs(&self, arguments: &[Word], setting: &Setting<'_>, deed: &mut Deed) {
        for (at, word) in arguments.iter().enumerate() {
            let value = match word.text.split_once('=') {
                Some(("--output" | "--out" | "--output-file" | "of", value)) => Some(value),
                _ if matches!(word.text.as_str(), "-o" | "--output" | "--out" | "--output-file" | "-O") => {
                    arguments.get(at + 1).map(|word| word.text.as_str())
                }
                _ => None,
            };
            // In some programs it means something else, but hardly with the path of the answer.
            if let Some(path) =
                value.map(|value| self.path(setting.current, value)).filter(|path| *path == self.output)
            {
                deed.acts.retain(
                    |act| !matches!(act, Act::Read { path: read, how: "argument", .. } if *read == path),
                );
                deed.acts.push(Act::Write { path, how: "option", bytes: None, appends: false });
                return;
            }
        }
    }

    fn redirects(&mut self, command: &Command, words: &[Word], setting: &Setting<'_>, deed: &mut Deed) {
        let program = words.first().map_or("", |word| base_name(&word.text));
        for redirect in &command.redirects {
            let (target, appends) = match redirect {
                Redirect::Read(word) => {
                    self.reads([word].into_iter(), "redirect", setting, deed);
                    continue;
                }
                Redirect::Here(_) => continue,
                Redirect::Write(word) => (word, false),
                Redirect::Append(word) => (word, true),
            };
            if target.text.starts_with("/dev/") || target.text.is_empty() {
                continue;
            }
            let content = match program {
                "cat" => setting.input.map(str::to_owned),
                _ => printed(words),
            };
            let bytes = content.as_ref().map(|content| content.len() as u64);
            let path = self.path(setting.current, &target.text);
            self.remember(&path, content.as_deref(), appends);
            deed.acts.push(Act::Write { path, how: "redirect", bytes, appends });
            deed.families.push((String::new(), Family::Write));
        }
    }
}

pub(crate) fn operands(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    arguments.iter().filter(|word| !word.text.starts_with('-') || word.text == "-")
}

fn here<'s>(script: &'s Script, command: &Command) -> Option<&'s str> {
    command.redirects.iter().rev().find_map(|redirect| match redirect {
        Redirect::Here(body) => script.bodies.get(*body).map(String::as_str),
        _ => None,
    })
}

/// The output of a command, if its words determine it.
fn printed(words: &[Word]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    if !matches!(program.text.as_str(), "echo" | "printf") {
        return None;
    }
    let shown =
        rest.iter().skip_while(|word| matches!(word.text.as_str(), "-e" | "-n" | "-E" | "-ne" | "-en"));
    let text: Vec<&str> = shown.map(|word| word.text.as_str()).collect();
    Some(text.join(" ") + "\n")
}

/// The files whose names a command prints.
fn names(words: &[Word]) -> Option<Word> {
    let (program, arguments) = words.split_first()?;
    match base_name(&program.text) {
        "find" => found(arguments),
        "ls" => operands(arguments).next().filter(|word| word.pattern).cloned(),
        _ => None,
    }
}

/// The files that `find` finds, as a pattern.
fn found(arguments: &[Word]) -> Option<Word> {
    let place = arguments
        .first()
        .filter(|word| !word.text.starts_with(['-', '(', '!']))
        .map_or(".", |word| &word.text);
    let named = arguments.iter().position(|word| matches!(word.text.as_str(), "-name" | "-iname"));
    let name = match named {
        Some(at) => arguments.get(at + 1)?.text.as_str(),
        None => "*",
    };
    Some(Word { text: format!("{place}/**/{name}"), pattern: true })
}
