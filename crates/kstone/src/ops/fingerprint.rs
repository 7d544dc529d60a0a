//! The fingerprint of a transaction, which distinguishes a repetition from another use of its token.
//!
//! A hash over an encoding that is written out here, and begins with its version: what is kept
//! with a token outlives a restart, and must not change with how some type prints itself.

use xxhash_rust::xxh3::Xxh3;

use crate::expr::FingerprintBytes;
use crate::ops::{Condition, Placeholders, TransactAction, TransactKind, TransactWrite, Update};
use crate::value::{EncodedValue, ItemBytes};

/// Goes up whenever the encoding changes. Also the first byte of what is kept with a token, so that
/// another encoding is not taken for another transaction.
pub(super) const VERSION: u8 = 1;

/// The hash of all actions of a transaction, in order.
pub(super) fn fingerprint(request: &TransactWrite) -> [u8; 16] {
    let mut hash = Xxh3::new();
    hash.update(&[VERSION]);
    let mut out = FingerprintBytes::default();
    for action in &request.actions {
        write_action(action, &mut out);
        hash.update(out.as_slice());
        out.clear();
    }
    hash.digest128().to_be_bytes()
}

fn write_action(action: &TransactAction, out: &mut FingerprintBytes) {
    out.text(&action.table);
    let (tag, item) = match &action.kind {
        TransactKind::Check(key) => (1, key),
        TransactKind::Put(item) => (2, item),
        TransactKind::Delete(key) => (3, key),
        TransactKind::Update(key, _) => (4, key),
    };
    out.tag(tag);
    out.bytes(ItemBytes::encode(item).as_slice());
    if let TransactKind::Update(_, update) = &action.kind {
        match update {
            Update::Text(text) | Update::Statement(text) => {
                out.tag(1);
                out.text(text);
            }
            Update::Built(update) => {
                out.tag(2);
                update.write_fingerprint(out);
            }
        }
    }
    match &action.condition {
        None => out.tag(0),
        Some(Condition::Text(text) | Condition::Statement(text)) => {
            out.tag(1);
            out.text(text);
        }
        Some(Condition::Built(condition)) => {
            out.tag(2);
            condition.write_fingerprint(out);
        }
    }
    write_placeholders(&action.placeholders, out);
    out.tag(u8::from(action.return_on_failure));
}

/// Sorted: the order in which placeholders were written means nothing.
fn write_placeholders(placeholders: &Placeholders, out: &mut FingerprintBytes) {
    let mut names: Vec<_> = placeholders.names.iter().flatten().collect();
    names.sort_unstable();
    out.count(names.len());
    for (key, name) in names {
        out.text(key);
        out.text(name);
    }
    let mut values: Vec<_> = placeholders.values.iter().flatten().collect();
    values.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    out.count(values.len());
    for (key, value) in values {
        out.text(key);
        out.value(&EncodedValue::new(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Item, Value};

    fn update(values: &[(&str, Value)]) -> TransactAction {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        TransactAction {
            table: "t".to_owned(),
            kind: TransactKind::Update(
                Item::new().with("pk", "k"),
                Update::Text("SET a = :a, b = :b".to_owned()),
            ),
            condition: None,
            placeholders: Placeholders { names: None, values: Some(values.collect()) },
            return_on_failure: false,
        }
    }

    fn of(actions: &[TransactAction]) -> [u8; 16] {
        fingerprint(&TransactWrite { actions: actions.to_vec(), ..TransactWrite::default() })
    }

    #[test]
    fn the_order_of_placeholders_and_of_sets_means_nothing() {
        let set = |elements: &[&str]| Value::Ss(elements.iter().map(|&e| e.to_owned()).collect());
        let one = update(&[(":a", 1.into()), (":b", set(&["x", "y"]))]);
        let other = update(&[(":b", set(&["y", "x"])), (":a", 1.into())]);
        assert_eq!(of(&[one]), of(&[other]));
    }

    #[test]
    fn whatever_differs_in_an_action_shows() {
        let plain = update(&[(":a", 1.into()), (":b", 2.into())]);
        let mut others = vec![
            update(&[(":a", 2.into()), (":b", 1.into())]),
            update(&[(":a", "1".into()), (":b", 2.into())]),
            TransactAction { table: "u".to_owned(), ..plain.clone() },
            TransactAction { return_on_failure: true, ..plain.clone() },
            TransactAction { condition: Some(Condition::Text("a".into())), ..plain.clone() },
        ];
        for kind in [TransactKind::Check, TransactKind::Put, TransactKind::Delete] {
            let kind = kind(Item::new().with("pk", "k"));
            others.push(TransactAction { kind, ..plain.clone() });
        }
        let mut seen = vec![of(std::slice::from_ref(&plain)), of(&[plain.clone(), plain])];
        for other in others {
            let fingerprint = of(std::slice::from_ref(&other));
            assert!(!seen.contains(&fingerprint), "{other:?}");
            seen.push(fingerprint);
        }
    }

    /// If this fails, tokens that are kept would no longer be recognised: raise [`VERSION`], and
    /// put the new number here.
    #[test]
    fn the_encoding_stays_what_it_is() {
        let action = update(&[(":a", 1.into()), (":b", 2.into())]);
        let hash = u128::from_be_bytes(of(&[action]));
        assert_eq!(hash, 0xf723_67f8_072d_1b05_cbb5_a559_201b_37f0, "{hash:#x}");
    }
}
