//! The JSON bodies of requests.

use std::collections::HashMap;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::write::{Concurrency, Expected, Operation, check_consistency};

/// One key to save or to delete.
#[derive(Debug, Deserialize)]
struct KeyRequest<'a> {
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

/// The body of a bulk read.
#[derive(Debug, Deserialize)]
struct Keys {
    keys: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Transaction<'a> {
    #[serde(borrow)]
    operations: Vec<TransactionOperation<'a>>,
    #[serde(default)]
    metadata: Option<HashMap<String, Text>>,
}

#[derive(Debug, Deserialize)]
struct TransactionOperation<'a> {
    operation: String,
    #[serde(borrow)]
    request: KeyRequest<'a>,
}

/// A value of metadata: text. Numbers and booleans without quotes are accepted as well.
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

fn metadata(metadata: Option<HashMap<String, Text>>) -> HashMap<String, String> {
    metadata.into_iter().flatten().map(|(name, Text(value))| (name, value)).collect()
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| Error::malformed(format!("failed deserializing the body: {error}")))
}

impl KeyRequest<'_> {
    fn operation(self, upsert: bool) -> Result<Operation> {
        let options = self.options.unwrap_or_default();
        check_consistency(options.consistency.as_deref().unwrap_or_default())?;
        let concurrency = Concurrency::parse(options.concurrency.as_deref().unwrap_or_default())?;
        let expected = Expected::new(&self.key, self.etag.as_deref(), concurrency)?;
        let value = self.value.map_or("null", RawValue::get);
        Ok(Operation {
            key: self.key,
            value: upsert.then(|| Bytes::copy_from_slice(value.as_bytes())),
            expected: if upsert { expected } else { expected.of_delete() },
            metadata: metadata(self.metadata),
        })
    }
}

/// Parses a request to save keys. `of_url` is metadata from the query string.
pub(super) fn saves(body: &[u8], of_url: &HashMap<String, String>) -> Result<Vec<Operation>> {
    let saves: Vec<KeyRequest<'_>> = parse(body)?;
    let operation = |save: KeyRequest<'_>| Ok(save.operation(true)?.with_default_metadata(of_url));
    saves.into_iter().map(operation).collect()
}

/// Parses a request to read keys.
pub(super) fn keys(body: &[u8]) -> Result<Vec<String>> {
    parse::<Keys>(body).map(|body| body.keys)
}

/// Parses a transaction. `of_url` is metadata from the query string.
pub(super) fn transaction(body: &[u8], of_url: &HashMap<String, String>) -> Result<Vec<Operation>> {
    let body: Transaction<'_> = parse(body)?;
    let of_body = metadata(body.metadata);
    let operation = |one: TransactionOperation<'_>| {
        let is_upsert = match one.operation.as_str() {
            "upsert" => true,
            "delete" => false,
            _ => return Err(Error::UnsupportedOperation(one.operation)),
        };
        let operation = one.request.operation(is_upsert)?;
        Ok(operation.with_default_metadata(&of_body).with_default_metadata(of_url))
    };
    body.operations.into_iter().map(operation).collect()
}
