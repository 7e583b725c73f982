//! Model names with `*`, matched against whole names. A name that merely contains another is a different model.

/// A name or pattern, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(String);

/// The order of patterns: plain names first, then the longer prefix without `*`, then more letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Specificity {
    exact: bool,
    beginning: usize,
    letters: usize,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_lowercase())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn specificity(&self) -> Specificity {
        let beginning = self.0.find('*');
        Specificity {
            exact: beginning.is_none(),
            beginning: beginning.unwrap_or(self.0.len()),
            letters: self.0.len() - self.0.matches('*').count(),
        }
    }

    /// Whether the pattern matches the whole name, in lower case.
    pub(super) fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        for piece in pieces {
            // The earliest match leaves the most text for the following pieces.
            let Some(at) = rest.find(piece) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last)
    }

    /// Whether both match some common name.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (left, right) = (self.0.as_bytes(), other.0.as_bytes());
        // Nearly all pairs begin differently. Every command that knows prices compares all of them.
        let differ =
            |(a, b): (&u8, &u8)| (*a == b'*' || *b == b'*' || a != b).then_some(*a != b'*' && *b != b'*');
        if left.iter().zip(right).find_map(differ) == Some(true) {
            return false;
        }
        // `meet[j]` says whether the rest of `left` and the rest of `right` from `j` can match the same name.
        let mut meet = vec![false; right.len() + 1];
        for i in (0..=left.len()).rev() {
            let below = meet.clone();
            for j in (0..=right.len()).rev() {
                let left_star = left.get(i) == Some(&b'*');
                let right_star = right.get(j) == Some(&b'*');
                meet[j] = match (left.get(i), right.get(j)) {
                    (None, None) => true,
                    _ if left_star && (below[j] || j < right.len() && meet[j + 1]) => true,
                    _ if right_star && (meet[j + 1] || i < left.len() && below[j]) => true,
                    (Some(a), Some(b)) => !left_star && !right_star && a == b && below[j + 1],
                    _ => false,
                };
            }
        }
        meet[0]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_names_match_and_parts_do_not() {
        let matches = |pattern: &str, name: &str| Pattern::new(pattern).matches(name);
        assert!(matches("O3", "o3"));
        for other in ["o3-mini", "my-o3", "gpt-o3-like", "o", ""] {
            assert!(!matches("o3", other), "{other}");
        }
        assert!(matches("claude-sonnet-4-*", "claude-sonnet-4-20250514"));
        assert!(!matches("claude-sonnet-4-*", "us.anthropic.claude-sonnet-4-20250514"));
        assert!(matches("a*b*c", "abc") && matches("a*b*c", "axbxbxc") && !matches("a*b*c", "acb"));
        assert!(!matches("ab*ba", "aba"));
        assert!(matches("*", "") && matches("*", "anything"));
    }

    #[test]
    fn names_come_first_then_longer_beginnings() {
        let order = ["*", "*x*", "gpt-*", "gpt-4*", "gpt-4*x", "gpt-4o"];
        let ranks: Vec<_> = order.iter().map(|text| Pattern::new(text).specificity()).collect();
        assert!(ranks.is_sorted() && ranks.windows(2).all(|pair| pair[0] < pair[1]));
    }

    fn slow_match(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|skip| slow_match(rest, &name[skip..])),
            Some((letter, rest)) => name.first() == Some(letter) && slow_match(rest, &name[1..]),
        }
    }

    fn names(longest: u32) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..longest {
            last = last.iter().flat_map(|name| [format!("{name}a"), format!("{name}b")]).collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_definition(pattern in "[ab*]{0,6}", name in "[ab]{0,8}") {
            let fast = Pattern::new(&pattern).matches(&name);
            prop_assert_eq!(fast, slow_match(pattern.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn overlap_agrees_with_the_names(left in "[ab*]{0,4}", right in "[ab*]{0,4}") {
            let (left, right) = (Pattern::new(&left), Pattern::new(&right));
            // If two patterns of four letters overlap, they do so on a name of at most eight.
            let common = names(8).iter().any(|name| left.matches(name) && right.matches(name));
            prop_assert_eq!(left.overlaps(&right), common);
        }
    }
}
