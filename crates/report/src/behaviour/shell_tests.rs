//! The parser against examples, against bash, and against noise.

use std::fmt::Write as _;
use std::process::Command as Process;

use proptest::prelude::*;

use super::shell::{Redirect, Script, parse};

/// A script in a form that is easy to compare: one command per line, redirections after it.
fn shown(script: &Script) -> String {
    let mut text = String::new();
    for command in &script.commands {
        if command.piped {
            text.push_str("| ");
        }
        for word in &command.words {
            let _ = write!(text, "[{}{}]", word.text, if word.pattern { "*" } else { "" });
        }
        for redirect in &command.redirects {
            let _ = match redirect {
                Redirect::Read(word) => write!(text, "<{}", word.text),
                Redirect::Write(word) => write!(text, ">{}", word.text),
                Redirect::Append(word) => write!(text, ">>{}", word.text),
                Redirect::Here(body) => write!(text, "<<{:?}", script.bodies[*body]),
            };
        }
        text.push('\n');
    }
    text
}

#[track_caller]
fn check(line: &str, expected: &[&str]) {
    let mut expected = expected.join("\n");
    if !expected.is_empty() {
        expected.push('\n');
    }
    assert_eq!(shown(&parse(line)), expected, "{line}");
}

#[test]
fn words_and_quotes() {
    check("cat a 'b c' \"d $x e\" f\\ g", &["[cat][a][b c][d $x e][f g]"]);
    check(r#"echo "a\"b" 'it'\''s' "" $'x\ty'"#, &["[echo][a\"b][it's][][x\ty]"]);
    check("a # b\nc#d", &["[a]", "[c#d]"]);
    check("echo a\\\nb", &["[echo][ab]"]);
    check("x 'unclosed ; y", &["[x][unclosed ; y]"]);
    check("", &[]);
}

#[test]
fn lists_pipes_and_subshells() {
    check("a && b || c; d & e | f |& g", &["[a]", "[b]", "[c]", "[d]", "[e]", "| [f]", "| [g]"]);
    check("(cd x; ls) && pwd", &["[cd][x]", "[ls]", "[pwd]"]);
    check("{ a; b; } > out", &["[a]", "[b]", ">out"]);
    assert_eq!(
        parse("(cd x; ls); pwd").commands.iter().map(|command| command.depth).collect::<Vec<_>>(),
        [1, 1, 0]
    );
}

#[test]
fn redirections() {
    check("a > x 2>&1 < y >> z", &["[a]>x<y>>z"]);
    check("a 2> err &> both >| force", &["[a]>err>both>force"]);
    check("a 2>/dev/null", &["[a]>/dev/null"]);
    check("echo 2 > x", &["[echo][2]>x"]);
    check("cat <<< 'here is'", &["[cat]<<\"here is\""]);
    check("diff <(sort a) <(sort b)", &["[sort][a]", "[sort][b]", "[diff][][]"]);
}

#[test]
fn here_documents() {
    check(
        "cat > out <<'EOF'\n{\"a\": 1}\n; rm -rf x\nEOF\nls",
        &["[cat]>out<<\"{\\\"a\\\": 1}\\n; rm -rf x\\n\"", "[ls]"],
    );
    check("python3 - <<EOF && ls\nprint(1)\nEOF", &["[python3][-]<<\"print(1)\\n\"", "[ls]"]);
    check("cat <<A <<B | x\n1\nA\n2\nB\n", &["[cat]<<\"1\\n\"<<\"2\\n\"", "| [x]"]);
    check("cat <<-E\n\tx\n\tE\ny", &["[cat]<<\"\\tx\\n\"", "[y]"]);
    check("cat <<EOF\nnever closed", &["[cat]<<\"never closed\""]);
    check("x=$(cat <<E\nin )\nE\n); echo $x", &["[cat]<<\"in )\\n\"", "[echo][$()]"]);
}

#[test]
fn variables_and_loops() {
    check("F=/workspace/a.csv; cat $F \"${F}.bak\"", &["[cat][/workspace/a.csv][/workspace/a.csv.bak]"]);
    check("A=1 B=2 env", &["[env]"]);
    check("for f in a b; do head \"$f.csv\"; done > all", &["[head][a.csv][b.csv]", ">all"]);
    check("for f in x/*.csv\ndo cat $f\ndone", &["[cat][x/*.csv*]"]);
    check("cd $(pwd)/x", &["[cd][./x]"]);
    check("echo ${A:-b} $? $@ $", &["[echo][${A:-b}][$?][$@][$]"]);
    check("a=$a$a; a=$a$a; echo $a", &["[echo][$a$a$a$a]"]);
}

#[test]
fn substitutions_and_syntax() {
    check("echo $(cat a | wc -l) `ls b`", &["[cat][a]", "| [wc][-l]", "[ls][b]", "[echo][$()][$()]"]);
    check("if [ -f a ]; then cat a; else ls; fi", &["[[*][-f][a][]]", "[cat][a]", "[ls]"]);
    check("[[ $a > 3 && -f b ]] && cat c", &["[[[*][$a][>][3][&][&][-f][b][]]]", "[cat][c]"]);
    check("case $x in a) cat a;; *) ls;; esac; pwd", &["[cat][a]", "[ls]", "[pwd]"]);
    check("f() { cat a; }; f", &["[cat][a]", "[f]"]);
    check("echo $((1 + (2*3))) x", &["[echo][$(())][x]"]);
    check("while read l; do echo $l; done < in", &["[read][l]", "[echo][$l]", "<in"]);
    check("! time ls", &["[time][ls]"]);
}

/// The words of a line according to bash, one per line.
fn by_bash(line: &str) -> Option<Vec<String>> {
    let script = format!("set -f\nprintf '%s\\n' {line}");
    let output = Process::new("bash").arg("--norc").arg("-c").arg(script).env_clear().output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().map(str::to_owned).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Quotes, escapes and variables have the same meaning as in bash.
    #[test]
    fn words_are_those_of_bash(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "a", "b c", " ", "'d e'", "\"f g\"", "\"h\\\"i\"", "\\ ", "'$x'", "\"\\$x\"", "\\'", "é", "''", "x=1",
                "\"'\"", "'\"'", "\\\\", "#k", "k#", "$'l\\tm'", "-n", "{", "\"\"",
            ]),
            1..10,
        )
    ) {
        let line = parts.concat();
        if let Some(words) = by_bash(&line) {
            let script = parse(&format!("printf '%s\\n' {line}"));
            prop_assert_eq!(script.commands.len(), 1);
            let ours: Vec<&str> = script.commands[0].words[2..].iter().map(|word| word.text.as_str()).collect();
            // Without arguments printf prints one empty line.
            let ours = if ours.is_empty() { vec![""] } else { ours };
            prop_assert_eq!(ours, words);
        }
    }
}

proptest! {
    #[test]
    fn noise_is_read_to_some_end(line in "(\\PC|[ \\t\\n;&|<>(){}$`'\"\\\\#=*?\\[\\]!~-]|<<|<<-|\\$\\(|\\$\\{|EOF|for|in|do|case|esac|\\[\\[){0,120}") {
        let script = parse(&line);
        prop_assert!(script.commands.iter().all(|command| command.words.len() <= line.len() * 64));
    }
}

#[test]
fn huge_lines_are_read_in_linear_time() {
    // With quadratic time, any of these would take many minutes.
    let size = 300_000;
    for unit in [
        "a ", "a;", "$(", "`", "\"", "'", "<<A ", "${", "((", "$a", "\\", "(", "a=$a$a;", "\n", "{", "é",
        "<(", "case ", "$'", "[[ <",
    ] {
        let script = parse(&unit.repeat(size / unit.len()));
        assert!(script.commands.len() < 100_000, "{unit}");
    }
    let value = format!("for f in {}; do {}; done", "value ".repeat(60), "cat $f$f$f ".repeat(10_000));
    parse(&value);
    let body = format!("cat > output.json <<'EOF'\n{}\nEOF\nls", "x\n".repeat(size / 2));
    assert_eq!(parse(&body).commands.len(), 2);
}
