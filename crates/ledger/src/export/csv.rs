//! Flat rows as CSV.

use std::borrow::Cow;
use std::io::{self, Write};

use super::Sink;
use super::columns::{self, COLUMNS, Cell};
use crate::expected::Absent;
use crate::read::Stored;

/// A header and one line per attempt.
pub(super) struct Table<W: Write> {
    writer: csv::Writer<W>,
}

impl<W: Write> Table<W> {
    pub(super) fn new(to: W) -> io::Result<Self> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(COLUMNS.iter().map(|column| column.name))?;
        Ok(Self { writer })
    }
}

impl<W: Write> Sink for Table<W> {
    fn take(&mut self, stored: &Stored, _: &[u8]) -> io::Result<()> {
        for column in &COLUMNS {
            match (column.value)(stored) {
                Cell::Text(text) => self.writer.write_field(neutral(&text.unwrap_or_default()).as_bytes())?,
                Cell::Integer(number) => {
                    self.writer.write_field(number.map(|number| number.to_string()).unwrap_or_default())?;
                }
                Cell::Number(number) => {
                    self.writer.write_field(number.map(|number| number.to_string()).unwrap_or_default())?;
                }
            }
        }
        Ok(self.writer.write_record(None::<&[u8]>)?)
    }

    fn withheld(&mut self, absent: &Absent) -> io::Result<()> {
        for column in &COLUMNS {
            let text = match columns::withheld(column, absent) {
                Cell::Text(text) => text.unwrap_or_default(),
                Cell::Integer(number) => number.map(|number| number.to_string()).unwrap_or_default(),
                Cell::Number(_) => String::new(),
            };
            self.writer.write_field(neutral(&text).as_bytes())?;
        }
        Ok(self.writer.write_record(None::<&[u8]>)?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.writer.flush()
    }
}

/// A text that no spreadsheet takes for a formula: texts that begin like one, except numbers, get an apostrophe in
/// front.
fn neutral(text: &str) -> Cow<'_, str> {
    let number = || {
        text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
            && text.parse::<f64>().is_ok()
    };
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !number() {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::neutral;

    #[test]
    fn formulas_become_text_and_numbers_stay_numbers() {
        for formula in [
            "=1+1",
            "+cmd|' /C calc'!A0",
            "-2+3",
            "@SUM(1)",
            "\t=1",
            "\r=1",
            "-",
            "-inf",
            "=HYPERLINK(\"x\")",
        ] {
            assert_eq!(neutral(formula), format!("'{formula}"));
        }
        for plain in ["", "-1.5", "+2e-3", "-0", "a=b", "0.5", "beam"] {
            assert_eq!(neutral(plain), plain);
        }
    }
}
