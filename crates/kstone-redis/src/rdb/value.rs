//! Reads the values of every type but streams.

use std::borrow::Cow;

use super::Reader;
use super::packed::{Element, intset, listpack, ziplist, zipmap};

/// A value as Redis wrote it down.
#[derive(Debug, PartialEq)]
pub(crate) enum Value<'r> {
    String(Element<'r>),
    List(Vec<Vec<u8>>),
    Set(Vec<Vec<u8>>),
    SortedSet(Vec<(Vec<u8>, f64)>),
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
}

/// How a list is kept in one node of a quicklist.
const PLAIN_NODE: u64 = 1;
const PACKED_NODE: u64 = 2;

impl<'r> Value<'r> {
    /// Reads a value of this type, up to the end.
    pub(crate) fn read(kind: u8, mut reader: Reader<'r>) -> Option<Value<'r>> {
        let value = Value::read_some(kind, &mut reader)?;
        reader.is_empty().then_some(value)
    }

    fn read_some(kind: u8, reader: &mut Reader<'r>) -> Option<Value<'r>> {
        Some(match kind {
            0 => Value::String(reader.text()?),
            1 => Value::List(texts(reader)?),
            2 => Value::Set(texts(reader)?),
            3 => Value::SortedSet(scored(reader, written_score)?),
            4 => Value::Hash(pairs(texts_of(reader, 2)?)?),
            5 => Value::SortedSet(scored(reader, |reader| {
                Some(f64::from_le_bytes(reader.chunk()?))
            })?),
            9 => Value::Hash(pairs(owned(zipmap(&reader.text()?)?))?),
            10 => Value::List(owned(ziplist(&reader.text()?)?)),
            11 => Value::Set(owned(intset(&reader.text()?)?)),
            12 => Value::SortedSet(packed_scores(ziplist(&reader.text()?)?)?),
            13 => Value::Hash(pairs(owned(ziplist(&reader.text()?)?))?),
            14 => Value::List(nodes(reader, |reader| ziplist(&reader.text()?).map(owned))?),
            16 => Value::Hash(pairs(owned(listpack(&reader.text()?)?))?),
            17 => Value::SortedSet(packed_scores(listpack(&reader.text()?)?)?),
            18 => Value::List(nodes(reader, |reader| match reader.length()? {
                PLAIN_NODE => Some(vec![reader.text()?.into_owned()]),
                PACKED_NODE => listpack(&reader.text()?).map(owned),
                _ => None,
            })?),
            20 => Value::Set(owned(listpack(&reader.text()?)?)),
            _ => return None,
        })
    }
}

fn owned(elements: Vec<Element<'_>>) -> Vec<Vec<u8>> {
    elements.into_iter().map(Cow::into_owned).collect()
}

fn texts(reader: &mut Reader<'_>) -> Option<Vec<Vec<u8>>> {
    texts_of(reader, 1)
}

/// As many texts as the length in front says, `each` for one.
fn texts_of(reader: &mut Reader<'_>, each: u64) -> Option<Vec<Vec<u8>>> {
    let count = reader.length()?.checked_mul(each)?;
    (0..count).map(|_| reader.text().map(Cow::into_owned)).collect()
}

fn pairs(elements: Vec<Vec<u8>>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut elements = elements.into_iter();
    let mut pairs = Vec::with_capacity(elements.len() / 2);
    while let Some(field) = elements.next() {
        pairs.push((field, elements.next()?));
    }
    Some(pairs)
}

fn packed_scores(elements: Vec<Element<'_>>) -> Option<Vec<(Vec<u8>, f64)>> {
    let scored = pairs(owned(elements))?.into_iter();
    scored.map(|(member, score)| Some((member, crate::args::parse_float(&score)?))).collect()
}

fn scored<'r>(
    reader: &mut Reader<'r>,
    score: impl Fn(&mut Reader<'r>) -> Option<f64>,
) -> Option<Vec<(Vec<u8>, f64)>> {
    let count = reader.length()?;
    let one = |_| {
        let member = reader.text()?.into_owned();
        let score = score(reader)?;
        (!score.is_nan()).then_some((member, score))
    };
    (0..count).map(one).collect()
}

/// A score as older versions wrote it: as text.
fn written_score(reader: &mut Reader<'_>) -> Option<f64> {
    match reader.byte()? {
        253 => None,
        254 => Some(f64::INFINITY),
        255 => Some(f64::NEG_INFINITY),
        len => crate::args::parse_float(reader.take(len.into())?),
    }
}

/// The elements of all nodes of a list.
fn nodes<'r>(
    reader: &mut Reader<'r>,
    node: impl Fn(&mut Reader<'r>) -> Option<Vec<Vec<u8>>>,
) -> Option<Vec<Vec<u8>>> {
    let mut elements = Vec::new();
    for _ in 0..reader.length()? {
        elements.extend(node(reader)?);
    }
    Some(elements)
}
