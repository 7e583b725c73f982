//! The Python scanner against examples and noise.

use proptest::prelude::*;

use super::python::{CodeAct, scan};
use super::shell::Word;

fn shown(code: &str) -> Vec<String> {
    let name = |word: Word| if word.pattern { word.text + "~" } else { word.text };
    scan(code)
        .into_iter()
        .map(|act| match act {
            CodeAct::Read(word) => format!("read {}", name(word)),
            CodeAct::Write(word) => format!("write {}", name(word)),
            CodeAct::Append(word) => format!("append {}", name(word)),
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn files_are_found() {
    for (code, acts) in [
        ("open('a.csv')", &["read a.csv"][..]),
        ("with open(\"a\", mode='w', encoding='utf-8') as f:\n    f.write('b')", &["write a"]),
        ("json.dump(x, open('/workspace/output.json','w'), indent=2)", &["write /workspace/output.json"]),
        ("open('log','a').write(x)", &["append log"]),
        ("p = 'a'\nq = p + '.csv'\nopen(q)", &["read a.csv"]),
        (
            "base = Path('/workspace')\n(base / 'output.json').write_text(t)",
            &["write /workspace/output.json"],
        ),
        ("out = Path('/workspace') / 'output.json'\nout.write_text(t)", &["write /workspace/output.json"]),
        ("Path('a').read_text()", &["read a"]),
        ("pathlib.Path('a').open('w')", &["write a"]),
        ("df = pd.read_csv('in.csv'); df.to_json('out.json')", &["read in.csv", "write out.json"]),
        ("open(os.path.join('a', 'b'))", &["read a/b"]),
        ("for f in ['a', 'b']:\n    print(open(f).read())", &["read a", "read b"]),
        ("for f in sorted(glob.glob('in/*.csv')):\n    open(f)", &["List", "read in/*.csv~"]),
        ("d = 'in'\nopen(f'{d}/a.csv')", &["read in/a.csv"]),
        ("open(f'{unknown}/a.csv')", &[]),
        ("open(sys.argv[1], 'w')", &[]),
        ("# open('a')\ns = \"open('b')\"", &[]),
        ("'''\nopen('a')\n'''", &[]),
        ("p = 'a'\np = compute()\nopen(p)", &[]),
        ("shutil.copy('a', 'b')", &["read a", "write b"]),
        ("assert x == 1", &["Assert"]),
        ("print(math.pi * 2)", &["Compute"]),
        ("os.listdir('.')", &["List"]),
        ("s.replace('a', 'b')", &[]),
        ("os.replace('a', 'b')", &["read a", "write b"]),
        ("fs.writeFileSync('out.json', t)", &["write out.json"]),
    ] {
        assert_eq!(shown(code), acts, "{code}");
    }
}

proptest! {
    #[test]
    fn noise_is_read_to_some_end(code in "(\\PC|[\"'\\\\\n(){}\\[\\],.=/+#]|open|Path|for|in|'a'|f'\\{a\\}'|a){0,120}") {
        scan(&code);
    }
}

#[test]
fn huge_programs_are_read_in_linear_time() {
    for unit in ["a=''\n", "a+", "Path(", "open(", "'", "[", "'''", "\\", "f'{a}'+", "é", "a/'b'/"] {
        scan(&format!("a=''\n{}", unit.repeat(300_000 / unit.len())));
    }
    scan(&format!("a=['{}']\n{}", "x".repeat(1_000), "open(a)\n".repeat(100_000)));
}
