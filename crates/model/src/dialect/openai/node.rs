//! JSON for reading answers. Every field of an answer is read once and most are dropped, so an object is a list of its
//! fields: building a map takes longer than searching a list. Texts without escapes are borrowed.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Node<'a> {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Object<'a>),
}

/// The fields of an object. Of duplicate keys the last counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object<'a>(Vec<(Cow<'a, str>, Node<'a>)>);

impl Node<'_> {
    pub(super) fn is_null(&self) -> bool {
        *self == Self::Null
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.as_u64(),
            _ => None,
        }
    }
}

impl<'a> Object<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key, unless it is null.
    pub(super) fn get(&self, key: &str) -> Option<&Node<'a>> {
        let (_, value) = self.0.iter().rfind(|(name, _)| name == key)?;
        (!value.is_null()).then_some(value)
    }

    /// Removes a field; a missing one is null.
    pub(super) fn take(&mut self, key: &str) -> Node<'a> {
        let mut taken = Node::Null;
        self.0.retain_mut(|(name, value)| {
            let is_it = name == key;
            if is_it {
                taken = std::mem::take(value);
            }
            !is_it
        });
        taken
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(&str, &mut Node<'a>) -> bool) {
        self.0.retain_mut(|(name, value)| stays(name, value));
    }

    /// The remaining fields, without nulls.
    pub(super) fn rest(self) -> Map<String, Value> {
        let mut map = Map::new();
        for (name, value) in self.0 {
            map.insert(name.into_owned(), value.into());
        }
        map.retain(|_, value| !value.is_null());
        map
    }
}

impl From<Node<'_>> for Value {
    fn from(node: Node<'_>) -> Self {
        match node {
            Node::Null => Self::Null,
            Node::Bool(is) => Self::Bool(is),
            Node::Number(number) => Self::Number(number),
            Node::Text(text) => Self::String(text.into_owned()),
            Node::List(items) => items.into_iter().map(Self::from).collect(),
            Node::Object(Object(fields)) => {
                let field = |(name, value): (Cow<'_, str>, Node<'_>)| (name.into_owned(), Self::from(value));
                Self::Object(fields.into_iter().map(field).collect())
            }
        }
    }
}

impl From<Map<String, Value>> for Object<'_> {
    fn from(map: Map<String, Value>) -> Self {
        Self(map.into_iter().map(|(name, value)| (Cow::Owned(name), value.into())).collect())
    }
}

impl From<Value> for Node<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(is) => Self::Bool(is),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(Cow::Owned(text)),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(map) => Self::Object(map.into()),
        }
    }
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Node<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Node<'de>, E> {
                Ok(Node::Null)
            }

            fn visit_bool<E>(self, is: bool) -> Result<Node<'de>, E> {
                Ok(Node::Bool(is))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Node<'de>, E> {
                Ok(Node::Number(number.into()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Node<'de>, E> {
                Ok(Node::Number(number.into()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Node<'de>, E> {
                Ok(Number::from_f64(number).map_or(Node::Null, Node::Number))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Node<'de>, E> {
                Ok(Node::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Node<'de>, E> {
                Ok(Node::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = access.next_element()? {
                    items.push(item);
                }
                Ok(Node::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node<'de>, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some((key, value)) = access.next_entry()? {
                    // Keys in JSON are always texts.
                    if let Node::Text(key) = key {
                        fields.push((key, value));
                    }
                }
                Ok(Node::Object(Object(fields)))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,8}|[\"\\\\\n]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[ab\"é]{0,2}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn of_two_fields_with_one_key_the_last_counts() {
        let text = r#"{"a": 1, "b": 2, "a": 3}"#;
        let Node::Object(mut object) = serde_json::from_str(text).unwrap() else { panic!() };
        assert_eq!(object.get("a").and_then(Node::as_u64), Some(3));
        assert_eq!(Value::Object(object.clone().rest()), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(object.take("a").as_u64(), Some(3));
        assert!(object.get("a").is_none() && object.take("a").is_null());
    }

    proptest! {
        #[test]
        fn says_the_same_as_a_value(value in json()) {
            let text = value.to_string();
            let node: Node<'_> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&Value::from(node.clone()), &value);
            prop_assert_eq!(Node::from(value), node);
        }
    }
}
