//! What to do about a model without a price.

use std::fmt;

/// A model without a price, by the names under which price lists look for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub provider: String,
    pub model: String,
}

impl Missing {
    /// The ways out, for a user who has a budget in dollars. The row stands there as it must be written, except for the
    /// dollars: a file in which they are left as they are is refused, so that no price is a forgotten zero.
    pub fn ways_out(&self) -> String {
        format!(
            "pass --allow-unpriced (its tokens then count, its money does not), or write its price, in dollars per \
             million tokens, to configs/prices.toml:\n{self}"
        )
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Strings of JSON are strings of TOML.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        writeln!(f, "[[price]]\nprovider = {}\nmodel = {}", quoted(&self.provider), quoted(&self.model))?;
        write!(f, "input = DOLLARS\noutput = DOLLARS")
    }
}

#[cfg(test)]
mod tests {
    use super::super::PriceList;
    use super::*;

    #[test]
    fn the_row_is_one_that_the_list_reads() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("prices.toml");
        let missing = Missing { provider: "openai".to_owned(), model: "gpt-\"9\"".to_owned() };
        let advice = missing.ways_out();
        assert!(advice.contains("--allow-unpriced"), "{advice}");
        std::fs::write(&path, missing.to_string()).unwrap();
        assert!(PriceList::with_user_file(&path).is_err(), "nobody can leave the dollars out");
        std::fs::write(&path, missing.to_string().replace("DOLLARS", "2.50")).unwrap();
        let list = PriceList::with_user_file(&path).unwrap();
        assert!(list.find("openai", "gpt-\"9\"", None).is_some());
    }
}
