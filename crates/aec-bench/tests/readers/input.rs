//! Hostile inputs, the same in every run.

use serde_json::Value;

/// Fragments that mean something in one of the formats.
const FRAGMENTS: [&[u8]; 40] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"'",
    b"\\",
    b",",
    b":",
    b"=",
    b".",
    b"-",
    b"#",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"null",
    b"true",
    b"NaN",
    b"1e999",
    b"-0",
    b"9223372036854775808",
    b"0x1",
    b"\\ud800",
    b"\\u0000",
    b"&a ",
    b"*a",
    b"<<: *a",
    b"!!str ",
    b"---\n",
    b"[[",
    b"]]",
    b"\"\"\"",
    b"data: ",
    b"\n\n",
    b"```",
    b"\xe2\x80\xae",
    b"{}",
];

/// A small generator: the same numbers everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (most.max(1) as u64)).unwrap()
    }
}

/// The seed after one to six changes.
pub(super) fn mutation(seed: &[u8], number: usize) -> Vec<u8> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + 1 + dice.below(24)).min(bytes.len());
        match dice.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 if at < bytes.len() => drop(bytes.drain(at..end)),
            2 => bytes.truncate(at),
            3 if at < end => {
                let piece = bytes[at..end].repeat(1 + dice.below(200));
                bytes.splice(at..at, piece);
            }
            4 if at < bytes.len() => bytes[at] = u8::try_from(dice.below(256)).unwrap(),
            5 if at < end => {
                let piece: Vec<u8> = bytes.drain(at..end).collect();
                let to = dice.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            _ => {
                let piece = FRAGMENTS[dice.below(FRAGMENTS.len())].repeat(1 + dice.below(3));
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// Inputs that are small or harmless to look at and large to read.
pub(super) fn bombs() -> Vec<(String, Vec<u8>)> {
    let repeated = |text: &str, times: usize| text.repeat(times);
    let size = if aec_xtest::full() { 4 } else { 1 };
    let mut bombs: Vec<(&str, String)> = Vec::new();
    for levels in [20_000, 200_000] {
        bombs.push(("deep lists", repeated("[", levels) + &repeated("]", levels)));
        bombs.push(("deep open lists", repeated("[", levels)));
        bombs.push(("deep tables", repeated("{\"a\":", levels) + "1" + &repeated("}", levels)));
        bombs.push(("deep open tables", repeated("{\"a\":[", levels)));
        bombs.push(("a key of many parts", format!("{}a = 1\n", repeated("a.", levels))));
        bombs.push(("a heading of many parts", format!("[{}a]\nb = 1\n", repeated("a.", levels))));
        bombs.push(("deep inline tables", format!("a = {}", repeated("{a=", levels))));
        bombs.push(("deep blocks", repeated("- ", levels) + "a"));
        bombs.push(("deep questions", repeated("? ", levels)));
    }
    bombs.push((
        "inline tables with long keys",
        format!("a = {}", repeated(&format!("{{{}a =", repeated("a.", 60)), 70)),
    ));
    let keys = |form: fn(usize) -> String| (0..200_000).map(form).collect::<String>();
    bombs.push(("many keys", format!("{{{}\"z\":0}}", keys(|n| format!("\"k{n}\":{n},")))));
    bombs.push(("many equal keys", format!("{{{}\"a\":0}}", keys(|_| "\"a\":0,".to_owned()))));
    bombs.push(("many lines of YAML", keys(|n| format!("k{n}: {n}\n"))));
    bombs.push(("many lines of TOML", keys(|n| format!("k{n} = {n}\n"))));
    bombs.push(("many tables of TOML", keys(|n| format!("[t{n}]\n"))));
    bombs.push(("many elements of TOML", keys(|_| "[[t]]\n".to_owned())));
    bombs.push(("many items of YAML", repeated("- a\n", 150_000 * size)));
    bombs.push(("many numbers", format!("[{}0]", repeated("0,", 500_000 * size))));
    bombs.push(("many lists", format!("[{}[]]", repeated("[],", 300_000 * size))));
    bombs.push(("many tables", format!("[{}{{}}]", repeated("{},", 300_000 * size))));
    bombs.push(("many rows", repeated("{\"a\":1}\n", 50_000 * size)));
    bombs.push(("many events", repeated("data: {\"a\":1}\n\n", 30_000 * size)));
    bombs.push(("many lines of an event", repeated("data: x\n", 100_000 * size)));
    bombs.push(("a long text", format!("\"{}\"", repeated("x", 1_000_000 * size))));
    bombs.push(("a long escaped text", format!("\"{}\"", repeated("\\u0041", 150_000 * size))));
    bombs.push(("a long open text", format!("\"{}", repeated("\\\"", 300_000 * size))));
    bombs.push(("a long line", repeated("a", 1_000_000 * size)));
    bombs.push(("a long number", repeated("9", 300_000 * size)));
    bombs.push(("a long fraction", format!("0.{}", repeated("3", 300_000 * size))));
    bombs.push(("a huge exponent", format!("1e{}", repeated("9", 100_000))));
    bombs.push(("a long comment", format!("# {}", repeated("#", 500_000 * size))));
    bombs.push(("empty lines", repeated("\n", 500_000 * size)));
    bombs.push(("open brackets of another kind", repeated("{", 200_000 * size)));
    bombs.push(("quotes", repeated("'\"", 200_000 * size)));
    bombs.push(("fences", repeated("```json\n{\n", 30_000 * size)));
    bombs.push(("many openings", repeated("{\"a\":[", 30_000) + &repeated("1,", 200_000)));
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..40 {
        let alias = format!("*a{}, ", n - 1).repeat(9);
        laughs.push_str(&format!("a{n}: &a{n} [{}]\n", alias.trim_end_matches(", ")));
    }
    bombs.push(("aliases of aliases", laughs));
    bombs.push(("many aliases", format!("a: &a [x]\nb: [{}*a]\n", repeated("*a, ", 200_000))));
    bombs.push((
        "an alias of a long text",
        format!("a: &a {}\nb: [{}*a]\n", repeated("x", 100_000), repeated("*a, ", 40_000)),
    ));
    bombs.push(("an alias of itself", "a: &a [*a]\n".to_owned()));
    bombs.into_iter().map(|(name, text)| (format!("{name} ({})", text.len()), text.into_bytes())).collect()
}

/// Copies of a seed with the bomb as one of its values, if the seed is JSON or has lines of JSON and the bomb begins like
/// a value.
pub(super) fn planted(seed: &[u8], bomb: &[u8]) -> Vec<Vec<u8>> {
    const MARK: &str = "@@bomb@@";
    const MOST: usize = 3;
    if !matches!(bomb, [b'[' | b'{' | b'"' | b'0'..=b'9', ..]) {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(seed);
    let mut planted = Vec::new();
    let whole = serde_json::from_str::<Value>(&text).ok().map(|value| (0, text.len(), value));
    let mut at = 0;
    let lines = text.split_inclusive('\n').filter_map(|line| {
        let start = at;
        at += line.len();
        let from = start + line.find('{')?;
        let end = start + line.trim_end().len();
        let value = serde_json::from_str(text.get(from..end)?).ok()?;
        Some((from, end, value))
    });
    for (from, end, value) in whole.map_or_else(|| lines.take(2).collect(), |whole| vec![whole]) {
        for number in 0..MOST {
            let mut value: Value = value.clone();
            let mut left = number;
            if !mark(&mut value, &mut left, MARK) {
                break;
            }
            let marked = value.to_string();
            let (front, back) = marked.split_once(&format!("\"{MARK}\"")).unwrap();
            planted.push([&seed[..from], front.as_bytes(), bomb, back.as_bytes(), &seed[end..]].concat());
        }
    }
    planted
}

/// Puts the mark in place of a value, after passing over `left` others.
fn mark(value: &mut Value, left: &mut usize, with: &str) -> bool {
    let inner: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    };
    for item in inner {
        if *left == 0 {
            *item = with.into();
            return true;
        }
        *left -= 1;
        if mark(item, left, with) {
            return true;
        }
    }
    false
}
