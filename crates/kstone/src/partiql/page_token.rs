//! `NextToken`: where a `SELECT` goes on. Opaque to clients, and good for the same statement with
//! the same parameters only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::partiql::request::Statement;
use crate::value::{EncodedValue, Item, ItemBytes, Value};

const VERSION: u8 = 1;

/// The place where a page ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Position {
    /// Which of the partitions that the statement reads, from 0.
    pub partition: u32,
    /// The key of the last item there; `None` before the first.
    pub key: Option<Item>,
}

/// The version, the statement's fingerprint, the partition, then the key.
pub(super) fn encode(position: &Position, statement: &Statement) -> String {
    let mut out = vec![VERSION];
    out.extend_from_slice(&fingerprint(statement));
    out.extend_from_slice(&position.partition.to_le_bytes());
    if let Some(key) = &position.key {
        out.extend_from_slice(ItemBytes::encode(key).as_slice());
    }
    BASE64.encode(out)
}

/// The place that a request's token stands for: the beginning if it has none.
pub(super) fn decode(statement: &Statement) -> Result<Position> {
    let Some(token) = &statement.next_token else { return Ok(Position::default()) };
    let (position, made_for) = read(token).ok_or_else(|| Error::validation("Invalid NextToken"))?;
    if made_for != fingerprint(statement) {
        return Err(Error::validation("NextToken does not match request"));
    }
    Ok(position)
}

fn read(token: &str) -> Option<(Position, [u8; 16])> {
    let bytes = Bytes::from(BASE64.decode(token).ok()?);
    let (version, rest) = bytes.split_first()?;
    let (fingerprint, rest) = rest.split_first_chunk::<16>()?;
    let (partition, key) = rest.split_first_chunk::<4>()?;
    if *version != VERSION {
        return None;
    }
    let key = match key {
        [] => None,
        key => Some(ItemBytes::from_bytes(bytes.slice_ref(key)).ok()?.decode().ok()?),
    };
    Some((Position { partition: u32::from_le_bytes(*partition), key }, *fingerprint))
}

/// What tells one statement from another.
fn fingerprint(statement: &Statement) -> [u8; 16] {
    let mut hash = Xxh3::new();
    hash.update(&(statement.text.len() as u64).to_le_bytes());
    hash.update(statement.text.as_bytes());
    for parameter in statement.parameters.iter().flatten() {
        let mut encoded = Vec::new();
        write_parameter(parameter, &mut encoded);
        hash.update(&encoded);
    }
    hash.digest128().to_le_bytes()
}

fn write_parameter(parameter: &Value, out: &mut Vec<u8>) {
    EncodedValue::new(parameter).as_ref().write_encoded(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_statement_and_parameters_only() {
        let statement = Statement::new("SELECT * FROM t WHERE a = ?").with("x");
        let key = Item::new().with("a", "x").with("b", 5);
        for position in
            [Position { partition: 0, key: Some(key) }, Position { partition: 7, key: None }]
        {
            let token = Some(encode(&position, &statement));
            let asks = |text: &str, parameter: &str, next_token: &Option<String>| Statement {
                next_token: next_token.clone(),
                ..Statement::new(text).with(parameter)
            };
            let again = asks("SELECT * FROM t WHERE a = ?", "x", &token);
            assert_eq!(decode(&again).unwrap(), position);
            let limited = Statement { limit: Some(3), ..again };
            assert_eq!(decode(&limited).unwrap(), position);
            for other in [
                asks("SELECT * FROM t WHERE a = ? ", "x", &token),
                asks("SELECT * FROM t WHERE a = ?", "y", &token),
            ] {
                let error = decode(&other).unwrap_err();
                assert_eq!(error.to_string(), "NextToken does not match request");
            }
        }
    }

    #[test]
    fn a_token_that_was_not_made_here_is_invalid() {
        let statement = Statement::new("SELECT * FROM t");
        let position = Position { partition: 0, key: Some(Item::new().with("a", "x")) };
        let good = BASE64.decode(encode(&position, &statement)).unwrap();
        let mut tokens = vec!["".to_owned(), "abc".to_owned(), "%".to_owned()];
        tokens.extend((1..good.len()).filter(|n| *n != 21).map(|n| BASE64.encode(&good[..n])));
        tokens.push(BASE64.encode([&[2], &good[1..]].concat()));
        for token in tokens {
            let asks = Statement { next_token: Some(token.clone()), ..statement.clone() };
            let error = decode(&asks).expect_err(&token);
            assert_eq!(error.to_string(), "Invalid NextToken", "{token}");
        }
    }
}
