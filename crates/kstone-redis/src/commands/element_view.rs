//! Converts stored parts to fields, members or entries for any key type; trims keys to their newest or
//! highest elements.

use std::ops::ControlFlow;

use crate::commands::lists::{End, List};
use crate::commands::sorted_sets::{self, SortedSet, Walk};
use crate::commands::streams;
use crate::fault::Result;
use crate::store::fields::Payload;
use crate::store::{Kind, Txn, elements};

/// What a part is.
#[derive(Debug)]
pub(crate) enum ElementView<'p> {
    /// A field of a hash, and its value.
    Field(&'p [u8], &'p [u8]),
    /// An element of a list, a member of a set.
    Member(&'p [u8]),
    /// An entry of a stream.
    Entry(streams::Fields<'p>),
    /// A field or member that was removed.
    Gone(&'p [u8]),
    /// Nothing that a client has given, or something that is gone and was not named by its place.
    Nothing,
}

/// What a part of a key of this kind is that was written, or removed if it has no value.
pub(crate) fn part<'p>(kind: Kind, sk: &'p [u8], value: Option<&'p [u8]>) -> ElementView<'p> {
    match kind {
        Kind::Hash | Kind::Set => {
            if sk.first() != Some(&elements::ELEMENT) {
                return ElementView::Nothing;
            }
            let Some(value) = value else {
                return elements::short_name(sk).map_or(ElementView::Nothing, ElementView::Gone);
            };
            let (name, payload) = elements::split(sk, value);
            match kind {
                Kind::Hash => ElementView::Field(name, Payload::read(payload).value),
                _ => ElementView::Member(name),
            }
        }
        Kind::SortedSet => match (sorted_sets::member_of(sk), value) {
            (Some(member), Some(_)) => ElementView::Member(member),
            (Some(member), None) => ElementView::Gone(member),
            (None, _) => ElementView::Nothing,
        },
        Kind::List => value.map_or(ElementView::Nothing, ElementView::Member),
        Kind::Stream => match value.and_then(|value| streams::fields_of(sk, value)) {
            Some(fields) => ElementView::Entry(fields),
            None => ElementView::Nothing,
        },
        Kind::String | Kind::LongString => ElementView::Nothing,
    }
}

/// Keeps so many members of a key that has more: of a list those at the end that it was pushed to,
/// of a stream the newest, of a sorted set the highest. `was_first` is where a list that was there
/// began. Returns the members that went, where each is there only once.
pub(crate) fn trim(
    txn: &mut Txn<'_>,
    key: &[u8],
    kind: Kind,
    most: u64,
    was_first: Option<u64>,
) -> Result<Vec<Vec<u8>>> {
    match kind {
        // An element that went may be there once more.
        Kind::List => trim_list(txn, key, most, was_first).map(|()| Vec::new()),
        Kind::SortedSet => trim_sorted_set(txn, key, most),
        Kind::Stream => streams::keep_newest(txn, key, most).map(|()| Vec::new()),
        // Of these nobody could say which members are to stay.
        Kind::String | Kind::LongString | Kind::Set | Kind::Hash => Ok(Vec::new()),
    }
}

fn trim_list(txn: &mut Txn<'_>, key: &[u8], most: u64, was_first: Option<u64>) -> Result<()> {
    let Some(mut list) = List::find(txn, key)? else { return Ok(()) };
    let (len, most) = (list.len(), most.min(list.len()));
    let kept = match list.grown_end(was_first) {
        End::Front => 0..most,
        End::Back => len - most..len,
    };
    list.keep(txn, key, kept)?;
    list.save(txn, key)?;
    txn.notify('l', "ltrim", key);
    Ok(())
}

fn trim_sorted_set(txn: &mut Txn<'_>, key: &[u8], most: u64) -> Result<Vec<Vec<u8>>> {
    let Some(mut set) = SortedSet::find(txn, key)? else { return Ok(Vec::new()) };
    let gone = set.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
    let mut members = Vec::with_capacity(gone);
    Walk::new(txn, key, &set).by_rank(0..gone, false, |member, score| {
        members.push((member.to_vec(), score));
        ControlFlow::Continue(())
    })?;
    set.remove_lowest(txn, key, &members)?;
    set.save(txn, key)?;
    txn.notify('z', "zremrangebyrank", key);
    Ok(members.into_iter().map(|(member, _)| member).collect())
}
