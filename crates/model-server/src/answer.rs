//! The server's answers: drawn, echoed or scripted, cut to the tokens that the request allows.

use aec_model::script::{Ending, ScriptedReply};

use crate::ask::{Ask, Choice, OfferedTool};
use crate::draw::{Draws, mix};
use crate::example::example;
use crate::options::{Answers, Options};

const WORDS: [&str; 64] = [
    "beam",
    "column",
    "load",
    "moment",
    "shear",
    "span",
    "slab",
    "footing",
    "cable",
    "voltage",
    "current",
    "drop",
    "duct",
    "flow",
    "pump",
    "head",
    "pipe",
    "valve",
    "pressure",
    "loss",
    "wall",
    "roof",
    "site",
    "drain",
    "culvert",
    "rainfall",
    "runoff",
    "slope",
    "soil",
    "bearing",
    "settlement",
    "pile",
    "steel",
    "concrete",
    "timber",
    "weld",
    "bolt",
    "plate",
    "joint",
    "frame",
    "brace",
    "deflection",
    "factor",
    "limit",
    "state",
    "safety",
    "check",
    "table",
    "clause",
    "value",
    "design",
    "result",
    "given",
    "assume",
    "apply",
    "compare",
    "exceeds",
    "satisfies",
    "governs",
    "equals",
    "total",
    "unit",
    "first",
    "therefore",
];

/// Longest token in bytes.
const LONGEST_TOKEN: usize = 16;

/// An answer: its parts in order, and why it ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) parts: Vec<Part>,
    pub(crate) ending: Ending,
    /// The stop text that ended it.
    pub(crate) stop_text: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Thought { text: String, signature: String },
    Text(String),
    Call { id: String, name: String, arguments: String },
}

impl Part {
    /// The text that a stream sends piece by piece.
    pub(crate) fn content(&self) -> &str {
        match self {
            Self::Thought { text, .. } | Self::Text(text) => text,
            Self::Call { arguments, .. } => arguments,
        }
    }

    /// The number of tokens. The name of a tool counts as one.
    pub(crate) fn tokens(&self) -> u64 {
        pieces(self.content()).count() as u64 + u64::from(matches!(self, Self::Call { .. }))
    }
}

impl Answer {
    pub(crate) fn tokens(&self) -> u64 {
        self.parts.iter().map(Part::tokens).sum()
    }

    pub(crate) fn thought_tokens(&self) -> u64 {
        self.parts.iter().filter(|part| matches!(part, Part::Thought { .. })).map(Part::tokens).sum()
    }

    /// Ends the answer after `most` tokens, if it is longer. A tool call that does not fit is left out.
    pub(crate) fn limit(&mut self, most: u64) {
        let mut left = most;
        for index in 0..self.parts.len() {
            let tokens = self.parts[index].tokens();
            if tokens <= left {
                left -= tokens;
                continue;
            }
            let keep = usize::try_from(left).unwrap_or(usize::MAX);
            let part = &mut self.parts[index];
            let length = pieces(part.content()).take(keep).map(str::len).sum();
            match part {
                Part::Thought { text, .. } | Part::Text(text) if left > 0 => {
                    text.truncate(length);
                    self.parts.truncate(index + 1);
                }
                _ => self.parts.truncate(index),
            }
            self.ending = Ending::Length;
            self.stop_text = None;
            return;
        }
    }
}

/// The tokens of a text: words with the blanks before them, in pieces of bounded length.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let piece = first_piece(rest);
        rest = &rest[piece.len()..];
        (!piece.is_empty()).then_some(piece)
    })
}

/// The first token of a text.
pub(crate) fn first_piece(text: &str) -> &str {
    let mut in_word = false;
    for (at, byte) in text.bytes().enumerate() {
        let blank = byte.is_ascii_whitespace();
        if (blank && in_word) || (at >= LONGEST_TOKEN && text.is_char_boundary(at)) {
            return &text[..at];
        }
        in_word |= !blank;
    }
    text
}

/// Composes the answer to a request; the caller derives `draw` from the seed and the request.
pub(crate) fn compose(options: &Options, ask: &Ask, draw: u64) -> Answer {
    let mut draws = Draws::new(draw);
    let scripted = match &options.answers {
        Answers::Script(script) => script.reply(&ask.first_text, ask.turns),
        Answers::Drawn | Answers::Echo => None,
    };
    let mut answer = match scripted {
        Some(reply) => recite(reply, draw),
        None => improvise(options, ask, &mut draws),
    };
    end_at_stop_texts(&mut answer, &ask.stop_texts);
    if let Some(most) = ask.most_tokens {
        answer.limit(most);
    }
    answer
}

fn improvise(options: &Options, ask: &Ask, draws: &mut Draws) -> Answer {
    let mut parts = Vec::new();
    if ask.thinks {
        let length = draws.between(4, 12);
        parts.push(thought(words(length, draws), draws.next()));
    }
    if let Some(tool) = choose_tool(options, ask, draws) {
        let arguments = example(&tool.schema, draws).to_string();
        parts.push(Part::Call { id: draws.letters(24), name: tool.name.clone(), arguments });
        return Answer { parts, ending: Ending::ToolCalls, stop_text: None };
    }
    parts.push(Part::Text(match (&options.answers, &ask.schema) {
        (Answers::Echo, _) => ask.user_text.clone(),
        (_, Some(schema)) => example(schema, draws).to_string(),
        _ => {
            let range = options.output_tokens;
            words(draws.between(range.least.into(), range.most.into()), draws)
        }
    }));
    Answer { parts, ending: Ending::End, stop_text: None }
}

fn choose_tool<'a>(options: &Options, ask: &'a Ask, draws: &mut Draws) -> Option<&'a OfferedTool> {
    if ask.tools.is_empty() {
        return None;
    }
    let drawn = draws.unit() < options.tool_calls;
    let any = ask.tools.get(usize::try_from(draws.next() % ask.tools.len() as u64).unwrap_or(0));
    match &ask.choice {
        Choice::Never => None,
        Choice::Any => any,
        Choice::Auto => any.filter(|_| drawn),
        Choice::Named(name) => ask.tools.iter().find(|tool| tool.name == *name),
    }
}

fn recite(reply: &ScriptedReply, draw: u64) -> Answer {
    let mut parts = Vec::new();
    parts.extend(reply.reasoning.as_ref().map(|text| thought(text.clone(), draw)));
    parts.extend(reply.text.as_ref().map(|text| Part::Text(text.clone())));
    for (index, call) in reply.tool_calls.iter().enumerate() {
        let id = Draws::new(mix(draw, index as u64)).letters(24);
        parts.push(Part::Call { id, name: call.name.clone(), arguments: call.arguments_text() });
    }
    Answer { parts, ending: reply.ending(), stop_text: None }
}

fn thought(text: String, draw: u64) -> Part {
    Part::Thought { text, signature: Draws::new(draw).letters(64) }
}

fn words(count: u64, draws: &mut Draws) -> String {
    let mut text = String::with_capacity(usize::try_from(count).unwrap_or(0).min(1 << 16) * 8);
    for index in 0..count {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(WORDS[usize::try_from(draws.next() % WORDS.len() as u64).unwrap_or(0)]);
    }
    text
}

fn end_at_stop_texts(answer: &mut Answer, stop_texts: &[String]) {
    for index in 0..answer.parts.len() {
        let Part::Text(text) = &mut answer.parts[index] else { continue };
        let first = stop_texts
            .iter()
            .filter(|stop| !stop.is_empty())
            .filter_map(|stop| Some((text.find(stop.as_str())?, stop)))
            .min_by_key(|(at, _)| *at);
        if let Some((at, stop)) = first {
            text.truncate(at);
            answer.parts.truncate(index + 1);
            answer.ending = Ending::StopText;
            answer.stop_text = Some(stop.clone());
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::options::Range;
    use crate::route::Form;
    use aec_model::script::Script;

    fn ask(more: &Value) -> Ask {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "one two three"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        crate::ask::parse(Form::OpenAi, None, false, body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn drawn_answers_keep_to_their_range_and_their_seed() {
        let options = Options { output_tokens: Range { least: 5, most: 9 }, ..Options::default() };
        for draw in 0..200 {
            let answer = compose(&options, &ask(&json!({})), draw);
            assert!((5..=9).contains(&answer.tokens()), "{answer:?}");
            assert_eq!(answer, compose(&options, &ask(&json!({})), draw));
        }
    }

    #[test]
    fn the_limit_ends_the_answer() {
        let echo = Options { answers: Answers::Echo, ..Options::default() };
        let limited = compose(&echo, &ask(&json!({"max_tokens": 2})), 0);
        assert_eq!((limited.parts, limited.ending), (vec![Part::Text("one two".to_owned())], Ending::Length));
        let whole = compose(&echo, &ask(&json!({"max_tokens": 3})), 0);
        assert_eq!(whole.ending, Ending::End);
        let stopped = compose(&echo, &ask(&json!({"stop": [" three", " two"]})), 0);
        assert_eq!(stopped.parts, vec![Part::Text("one".to_owned())]);
        assert_eq!((stopped.ending, stopped.stop_text.as_deref()), (Ending::StopText, Some(" two")));
    }

    #[test]
    fn a_call_that_does_not_fit_is_left_out() {
        let tools = json!([{"function": {"name": "f", "parameters": {"type": "object"}}}]);
        let forced = json!({"tools": tools, "tool_choice": "required", "max_tokens": 1});
        let answer = compose(&Options::default(), &ask(&forced), 0);
        assert_eq!((answer.parts, answer.ending), (Vec::new(), Ending::Length));
    }

    #[test]
    fn tools_are_called_as_often_as_asked() {
        let tools = json!([{"function": {"name": "f", "parameters": {"type": "object"}}}]);
        let calls = |share, choice: &str| {
            let options = Options { tool_calls: share, ..Options::default() };
            let ask = ask(&json!({"tools": tools, "tool_choice": choice}));
            (0..1_000).filter(|draw| compose(&options, &ask, *draw).ending == Ending::ToolCalls).count()
        };
        assert_eq!(calls(0.0, "auto"), 0);
        assert!((400..600).contains(&calls(0.5, "auto")));
        assert_eq!(calls(1.0, "none"), 0);
        assert_eq!(calls(0.0, "required"), 1_000);
    }

    #[test]
    fn scripts_are_followed_turn_by_turn() {
        let script: Script = serde_json::from_value(json!({"replies": [
            {"reasoning": "hm", "tool_calls": [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": "{bad"}]},
            {"text": "done"}]}))
        .unwrap();
        let options = Options { answers: Answers::Script(Arc::new(script)), ..Options::default() };
        let first = compose(&options, &ask(&json!({})), 1);
        assert_eq!(first.ending, Ending::ToolCalls);
        let contents: Vec<&str> = first.parts.iter().map(Part::content).collect();
        assert_eq!(contents, ["hm", "{\"a\":1}", "{bad"]);
        let later =
            json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]});
        let second = compose(&options, &ask(&later), 1);
        assert_eq!((second.parts, second.ending), (vec![Part::Text("done".to_owned())], Ending::End));
    }

    proptest::proptest! {
        #[test]
        fn tokens_are_the_text(text in "\\PC{0,80}|[ a-z\n]{0,80}") {
            let parts: Vec<&str> = pieces(&text).collect();
            proptest::prop_assert_eq!(parts.concat(), text.as_str());
            proptest::prop_assert!(parts.iter().all(|piece| piece.len() < LONGEST_TOKEN + 4));
        }

        #[test]
        fn a_limited_answer_has_at_most_so_many_tokens(text in "[ a-z]{0,80}", thought_text in "[ a-z]{0,40}", most in 0_u64..30) {
            let call = Part::Call { id: String::new(), name: "f".to_owned(), arguments: text.clone() };
            let mut answer = Answer {
                parts: vec![thought(thought_text, 0), Part::Text(text), call],
                ending: Ending::ToolCalls,
                stop_text: None,
            };
            let before = answer.tokens();
            answer.limit(most);
            proptest::prop_assert!(answer.tokens() <= most);
            proptest::prop_assert_eq!(answer.ending == Ending::Length, before > most);
        }
    }
}
