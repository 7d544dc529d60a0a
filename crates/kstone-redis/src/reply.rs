//! Replies of commands, independent of their encoding.
//!
//! Commands write into a [`Sink`]. A door's sink encodes RESP as it goes; [`Tree`] keeps the reply
//! as a [`Value`], for scripts, for blocked clients, and for callers in the same process.

use crate::fault::Fault;

pub use kstone_ports::keys::Value;

/// A position in the reply: where a length is filled in later ([`Sink::later`]), or what to
/// [rewind](Sink::rewind) to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(pub usize);

/// Where a command's reply goes.
pub type Out<'o> = &'o mut (dyn Sink + Send);

/// Takes a reply piece by piece. A collection announces its length and is followed by as many
/// replies (twice as many for a map).
pub trait Sink {
    /// A status such as `OK`.
    fn simple(&mut self, text: &str);
    /// An error: a code in capitals, a space, a message.
    fn error(&mut self, message: &[u8]);
    /// A whole number.
    fn integer(&mut self, number: i64);
    /// Any bytes.
    fn bulk(&mut self, bytes: &[u8]);
    /// Nothing, where a value could be.
    fn null(&mut self);
    /// Nothing, where a list could be: older clients tell it from [`null`](Sink::null).
    fn null_array(&mut self);
    /// A list of `len` replies.
    fn array(&mut self, len: usize);
    /// `len` pairs of replies; a flat list to older clients.
    fn map(&mut self, len: usize);
    /// A set of `len` replies; a list to older clients.
    fn set(&mut self, len: usize);
    /// A message that is not a reply, of `len` parts; a list to older clients.
    fn push(&mut self, len: usize);
    /// A number with a fraction; a text to older clients.
    fn double(&mut self, number: f64);
    /// True or false; 1 or 0 to older clients.
    fn boolean(&mut self, value: bool);
    /// A number too large for 64 bits; a text to older clients.
    fn big_number(&mut self, digits: &str);
    /// A text with a hint at its format, `txt` or `mkd`; a plain one to older clients.
    fn verbatim(&mut self, format: &str, text: &[u8]);
    /// Leaves room for the head of a collection whose length is not known yet.
    fn later(&mut self) -> Mark;
    /// Fills in a head that was left open.
    fn array_at(&mut self, mark: Mark, len: usize);
    /// Fills in a head that was left open.
    fn map_at(&mut self, mark: Mark, len: usize);
    /// Fills in a head that was left open.
    fn set_at(&mut self, mark: Mark, len: usize);

    /// Where the next piece goes.
    fn position(&self) -> Mark;
    /// Takes back everything written since [`position`](Sink::position) gave this mark: a reply
    /// whose commit failed.
    fn rewind(&mut self, to: Mark);

    /// From now on the client speaks RESP3, or RESP2.
    fn speak(&mut self, _resp3: bool) {}

    /// `OK`.
    fn ok(&mut self) {
        self.simple("OK");
    }
    /// A value that may be absent.
    fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }
    /// A list of byte strings.
    fn bulks(&mut self, items: &[&[u8]]) {
        self.array(items.len());
        for item in items {
            self.bulk(item);
        }
    }
}

/// Replaces what was written since a mark by an error: what a failed command wrote is no reply.
pub(crate) fn replace_with_error(out: Out<'_>, start: Mark, fault: &Fault) {
    out.rewind(start);
    out.error(fault.message().as_bytes());
}

/// Writes a reply that is there as a tree.
pub fn write_value(value: &Value, out: &mut dyn Sink) {
    let each = |items: &[Value], out: &mut dyn Sink| {
        for item in items {
            write_value(item, out);
        }
    };
    match value {
        Value::Simple(text) => out.simple(text),
        Value::Error(message) => out.error(message),
        Value::Integer(number) => out.integer(*number),
        Value::Bulk(bytes) => out.bulk(bytes),
        Value::Null => out.null(),
        Value::NullArray => out.null_array(),
        Value::Array(items) => {
            out.array(items.len());
            each(items, out);
        }
        Value::Map(pairs) => {
            out.map(pairs.len());
            for (key, value) in pairs {
                write_value(key, out);
                write_value(value, out);
            }
        }
        Value::Set(items) => {
            out.set(items.len());
            each(items, out);
        }
        Value::Push(items) => {
            out.push(items.len());
            each(items, out);
        }
        Value::Double(number) => out.double(*number),
        Value::Boolean(value) => out.boolean(*value),
        Value::BigNumber(digits) => out.big_number(digits),
        Value::Verbatim(format, text) => out.verbatim(format, text),
    }
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Array,
    Map,
    Set,
    Push,
}

#[derive(Debug)]
enum Piece {
    One(Value),
    Head(Shape, usize),
    /// The head that is to come.
    Open,
}

/// A sink that keeps replies as [`Value`]s.
#[derive(Debug, Default)]
pub struct Tree {
    pieces: Vec<Piece>,
}

impl Tree {
    /// Without replies.
    pub fn new() -> Self {
        Tree::default()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Every reply that was written, in order.
    pub fn into_values(self) -> Vec<Value> {
        let mut pieces = self.pieces.into_iter();
        let mut values = Vec::new();
        while let Some(value) = take(&mut pieces) {
            values.push(value);
        }
        values
    }

    /// The first reply; [`Value::Null`] if there is none.
    pub fn into_value(self) -> Value {
        take(&mut self.pieces.into_iter()).unwrap_or(Value::Null)
    }
}

fn take(pieces: &mut std::vec::IntoIter<Piece>) -> Option<Value> {
    Some(match pieces.next()? {
        Piece::One(value) => value,
        Piece::Open => Value::Array(Vec::new()),
        Piece::Head(Shape::Map, len) => {
            let mut pairs = Vec::new();
            for _ in 0..len {
                let (Some(key), Some(value)) = (take(pieces), take(pieces)) else { break };
                pairs.push((key, value));
            }
            Value::Map(pairs)
        }
        Piece::Head(shape, len) => {
            let items = (0..len).map_while(|_| take(pieces)).collect();
            match shape {
                Shape::Set => Value::Set(items),
                Shape::Push => Value::Push(items),
                Shape::Array | Shape::Map => Value::Array(items),
            }
        }
    })
}

impl Tree {
    fn one(&mut self, value: Value) {
        self.pieces.push(Piece::One(value));
    }

    fn fill(&mut self, mark: Mark, shape: Shape, len: usize) {
        if let Some(open) = self.pieces.get_mut(mark.0) {
            *open = Piece::Head(shape, len);
        }
    }
}

impl Sink for Tree {
    fn simple(&mut self, text: &str) {
        self.one(Value::Simple(text.to_owned()));
    }
    fn error(&mut self, message: &[u8]) {
        self.one(Value::Error(message.to_vec()));
    }
    fn integer(&mut self, number: i64) {
        self.one(Value::Integer(number));
    }
    fn bulk(&mut self, bytes: &[u8]) {
        self.one(Value::Bulk(bytes.to_vec()));
    }
    fn null(&mut self) {
        self.one(Value::Null);
    }
    fn null_array(&mut self) {
        self.one(Value::NullArray);
    }
    fn array(&mut self, len: usize) {
        self.pieces.push(Piece::Head(Shape::Array, len));
    }
    fn map(&mut self, len: usize) {
        self.pieces.push(Piece::Head(Shape::Map, len));
    }
    fn set(&mut self, len: usize) {
        self.pieces.push(Piece::Head(Shape::Set, len));
    }
    fn push(&mut self, len: usize) {
        self.pieces.push(Piece::Head(Shape::Push, len));
    }
    fn double(&mut self, number: f64) {
        self.one(Value::Double(number));
    }
    fn boolean(&mut self, value: bool) {
        self.one(Value::Boolean(value));
    }
    fn big_number(&mut self, digits: &str) {
        self.one(Value::BigNumber(digits.to_owned()));
    }
    fn verbatim(&mut self, format: &str, text: &[u8]) {
        self.one(Value::Verbatim(format.to_owned(), text.to_vec()));
    }
    fn position(&self) -> Mark {
        Mark(self.pieces.len())
    }
    fn rewind(&mut self, to: Mark) {
        self.pieces.truncate(to.0);
    }
    fn later(&mut self) -> Mark {
        self.pieces.push(Piece::Open);
        Mark(self.pieces.len() - 1)
    }
    fn array_at(&mut self, mark: Mark, len: usize) {
        self.fill(mark, Shape::Array, len);
    }
    fn map_at(&mut self, mark: Mark, len: usize) {
        self.fill(mark, Shape::Map, len);
    }
    fn set_at(&mut self, mark: Mark, len: usize) {
        self.fill(mark, Shape::Set, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_gives_back_what_was_said() {
        let mut tree = Tree::new();
        let mark = tree.later();
        tree.bulk(b"a");
        tree.map(1);
        tree.integer(1);
        tree.set(0);
        tree.array_at(mark, 2);
        tree.ok();
        let pairs = vec![(Value::Integer(1), Value::Set(vec![]))];
        let first = Value::Array(vec![Value::bulk("a"), Value::Map(pairs)]);
        assert_eq!(tree.into_values(), [first, Value::Simple("OK".into())]);
    }
}
