//! Values of the file: texts with filled placeholders, commands as a line or a list, durations, ports.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::Condition;

/// A text; a number in the file becomes a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(pub(super) String);

impl Text {
    /// Fills placeholders with their defaults. Variables of this machine are never read, so a task is the same
    /// everywhere and cannot read secrets.
    pub(super) fn filled(text: &str) -> Result<Self, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                filled.push('$');
                rest = after;
                continue;
            }
            let inside = after.strip_prefix('{').and_then(|after| after.split_once('}'));
            let default = inside.and_then(|(inside, after)| {
                let name =
                    inside.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
                let default = name.strip_prefix(":-").or_else(|| name.strip_prefix('-'))?;
                Some((default, after))
            });
            let Some((default, after)) = default else {
                return Err(
                    "names a variable of this machine; write ${NAME:-VALUE}, or $$ for the sign itself"
                        .to_owned(),
                );
            };
            filled.push_str(default);
            rest = after;
        }
        filled.push_str(rest);
        Ok(Self(filled))
    }
}

/// Reads a value that is a text or a number in the file.
struct Scalar<T>(&'static str, fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for Scalar<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.1(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.1(&number.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.1(&number.to_string()).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Scalar("a text", Self::filled))
    }
}

/// Reads a list, or a single value instead of a list.
struct OneOrMany<T> {
    expected: &'static str,
    one: fn(&str) -> Result<Vec<T>, String>,
    kind: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        (self.one)(text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(values)
    }
}

/// A list of texts.
#[derive(Debug, Default)]
pub(super) struct Texts(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Vec::<Text>::deserialize(deserializer)?.into_iter().map(|text| text.0).collect()))
    }
}

/// A command: a line as in a shell, or a list of words.
#[derive(Debug, PartialEq)]
pub(super) struct Argv(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Argv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let one = |line: &str| {
            let line = Text::filled(line)?;
            let words = shlex::split(&line.0).ok_or("has an unclosed quotation mark")?;
            Ok(words.into_iter().map(Text).collect())
        };
        let words: Vec<Text> = deserializer.deserialize_any(OneOrMany {
            expected: "a command, or a list of its words",
            one,
            kind: PhantomData,
        })?;
        Ok(Self(words.into_iter().map(|word| word.0).collect()))
    }
}

/// A health check: a shell command, or a list that begins with `CMD`, `CMD-SHELL` or `NONE`.
#[derive(Debug, PartialEq)]
pub(super) struct Test(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Test {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let one = |line: &str| Ok(vec![Text("CMD-SHELL".to_owned()), Text::filled(line)?]);
        let words: Vec<Text> = deserializer.deserialize_any(OneOrMany {
            expected: "a command, or a list that begins with CMD, CMD-SHELL or NONE",
            one,
            kind: PhantomData,
        })?;
        let words: Vec<String> = words.into_iter().map(|word| word.0).collect();
        argv_of_test(&words)
            .map(Self)
            .ok_or_else(|| D::Error::custom("must begin with CMD, CMD-SHELL or NONE"))
    }
}

/// The command of a health check, as files and images write it. An empty command disables the check.
pub fn argv_of_test(words: &[String]) -> Option<Vec<String>> {
    match words {
        [kind, argv @ ..] if kind == "CMD" && !argv.is_empty() => Some(argv.to_vec()),
        [kind, script] if kind == "CMD-SHELL" => Some(["/bin/sh", "-c", script].map(str::to_owned).to_vec()),
        [kind] if kind == "NONE" => Some(Vec::new()),
        _ => None,
    }
}

/// Names with values: a table, or a list of `NAME=VALUE`.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Vec<(String, String)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table, or a list of NAME=VALUE")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(name) = table.next_key::<String>()? {
                    let value: Option<Text> = table.next_value()?;
                    pairs.push((name.clone(), value.ok_or_else(|| from_outside(&name))?.0));
                }
                Ok(pairs)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(Text(pair)) = list.next_element()? {
                    let (name, value) = pair.split_once('=').ok_or_else(|| from_outside(&pair))?;
                    pairs.push((name.to_owned(), value.to_owned()));
                }
                Ok(pairs)
            }
        }
        let pairs = deserializer.deserialize_any(PairsVisitor)?;
        match pairs.iter().find(|(name, _)| name.is_empty() || name.contains(['=', '\0'])) {
            Some((name, _)) => Err(D::Error::custom(format!("has no variable in `{name}`"))),
            None => Ok(Self(pairs)),
        }
    }
}

fn from_outside<E: Error>(name: &str) -> E {
    E::custom(format!("has no value for {name}; variables of this machine are not passed on"))
}

/// The services to wait for: a list of names, or a table with conditions.
#[derive(Debug, Default)]
pub(super) struct Needs(pub(super) Vec<(String, Condition)>);

#[derive(Clone, Copy, Deserialize)]
#[expect(clippy::enum_variant_names, reason = "the names of the format")]
#[serde(rename_all = "snake_case")]
enum ConditionName {
    ServiceStarted,
    ServiceHealthy,
    ServiceCompletedSuccessfully,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Need {
    condition: ConditionName,
}

impl<'de> Deserialize<'de> for Needs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NeedsVisitor;
        impl<'de> Visitor<'de> for NeedsVisitor {
            type Value = Needs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of services, or a table with conditions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Needs, A::Error> {
                let mut needs = Vec::new();
                while let Some((name, Need { condition })) = table.next_entry::<String, Need>()? {
                    let condition = match condition {
                        ConditionName::ServiceStarted => Condition::Started,
                        ConditionName::ServiceHealthy => Condition::Healthy,
                        ConditionName::ServiceCompletedSuccessfully => Condition::Completed,
                    };
                    needs.push((name, condition));
                }
                Ok(Needs(needs))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Needs, A::Error> {
                let mut needs = Vec::new();
                while let Some(name) = list.next_element::<String>()? {
                    needs.push((name, Condition::Started));
                }
                Ok(Needs(needs))
            }
        }
        deserializer.deserialize_any(NeedsVisitor)
    }
}

/// A duration such as `1m30s` or `500ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pause(pub(super) Duration);

impl<'de> Deserialize<'de> for Pause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Scalar("a duration such as 1m30s", |text| {
            duration(text).map(Self).ok_or_else(|| "is not a duration such as 1m30s or 500ms".to_owned())
        }))
    }
}

fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let count: u32 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        // Longer names first, because `ms` begins with `m`.
        let (unit, after) = [
            ("ms", Duration::from_millis(1)),
            ("us", Duration::from_micros(1)),
            ("h", Duration::from_hours(1)),
            ("m", Duration::from_mins(1)),
            ("s", Duration::from_secs(1)),
        ]
        .into_iter()
        .find_map(|(name, unit)| Some((unit, rest.strip_prefix(name)?)))?;
        total = total.checked_add(unit.checked_mul(count)?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// Exposed ports: `5432`, `"5432/tcp"`, `"8000-8003"`.
#[derive(Debug, Default)]
pub(super) struct Ports(pub(super) Vec<u16>);

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<Text>::deserialize(deserializer)?;
        let ports: Result<Vec<Vec<u16>>, String> = texts.iter().map(|Text(text)| ports(text)).collect();
        ports.map(|ports| Self(ports.concat())).map_err(D::Error::custom)
    }
}

/// Published ports: the last part is the port of the container.
#[derive(Debug, Default)]
pub(super) struct Published(pub(super) Vec<u16>);

impl<'de> Deserialize<'de> for Published {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<Text>::deserialize(deserializer)?;
        let own = |text: &str| text.rsplit(':').next().unwrap_or_default().to_owned();
        let ports: Result<Vec<Vec<u16>>, String> = texts.iter().map(|Text(text)| ports(&own(text))).collect();
        ports.map(|ports| Self(ports.concat())).map_err(D::Error::custom)
    }
}

fn ports(text: &str) -> Result<Vec<u16>, String> {
    let odd = || format!("has `{}`, which is not a TCP port", aec_base::text::printable(text));
    let numbers = text.strip_suffix("/tcp").unwrap_or(text);
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let first: u16 = first.parse().ok().filter(|port| *port > 0).ok_or_else(odd)?;
    let last: u16 = last.parse().ok().filter(|last| *last >= first).ok_or_else(odd)?;
    Ok((first..=last).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_their_defaults() {
        for (text, filled) in [
            ("plain", Some("plain")),
            ("a $$HOME b", Some("a $HOME b")),
            ("${PORT:-5432}/x", Some("5432/x")),
            ("${A-b}${C:-}", Some("b")),
            ("$HOME", None),
            ("${HOME}", None),
            ("${HOME", None),
            ("${HOME:?must}", None),
            ("cost: 5$", None),
        ] {
            assert_eq!(Text::filled(text).ok().map(|text| text.0).as_deref(), filled, "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, milliseconds) in [
            ("1m30s", Some(90_000)),
            ("500ms", Some(500)),
            ("2h", Some(7_200_000)),
            ("", None),
            ("5", None),
            ("s", None),
            ("5 s", None),
            ("99999999999s", None),
        ] {
            assert_eq!(duration(text).map(|duration| duration.as_millis()), milliseconds, "{text}");
        }
    }

    #[test]
    fn ports_are_tcp() {
        assert_eq!(ports("80"), Ok(vec![80]));
        assert_eq!(ports("8000-8002/tcp"), Ok(vec![8000, 8001, 8002]));
        for odd in ["", "0", "80/udp", "9-8", "70000", "x", "-"] {
            assert!(ports(odd).is_err(), "{odd}");
        }
    }
}
