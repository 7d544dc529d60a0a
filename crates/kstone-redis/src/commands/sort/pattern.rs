//! The patterns of BY and GET: which key, and which field of it, belongs to an element.

use bytes::Bytes;

use crate::commands::{hashes, strings};
use crate::fault::{Fault, Result};
use crate::store::Txn;

/// A pattern such as `weight_*`, `object_*->field` or `#`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pattern<'a> {
    /// The element itself.
    Element,
    /// The key with the element in its middle, and a field of it.
    Key { before: &'a [u8], after: &'a [u8], field: Option<&'a [u8]> },
    /// Without a star it stands for nothing.
    Nothing,
}

impl<'a> Pattern<'a> {
    pub(super) fn parse(pattern: &'a [u8]) -> Pattern<'a> {
        if pattern == b"#" {
            return Pattern::Element;
        }
        let Some(star) = pattern.iter().position(|byte| *byte == b'*') else {
            return Pattern::Nothing;
        };
        let (before, rest) = pattern.split_at(star);
        let rest = rest.get(1..).unwrap_or_default();
        let arrow = rest.windows(2).position(|pair| pair == b"->");
        let split = arrow.map(|at| rest.split_at(at)).map(|(after, field)| {
            let field = field.get(2..).unwrap_or_default();
            (after, field)
        });
        match split.filter(|(_, field)| !field.is_empty()) {
            Some((after, field)) => Pattern::Key { before, after, field: Some(field) },
            None => Pattern::Key { before, after: rest, field: None },
        }
    }

    /// Whether an element has a place in it.
    pub(super) fn has_star(&self) -> bool {
        matches!(self, Pattern::Key { .. })
    }

    /// What it stands for with this element, if there is such a thing.
    pub(super) fn value(&self, txn: &mut Txn<'_>, element: &Bytes) -> Result<Option<Bytes>> {
        let (before, after, field) = match self {
            Pattern::Element => return Ok(Some(element.clone())),
            Pattern::Nothing => return Ok(None),
            Pattern::Key { before, after, field } => (*before, *after, *field),
        };
        let key = [before, element, after].concat();
        match field {
            Some(field) => hashes::field(txn, &key, field),
            None => match strings::whole(txn, &key) {
                Err(fault) if fault == Fault::WRONG_TYPE => Ok(None),
                found => found,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_taken_apart_at_the_star_and_the_arrow() {
        assert_eq!(Pattern::parse(b"#"), Pattern::Element);
        assert_eq!(Pattern::parse(b"nosort"), Pattern::Nothing);
        let (before, after) = (&b"w_"[..], &b""[..]);
        assert_eq!(Pattern::parse(b"w_*"), Pattern::Key { before, after, field: None });
        let (after, field) = (&b":x"[..], Some(&b"f->g"[..]));
        assert_eq!(Pattern::parse(b"w_*:x->f->g"), Pattern::Key { before, after, field });
        let after = &b"->"[..];
        assert_eq!(Pattern::parse(b"w_*->"), Pattern::Key { before, after, field: None });
    }
}
