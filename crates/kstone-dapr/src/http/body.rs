//! The JSON that clients send.

use std::collections::HashMap;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::write::{Concurrency, Expected, Operation, check_consistency};

/// One key in a request to save or to delete.
#[derive(Debug, Deserialize)]
struct OneKey<'a> {
    key: String,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    etag: Option<String>,
    #[serde(default)]
    metadata: Option<HashMap<String, Text>>,
    #[serde(default)]
    options: Option<Options>,
}

#[derive(Debug, Default, Deserialize)]
struct Options {
    concurrency: Option<String>,
    consistency: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Keys {
    keys: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Transaction<'a> {
    #[serde(borrow)]
    operations: Vec<OneOperation<'a>>,
    #[serde(default)]
    metadata: Option<HashMap<String, Text>>,
}

#[derive(Debug, Deserialize)]
struct OneOperation<'a> {
    operation: String,
    #[serde(borrow)]
    request: OneKey<'a>,
}

/// What metadata holds: text. People write numbers without quotes too.
#[derive(Debug, Clone)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Text, E> {
                Ok(Text(flag.to_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// What metadata there is for a key: its own, and what is said about the whole request.
fn metadata(
    own: Option<HashMap<String, Text>>,
    of_all: &HashMap<String, String>,
) -> HashMap<String, String> {
    let mut all = of_all.clone();
    all.extend(own.into_iter().flatten().map(|(name, Text(value))| (name, value)));
    all
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| Error::malformed(format!("failed deserializing the body: {error}")))
}

impl OneKey<'_> {
    fn operation(self, upsert: bool, of_all: &HashMap<String, String>) -> Result<Operation> {
        let options = self.options.unwrap_or_default();
        check_consistency(options.consistency.as_deref().unwrap_or_default())?;
        let concurrency = Concurrency::parse(options.concurrency.as_deref().unwrap_or_default())?;
        let expected = Expected::new(&self.key, self.etag.as_deref(), concurrency)?;
        let value = self.value.map_or("null", RawValue::get);
        Ok(Operation {
            key: self.key,
            value: upsert.then(|| Bytes::copy_from_slice(value.as_bytes())),
            expected: if upsert { expected } else { expected.of_delete() },
            metadata: metadata(self.metadata, of_all),
        })
    }
}

/// The keys to save.
pub(super) fn saves(body: &[u8], of_all: &HashMap<String, String>) -> Result<Vec<Operation>> {
    let saves: Vec<OneKey<'_>> = parse(body)?;
    saves.into_iter().map(|save| save.operation(true, of_all)).collect()
}

/// The keys to read.
pub(super) fn keys(body: &[u8]) -> Result<Vec<String>> {
    parse::<Keys>(body).map(|body| body.keys)
}

/// The operations of a transaction.
pub(super) fn transaction(body: &[u8], of_all: &HashMap<String, String>) -> Result<Vec<Operation>> {
    let body: Transaction<'_> = parse(body)?;
    let of_all = metadata(body.metadata, of_all);
    let operation = |one: OneOperation<'_>| match one.operation.as_str() {
        "upsert" => one.request.operation(true, &of_all),
        "delete" => one.request.operation(false, &of_all),
        _ => Err(Error::UnsupportedOperation(one.operation)),
    };
    body.operations.into_iter().map(operation).collect()
}
