//! Classifies programs by name, and interprets their arguments.

use super::paths::base_name;
use super::shell::Word;

/// The purpose of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Shows the files in its arguments.
    View(&'static str),
    /// Shows the parts of files that its first argument selects.
    Filter(&'static str),
    /// Names files, or shows properties of them.
    List,
    /// Shows properties of the machine or of a program.
    Look,
    Compare,
    Test,
    /// `test` and `[`.
    Condition,
    Copy,
    Tidy,
    /// Runs Python or a similar language.
    Python,
    Shell,
    Find,
    Tee,
    /// Prints its arguments, or nothing.
    Say,
    /// Downloads or installs programs or data.
    Install,
    /// Calculates from its arguments.
    Calculate,
    Other,
}

pub(crate) fn class(name: &str) -> Class {
    match name {
        "cat" | "bat" | "tac" | "nl" | "less" | "more" | "zcat" | "rev" | "fold" | "expand" => {
            Class::View("cat")
        }
        "head" => Class::View("head"),
        "tail" => Class::View("tail"),
        "cut" | "sort" | "uniq" | "column" | "paste" | "csvlook" | "csvcut" | "csvstat" | "in2csv"
        | "xlsx2csv" | "tr" | "iconv" => Class::View("table"),
        "strings" | "xxd" | "od" | "hexdump" => Class::View("dump"),
        "pdftotext" | "pdftoppm" | "tesseract" | "docx2txt" | "catdoc" => Class::View("convert"),
        "sed" => Class::Filter("sed"),
        "awk" | "gawk" | "mawk" | "perl" => Class::Filter("awk"),
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "zgrep" => Class::Filter("grep"),
        "jq" | "yq" | "xmllint" | "xq" => Class::Filter("jq"),
        "ls" | "tree" | "du" | "dir" | "stat" | "file" | "wc" | "realpath" | "readlink" | "pdfinfo"
        | "exa" | "fd" | "identify" => Class::List,
        "pwd" | "whoami" | "uname" | "env" | "printenv" | "date" | "which" | "type" | "whereis"
        | "hostname" | "df" | "free" | "id" | "nproc" | "man" | "help" | "apropos" | "locale" | "lscpu"
        | "ps" | "history" | "info" => Class::Look,
        "diff" | "cmp" | "comm" | "sdiff" | "colordiff" => Class::Compare,
        "pytest" | "py.test" | "tox" | "nosetests" | "ruff" | "mypy" | "flake8" | "pylint" | "shellcheck"
        | "jsonlint" | "yamllint" | "check-jsonschema" | "jsonschema" => Class::Test,
        "test" | "[" | "[[" => Class::Condition,
        "cp" | "mv" | "install" | "rsync" | "ln" => Class::Copy,
        "rm" | "mkdir" | "rmdir" | "touch" | "chmod" | "chown" | "unzip" | "tar" | "zip" | "gunzip"
        | "gzip" => Class::Tidy,
        "bash" | "sh" | "zsh" | "dash" | "ksh" | "source" | "." => Class::Shell,
        "node" | "nodejs" | "deno" | "ipython" | "ruby" | "Rscript" | "julia" | "octave" => Class::Python,
        "find" => Class::Find,
        "tee" => Class::Tee,
        "echo" | "printf" | "true" | "false" | ":" | "cd" | "pushd" | "popd" | "export" | "set" | "sleep"
        | "wait" | "read" | "shift" | "return" | "exit" | "unset" | "local" | "shopt" | "trap" | "ulimit"
        | "clear" | "" => Class::Say,
        "pip" | "pip3" | "apt" | "apt-get" | "conda" | "npm" | "cargo" | "brew" | "wget" | "curl" | "git" => {
            Class::Install
        }
        "bc" | "dc" | "expr" | "let" | "seq" | "factor" | "units" | "gnuplot" => Class::Calculate,
        _ if is_python(name) => Class::Python,
        _ if says_check(name) => Class::Test,
        _ => Class::Other,
    }
}

fn is_python(name: &str) -> bool {
    ["python", "pypy"].iter().any(|stem| {
        name.strip_prefix(stem).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
    })
}

/// Whether the name of a program or script suggests that it checks something.
pub(crate) fn says_check(name: &str) -> bool {
    let name = base_name(name);
    let stem = name.split('.').next().unwrap_or(name);
    stem.split(['_', '-']).any(|part| {
        matches!(
            part,
            "check"
                | "checks"
                | "verify"
                | "validate"
                | "test"
                | "tests"
                | "checker"
                | "validator"
                | "verifier"
        )
    })
}

/// The words of a command without wrappers that only run the rest, and whether arguments come from a pipe.
pub(crate) fn unwrapped(words: &[Word]) -> (&[Word], bool) {
    let mut rest = words;
    let mut from_pipe = false;
    while let [first, after @ ..] = rest {
        let skip = match base_name(&first.text) {
            "sudo" | "nohup" | "time" | "exec" | "builtin" | "setsid" | "chronic" | "unbuffer"
            | "eatmydata" => options(after, &[]),
            "command" if after.first().is_none_or(|word| !matches!(word.text.as_str(), "-v" | "-V")) => 0,
            "nice" | "ionice" => options(after, &["-n", "-c", "--adjustment"]),
            "stdbuf" => options(after, &["-o", "-i", "-e"]),
            "timeout" => options(after, &["-s", "--signal", "-k", "--kill-after"]) + 1,
            "env" => {
                let skip = options(after, &["-u", "--unset", "-C", "--chdir"]);
                skip + after
                    .get(skip..)
                    .unwrap_or_default()
                    .iter()
                    .take_while(|word| word.text.contains('='))
                    .count()
            }
            "xargs" => {
                from_pipe = true;
                options(
                    after,
                    &["-n", "-I", "-P", "-L", "-d", "-a", "--max-args", "--max-procs", "--delimiter"],
                )
            }
            "uv" | "poetry" | "pipenv" if after.first().is_some_and(|word| word.text == "run") => {
                1 + options(&after[1..], &["--with", "--python"])
            }
            _ => break,
        };
        match after.get(skip..) {
            Some(inner) if !inner.is_empty() => rest = inner,
            // Runs nothing: `env` alone shows the environment.
            _ => break,
        }
    }
    (rest, from_pipe)
}

/// How many of the first words are options, including the values of those that take one.
fn options(words: &[Word], with_value: &[&str]) -> usize {
    let mut count = 0;
    while let Some(word) = words.get(count).filter(|word| word.text.len() > 1 && word.text.starts_with('-')) {
        count += 1 + usize::from(with_value.contains(&word.text.as_str()));
    }
    count.min(words.len())
}

/// Whether a command only asks a program for help.
pub(crate) fn asks_for_help(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| matches!(word.text.as_str(), "--help" | "--version" | "--usage"))
        // With other arguments `-h` means something else, but a script may precede it.
        || matches!(arguments, [.., last] if arguments.len() <= 2 && matches!(last.text.as_str(), "-h" | "-help"))
        || matches!(arguments, [only] if matches!(only.text.as_str(), "-V" | "help"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        text.split_whitespace().map(|word| Word { text: word.into(), pattern: false }).collect()
    }

    #[test]
    fn wrappers_are_taken_off() {
        for (command, inner) in [
            ("sudo -E cat a", "cat a"),
            ("timeout -k 5 10s python3 a.py", "python3 a.py"),
            ("env -u A B=1 C=2 python3 a.py", "python3 a.py"),
            ("env", "env"),
            ("nice -n 10 time cat a", "cat a"),
            ("uv run --with numpy python a.py", "python a.py"),
            ("command -v jq", "command -v jq"),
            ("command ls", "ls"),
            ("xargs -n 1 head -3", "head -3"),
            ("timeout", "timeout"),
        ] {
            let words = words(command);
            let (rest, _) = unwrapped(&words);
            assert_eq!(
                rest.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "),
                inner,
                "{command}"
            );
        }
    }

    #[test]
    fn names_tell() {
        assert_eq!(class("python3.11"), Class::Python);
        assert_eq!(class("pythonista"), Class::Other);
        assert!(says_check("tools/check_output.py"));
        assert!(!says_check("checkout.py"));
        assert!(says_check("verify.sh"));
        assert!(asks_for_help(&words("--help")) && asks_for_help(&words("-h")));
        assert!(asks_for_help(&words("a.py -h")) && !asks_for_help(&words("-h 3")));
    }
}
