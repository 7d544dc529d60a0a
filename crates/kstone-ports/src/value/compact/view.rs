//! Views of the compact form, which read parts of it without decoding the whole.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use crate::value::compact::varint::{self, take_prefixed};
use crate::value::compact::{
    TAG_B, TAG_BS, TAG_FALSE, TAG_L, TAG_M, TAG_N, TAG_NS, TAG_NULL, TAG_S, TAG_SS, TAG_TRUE,
    VERSION,
};
use crate::value::number::NumberRef;

/// An item, or a map inside one, in its compact form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ItemRef<'a> {
    pub(super) count: usize,
    pub(super) entries: &'a [u8],
}

impl<'a> ItemRef<'a> {
    /// An item without attributes.
    pub const EMPTY: ItemRef<'static> = ItemRef { count: 0, entries: &[] };

    /// Takes stored bytes for an item, as [`ItemBytes::from_bytes`](super::ItemBytes::from_bytes)
    /// does, without owning them.
    pub fn from_slice(bytes: &'a [u8]) -> Result<ItemRef<'a>, super::Corrupt> {
        match bytes.first() {
            Some(&VERSION) => Ok(ItemRef::of_item(bytes)),
            _ => Err(super::Corrupt),
        }
    }

    pub(super) fn of_item(bytes: &'a [u8]) -> ItemRef<'a> {
        let map = bytes.split_first().and_then(|(_, map)| ItemRef::of_map(map));
        // A count of one and no entry: nothing is found, and decoding says that it is damaged.
        map.unwrap_or(ItemRef { count: 1, entries: &[] })
    }

    fn of_map(mut bytes: &'a [u8]) -> Option<ItemRef<'a>> {
        let count = varint::take(&mut bytes)?;
        // A name's length and a tag: no entry is shorter.
        (count <= bytes.len() / 2).then_some(ItemRef { count, entries: bytes })
    }

    /// The attribute with this name.
    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        let mut rest = self.entries;
        for _ in 0..self.count {
            match take_prefixed(&mut rest)?.cmp(name.as_bytes()) {
                Ordering::Less => skip(&mut rest)?,
                Ordering::Equal => return ValueRef::take(&mut rest),
                Ordering::Greater => return None,
            }
        }
        None
    }

    /// Whether there is an attribute with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The attributes in the order of their names.
    pub fn iter(&self) -> Attributes<'a> {
        self.iter_as()
    }

    /// The same, with texts in the form that the caller has a use for. Who passes them on as they
    /// are stored takes `[u8]`: what was stored had been checked, and bytes that changed since do
    /// not get past their checksum.
    pub fn iter_as<T: TextForm + ?Sized>(&self) -> Attributes<'a, T> {
        Attributes { left: self.count, rest: self.entries, text: PhantomData }
    }

    /// How many attributes.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The place of the entry with this name among the entries, and whether it is there; an empty
    /// place if it is not.
    pub(super) fn place(&self, name: &[u8]) -> (Range<usize>, bool) {
        let mut rest = self.entries;
        let at = |rest: &[u8]| self.entries.len() - rest.len();
        for _ in 0..self.count {
            let start = at(rest);
            let Some(have) = take_prefixed(&mut rest) else { break };
            let order = have.cmp(name);
            if order == Ordering::Greater {
                return (start..start, false);
            }
            if skip(&mut rest).is_none() {
                break;
            }
            if order == Ordering::Equal {
                return (start..at(rest), true);
            }
        }
        (self.entries.len()..self.entries.len(), false)
    }
}

impl fmt::Debug for ItemRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Decoding stops at a depth; following damaged bytes down from here would not.
        match self.decode() {
            Ok(item) => item.fmt(f),
            Err(corrupt) => write!(f, "({corrupt})"),
        }
    }
}

impl<'a> IntoIterator for ItemRef<'a> {
    type Item = (&'a str, ValueRef<'a>);
    type IntoIter = Attributes<'a>;

    fn into_iter(self) -> Attributes<'a> {
        self.iter()
    }
}

/// How a reader wants the texts of an item: `str`, or `[u8]` to do without a look at them.
pub trait TextForm {
    /// Stored bytes as such a text, if they are one.
    fn of_stored(bytes: &[u8]) -> Option<&Self>;
}

impl TextForm for str {
    #[inline]
    fn of_stored(bytes: &[u8]) -> Option<&str> {
        std::str::from_utf8(bytes).ok()
    }
}

impl TextForm for [u8] {
    #[inline]
    fn of_stored(bytes: &[u8]) -> Option<&[u8]> {
        Some(bytes)
    }
}

/// The attributes of an [`ItemRef`]. Ends early at damage.
#[derive(Debug, Clone)]
pub struct Attributes<'a, T: ?Sized = str> {
    pub(super) left: usize,
    pub(super) rest: &'a [u8],
    text: PhantomData<&'a T>,
}

impl<'a, T: TextForm + ?Sized> Attributes<'a, T> {
    /// The next attribute; `None` at the end, and at damage, which leaves `left` above zero.
    #[inline]
    pub(super) fn take_entry(&mut self) -> Option<(&'a T, ValueRef<'a, T>)> {
        if self.left == 0 {
            return None;
        }
        let name = T::of_stored(take_prefixed(&mut self.rest)?)?;
        let value = ValueRef::take(&mut self.rest)?;
        self.left -= 1;
        Some((name, value))
    }
}

impl<'a, T: TextForm + ?Sized> Iterator for Attributes<'a, T> {
    type Item = (&'a T, ValueRef<'a, T>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.take_entry();
        if next.is_none() {
            self.left = 0;
        }
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

/// A value in its compact form.
#[derive(Debug)]
pub enum ValueRef<'a, T: ?Sized = str> {
    /// A string.
    S(&'a T),
    /// A number.
    N(NumberRef<'a>),
    /// Bytes.
    B(&'a [u8]),
    /// True or false.
    Bool(bool),
    /// Null.
    Null,
    /// A map.
    M(ItemRef<'a>),
    /// A list.
    L(ListRef<'a>),
    /// A set of strings.
    Ss(SetRef<'a>),
    /// A set of numbers.
    Ns(SetRef<'a>),
    /// A set of byte strings.
    Bs(SetRef<'a>),
}

// By hand, because a derived one would ask the same of `T`.
impl<T: ?Sized> Clone for ValueRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for ValueRef<'_, T> {}

impl<'a, T: TextForm + ?Sized> ValueRef<'a, T> {
    /// Reads a value off the front.
    pub(super) fn take(input: &mut &'a [u8]) -> Option<ValueRef<'a, T>> {
        let (&tag, rest) = input.split_first()?;
        *input = rest;
        Some(match tag {
            TAG_S => ValueRef::S(T::of_stored(take_prefixed(input)?)?),
            TAG_N => ValueRef::N(take_number(input)?),
            TAG_B => ValueRef::B(take_prefixed(input)?),
            TAG_FALSE => ValueRef::Bool(false),
            TAG_TRUE => ValueRef::Bool(true),
            TAG_NULL => ValueRef::Null,
            TAG_M => ValueRef::M(ItemRef::of_map(take_prefixed(input)?)?),
            TAG_L => {
                let (count, elements) = take_counted(input)?;
                ValueRef::L(ListRef { count, elements })
            }
            TAG_SS => ValueRef::Ss(SetRef::take(SetKind::Strings, input)?),
            TAG_NS => ValueRef::Ns(SetRef::take(SetKind::Numbers, input)?),
            TAG_BS => ValueRef::Bs(SetRef::take(SetKind::Binaries, input)?),
            _ => return None,
        })
    }

    /// What DynamoDB calls the type: `S`, `N`, `B`, `BOOL`, `NULL`, `M`, `L`, `SS`, `NS` or `BS`.
    pub fn type_name(&self) -> &'static str {
        match self {
            ValueRef::S(_) => "S",
            ValueRef::N(_) => "N",
            ValueRef::B(_) => "B",
            ValueRef::Bool(_) => "BOOL",
            ValueRef::Null => "NULL",
            ValueRef::M(_) => "M",
            ValueRef::L(_) => "L",
            ValueRef::Ss(_) => "SS",
            ValueRef::Ns(_) => "NS",
            ValueRef::Bs(_) => "BS",
        }
    }
}

impl ValueRef<'_> {
    /// Whether the two are the same value: of one type, all the way down, sets in any order.
    pub fn eq_value(&self, other: ValueRef<'_>) -> bool {
        match (self, other) {
            (ValueRef::S(a), ValueRef::S(b)) => *a == b,
            (ValueRef::N(a), ValueRef::N(b)) => *a == b,
            (ValueRef::B(a), ValueRef::B(b)) => *a == b,
            (ValueRef::Bool(a), ValueRef::Bool(b)) => *a == b,
            (ValueRef::Null, ValueRef::Null) => true,
            // There is one way to write a value down, so equal bytes are equal values.
            (ValueRef::M(a), ValueRef::M(b)) => *a == b,
            (ValueRef::L(a), ValueRef::L(b)) => *a == b,
            (ValueRef::Ss(a), ValueRef::Ss(b))
            | (ValueRef::Ns(a), ValueRef::Ns(b))
            | (ValueRef::Bs(a), ValueRef::Bs(b)) => *a == b,
            _ => false,
        }
    }

    /// The order of two strings, numbers or byte strings; `None` for other types, or two types.
    pub fn compare(&self, other: ValueRef<'_>) -> Option<Ordering> {
        match (self, other) {
            (ValueRef::S(a), ValueRef::S(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (ValueRef::N(a), ValueRef::N(b)) => Some(a.ordered().cmp(b.ordered())),
            (ValueRef::B(a), ValueRef::B(b)) => Some((*a).cmp(b)),
            _ => None,
        }
    }
}

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.eq_value(*other)
    }
}

impl Eq for ValueRef<'_> {}

/// A list in its compact form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ListRef<'a> {
    pub(super) count: usize,
    pub(super) elements: &'a [u8],
}

impl<'a> ListRef<'a> {
    /// The element at this place, counted from 0.
    pub fn get(&self, at: usize) -> Option<ValueRef<'a>> {
        if at >= self.count {
            return None;
        }
        let mut rest = self.elements;
        for _ in 0..at {
            skip(&mut rest)?;
        }
        ValueRef::take(&mut rest)
    }

    /// The elements in order. Ends early at damage.
    pub fn iter(&self) -> impl Iterator<Item = ValueRef<'a>> + use<'a> {
        self.iter_as()
    }

    /// The same, with texts as [`ItemRef::iter_as`] gives them.
    pub fn iter_as<T: TextForm + ?Sized + 'a>(
        &self,
    ) -> impl Iterator<Item = ValueRef<'a, T>> + use<'a, T> {
        let mut rest = self.elements;
        (0..self.count).map_while(move |_| ValueRef::take(&mut rest))
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for ListRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ValueRef::L(*self).decode() {
            Ok(list) => list.fmt(f),
            Err(corrupt) => write!(f, "({corrupt})"),
        }
    }
}

/// What a set holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetKind {
    /// Strings: the type SS.
    Strings,
    /// Numbers: the type NS.
    Numbers,
    /// Byte strings: the type BS.
    Binaries,
}

impl SetKind {
    /// Reads an element off the front.
    pub(super) fn take<'a, T: TextForm + ?Sized>(
        self,
        input: &mut &'a [u8],
    ) -> Option<ValueRef<'a, T>> {
        Some(match self {
            SetKind::Strings => ValueRef::S(T::of_stored(take_prefixed(input)?)?),
            SetKind::Numbers => ValueRef::N(take_number(input)?),
            SetKind::Binaries => ValueRef::B(take_prefixed(input)?),
        })
    }
}

/// A set in its compact form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SetRef<'a> {
    pub(super) kind: SetKind,
    pub(super) count: usize,
    pub(super) elements: &'a [u8],
}

impl<'a> SetRef<'a> {
    fn take(kind: SetKind, input: &mut &'a [u8]) -> Option<SetRef<'a>> {
        let (count, elements) = take_counted(input)?;
        Some(SetRef { kind, count, elements })
    }

    /// What it holds.
    pub fn kind(&self) -> SetKind {
        self.kind
    }

    /// The elements in ascending order, each as a value of type S, N or B. Ends early at damage.
    pub fn iter(&self) -> impl Iterator<Item = ValueRef<'a>> + use<'a> {
        self.iter_as()
    }

    /// The same, with texts as [`ItemRef::iter_as`] gives them.
    pub fn iter_as<T: TextForm + ?Sized + 'a>(
        &self,
    ) -> impl Iterator<Item = ValueRef<'a, T>> + use<'a, T> {
        let (kind, mut rest) = (self.kind, self.elements);
        (0..self.count).map_while(move |_| kind.take(&mut rest))
    }

    /// Whether it holds this string, number or byte string; no other type is ever in a set.
    pub fn contains(&self, wanted: ValueRef<'_>) -> bool {
        self.iter().any(|element| element.eq_value(wanted))
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none, which no valid set is.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for SetRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

fn take_number<'a>(input: &mut &'a [u8]) -> Option<NumberRef<'a>> {
    let number = NumberRef::read(input)?;
    *input = input.get(number.ordered().len()..)?;
    Some(number)
}

/// A count and the elements it counts, none shorter than a byte.
fn take_counted<'a>(input: &mut &'a [u8]) -> Option<(usize, &'a [u8])> {
    let mut body = take_prefixed(input)?;
    let count = varint::take(&mut body)?;
    (count <= body.len()).then_some((count, body))
}

/// Passes over a value without looking into it.
#[inline]
fn skip(input: &mut &[u8]) -> Option<()> {
    let (&tag, rest) = input.split_first()?;
    *input = rest;
    match tag {
        TAG_FALSE | TAG_TRUE | TAG_NULL => {}
        TAG_N => *input = input.get(NumberRef::skip(input)?..)?,
        TAG_S | TAG_B | TAG_M | TAG_L | TAG_SS | TAG_NS | TAG_BS => {
            take_prefixed(input)?;
        }
        _ => return None,
    }
    Some(())
}
