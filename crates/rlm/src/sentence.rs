//! Finds the ends of sentences, as far as possible without a dictionary.

/// Abbreviations: a full stop after them does not end a sentence.
const ABBREVIATIONS: [&str; 24] = [
    "e.g", "i.e", "cf", "vs", "ca", "approx", "no", "nos", "fig", "figs", "eq", "cl", "sec", "ref", "refs",
    "dr", "mr", "mrs", "ms", "st", "min", "max", "incl", "dia",
];

/// Byte offsets after each sentence and the blanks that follow it, in order. The end of the text is not included.
pub(crate) fn ends(text: &str) -> impl Iterator<Item = usize> {
    let mut letters = text.char_indices().peekable();
    let mut word_start = 0;
    std::iter::from_fn(move || {
        while let Some((at, letter)) = letters.next() {
            match letter {
                '.' | '!' | '?' | '。' | '！' | '？' => {
                    let wide = !letter.is_ascii();
                    while letters
                        .next_if(|(_, next)| matches!(next, '.' | '!' | '?' | ')' | '"' | '”' | '’'))
                        .is_some()
                    {}
                    let stop_is_word_end = letters.peek().is_some_and(|(_, next)| next.is_whitespace());
                    if !(wide || stop_is_word_end) {
                        continue;
                    }
                    let word = text.get(word_start..at).unwrap_or_default();
                    while letters.next_if(|(_, next)| next.is_whitespace()).is_some() {}
                    let (next_at, next) = letters.peek().copied()?;
                    word_start = next_at;
                    if letter == '.' && (is_abbreviation(word) || next.is_lowercase()) {
                        continue;
                    }
                    return Some(next_at);
                }
                _ if letter.is_whitespace() => word_start = at + letter.len_utf8(),
                _ => {}
            }
        }
        None
    })
}

/// Whether the word before a full stop is an abbreviation or an initial.
fn is_abbreviation(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '[', '"', '“', '‘']);
    let mut letters = word.chars();
    let initial = letters.next().is_some_and(char::is_uppercase) && letters.next().is_none();
    initial || ABBREVIATIONS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let mut start = 0;
        let mut found: Vec<&str> = ends(text)
            .map(|end| {
                let sentence = &text[start..end];
                start = end;
                sentence.trim_end()
            })
            .collect();
        found.push(&text[start..]);
        found
    }

    #[test]
    fn sentences_end_where_people_end_them() {
        assert_eq!(sentences("One is 1.5 m. Two! Three?"), ["One is 1.5 m.", "Two!", "Three?"]);
        assert_eq!(
            sentences("See Fig. 3 for it. J. Smith wrote (it.) Then"),
            ["See Fig. 3 for it.", "J. Smith wrote (it.)", "Then"]
        );
        assert_eq!(sentences("e.g. This is one. so is this"), ["e.g. This is one. so is this"]);
        assert_eq!(sentences("一。二"), ["一。", "二"]);
        assert_eq!(sentences(""), [""]);
        assert_eq!(sentences("a.  "), ["a.  "]);
    }

    proptest! {
        #[test]
        fn ends_are_inside_and_in_order(text in "([a-zA-Z.!? \n\u{3000}]|\\PC){0,60}") {
            let mut last = 0;
            for end in ends(&text) {
                prop_assert!(end > last && end < text.len() && text.is_char_boundary(end));
                last = end;
            }
        }
    }
}
