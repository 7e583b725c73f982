//! Values of any type in rows, read without building a tree.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aec_base::json::{Limits, check};
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A number; absent for any other value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnyNumber(pub(crate) Option<f64>);

/// A key, borrowed unless it has escapes.
#[derive(Debug)]
pub(crate) struct Key<'de>(pub(crate) Cow<'de, str>);

/// A text; absent for any other value.
#[derive(Debug, Default)]
pub(crate) struct AnyText<'de>(pub(crate) Option<Cow<'de, str>>);

struct NumberVisitor;
struct TextVisitor;

impl<'de> Deserialize<'de> for AnyNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor).map(Self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for AnyText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(|text| Self(text.unwrap_or_default()))
    }
}

/// The methods of a visitor of any value, for the values that it ignores.
macro_rules! passes_over {
    ($value:ty: $($method:ident($from:ty)),*) => {
        type Value = Option<$value>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a value")
        }

        $(fn $method<E>(self, _: $from) -> Result<Self::Value, E> {
            Ok(None)
        })*

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            while access.next_element::<IgnoredAny>()?.is_some() {}
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(None)
        }
    };
}

impl<'de> Visitor<'de> for NumberVisitor {
    passes_over!(f64: visit_bool(bool), visit_str(&str));

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "Python's floats have the same precision")]
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(number as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "Python's floats have the same precision")]
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number as f64))
    }
}

impl<'de> Visitor<'de> for TextVisitor {
    passes_over!(Cow<'de, str>: visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64));

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }
}

/// The members of an object that are numbers.
#[derive(Debug, Default)]
pub(crate) struct Numbers<'de>(pub(crate) IndexMap<Cow<'de, str>, f64>);

impl<'de> Deserialize<'de> for Numbers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Numbers<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut numbers = Numbers::default();
                while let Some((key, value)) = access.next_entry::<Key<'de>, AnyNumber>()? {
                    numbers.set(key.0, value.0);
                }
                Ok(numbers)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl<'de> Numbers<'de> {
    /// Of two members with the same name, the last wins.
    pub(crate) fn set(&mut self, key: Cow<'de, str>, value: Option<f64>) {
        match value {
            Some(value) => self.0.insert(key, value),
            None => self.0.swap_remove(&key),
        };
    }

    pub(crate) fn get(&self, key: &str) -> Option<f64> {
        self.0.get(key).copied()
    }
}

/// The text of the last user message of a prompt; texts of its parts are joined by line breaks.
pub(crate) fn query(prompt: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Said<'a> {
        #[serde(borrow)]
        role: AnyText<'a>,
        #[serde(borrow)]
        content: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow, default)]
        text: AnyText<'a>,
    }
    if let Ok(AnyText(Some(text))) = aec_base::json::from_str(prompt.get()) {
        return Some(text.into_owned());
    }
    let messages: Vec<Said<'_>> = aec_base::json::from_str(prompt.get()).ok()?;
    let last = messages.into_iter().rfind(|message| message.role.0.as_deref() == Some("user"))?;
    if let Ok(AnyText(Some(text))) = aec_base::json::from_str(last.content.get()) {
        return Some(text.into_owned());
    }
    let parts: Vec<Part<'_>> = aec_base::json::from_str(last.content.get()).ok()?;
    let texts: Vec<_> = parts.into_iter().filter_map(|part| part.text.0).collect();
    Some(texts.join("\n"))
}

/// A digest of JSON that does not depend on its formatting. Valid only within this process.
pub(crate) fn digest(json: &str) -> Option<u64> {
    check(json.as_bytes(), Limits::USUAL).ok()?;
    let mut hasher = DefaultHasher::new();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    Digesting(&mut hasher).deserialize(&mut deserializer).ok()?;
    Some(hasher.finish())
}

struct Digesting<'a>(&'a mut DefaultHasher);

impl<'de> DeserializeSeed<'de> for Digesting<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Digesting<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        0_u8.hash(self.0);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        (1_u8, value).hash(self.0);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        (2_u8, value).hash(self.0);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        (2_u8, value).hash(self.0);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        (3_u8, value.to_bits()).hash(self.0);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        (4_u8, value).hash(self.0);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        5_u8.hash(self.0);
        while access.next_element_seed(Digesting(&mut *self.0))?.is_some() {}
        6_u8.hash(self.0);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        7_u8.hash(self.0);
        while let Some(key) = access.next_key::<Key<'de>>()? {
            key.0.hash(self.0);
            access.next_value_seed(Digesting(&mut *self.0))?;
        }
        8_u8.hash(self.0);
        Ok(())
    }
}
