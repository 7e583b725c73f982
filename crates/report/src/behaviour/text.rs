//! Cuts text at character boundaries.

/// The beginning and the end of a text of more than `most` characters, with the number of omitted ones between them.
pub(crate) fn cut(text: &str, most: usize) -> String {
    // A text has at least as many bytes as characters, so most texts need no counting.
    if text.len() <= most {
        return text.to_owned();
    }
    let characters = text.chars().count();
    if characters <= most {
        return text.to_owned();
    }
    let tail = most / 3;
    let head_end = text.char_indices().nth(most - tail).map_or(text.len(), |(at, _)| at);
    let tail_start =
        if tail == 0 { text.len() } else { text.char_indices().rev().nth(tail - 1).map_or(0, |(at, _)| at) };
    format!("{}[… {} characters left out …]{}", &text[..head_end], characters - most, &text[tail_start..])
}

/// At most the first `most` bytes, complete characters only.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_stays() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("abcdefghij", 6), "abcd[… 4 characters left out …]ij");
        assert_eq!(cut("äöüß", 0), "[… 4 characters left out …]");
        assert_eq!(beginning("äö", 3), "ä");
        assert_eq!(beginning("a", 9), "a");
    }

    proptest! {
        #[test]
        fn a_cut_text_keeps_its_ends(text in "\\PC{0,80}", most in 3..40_usize) {
            let shown = cut(&text, most);
            let count = text.chars().count();
            if count <= most {
                prop_assert_eq!(shown, text);
            } else {
                prop_assert_eq!(shown.chars().next(), text.chars().next());
                prop_assert_eq!(shown.chars().last(), text.chars().last());
            }
        }
    }
}
