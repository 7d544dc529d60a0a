//! A hash on records: its head, its fields, and the fields whose time is over.
//!
//! The head's body is `fields (8) | next ordinal (4) [| next expiry (8)]`. A field is an element
//! ([`elements`]) with the payload `0 | ordinal (4) | value`, or `1 | ordinal (4) | expires at (8)
//! | value`. Ordinals tell which field came first: a hash of few fields is shown in that order. A
//! field that expires has a second record, `0x02 | expires at (8, big-endian) | the field's sort
//! key without its first byte`, so that what is due is found in order of time.
//!
//! A lookup of a hash first removes what is due ([`purge`], called by `Txn::lookup`): nobody
//! ever sees a field whose time is over, and the number in the head is right. A hash that nobody
//! looks at is woken by its alarm (`Txn::set_alarm`).

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use crate::fault::{Fault, Result};
use crate::store::elements::{self, ELEMENT};
use crate::store::{Entry, Kind, Txn};

/// The first byte of the records that order fields by their expiry.
const DUE: u8 = 2;
/// So many fields are removed within the command that finds them; before that, as many as there
/// are in commits of their own, which need not fit into one.
const PURGE_LEN_MAX: usize = 1000;
/// What a payload takes beside the value, at most.
const PAYLOAD_ROOM: usize = 13;
/// Up to so many fields are shown in the order in which they came.
const ORDERED_LEN_MAX: u64 = 128;

/// A hash's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HashHead {
    /// How many fields there are.
    pub(crate) count: u64,
    /// The ordinal of the next field that is new.
    pub(crate) next_ordinal: u32,
    /// No field expires earlier; `None` if none expires.
    pub(crate) next_expiry_ms: Option<u64>,
}

impl HashHead {
    pub(crate) fn decode(body: &[u8]) -> Result<HashHead> {
        const BROKEN: Fault = Fault::fixed("MISCONF the head of a hash is broken");
        let (count, rest) = body.split_first_chunk().ok_or(BROKEN)?;
        let (ordinal, rest) = rest.split_first_chunk().ok_or(BROKEN)?;
        let next_expiry_ms = match rest {
            [] => None,
            at_ms => Some(u64::from_le_bytes(at_ms.try_into().map_err(|_| BROKEN)?)),
        };
        Ok(HashHead {
            count: u64::from_le_bytes(*count),
            next_ordinal: u32::from_le_bytes(*ordinal),
            next_expiry_ms,
        })
    }

    /// Writes the head; removes the key if there is no field left. Where the next expiry is not
    /// what it was, the alarm is set to it.
    pub(crate) fn put(
        self,
        txn: &mut Txn<'_>,
        key: &[u8],
        was: HashHead,
        expires_at_ms: Option<u64>,
    ) -> Result<()> {
        if self == was {
            return Ok(());
        }
        if self.count == 0 {
            if was.next_expiry_ms.is_some() {
                txn.clear_alarm(key);
            }
            txn.remove_empty(key);
            return Ok(());
        }
        let mut body = [0; 20];
        let (fixed, next) = body.split_at_mut(12);
        let (count, ordinal) = fixed.split_at_mut(8);
        count.copy_from_slice(&self.count.to_le_bytes());
        ordinal.copy_from_slice(&self.next_ordinal.to_le_bytes());
        let Some(next_ms) = self.next_expiry_ms else {
            if was.next_expiry_ms.is_some() {
                txn.clear_alarm(key);
            }
            return txn.put_head(key, Kind::Hash, fixed, expires_at_ms);
        };
        next.copy_from_slice(&next_ms.to_le_bytes());
        if self.next_expiry_ms != was.next_expiry_ms {
            txn.set_alarm(key, next_ms);
        }
        txn.put_head(key, Kind::Hash, &body, expires_at_ms)
    }
}

/// What a hash has under a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) value: Bytes,
    pub(crate) expires_at_ms: Option<u64>,
    ordinal: u32,
}

/// A field's payload, read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Payload<'a> {
    pub(crate) ordinal: u32,
    pub(crate) expires_at_ms: Option<u64>,
    pub(crate) value: &'a [u8],
}

impl<'a> Payload<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Payload<'a> {
        Payload::decode(bytes).unwrap_or_default()
    }

    fn decode(bytes: &'a [u8]) -> Option<Payload<'a>> {
        let (expires, rest) = bytes.split_first()?;
        let (ordinal, value) = rest.split_first_chunk()?;
        let ordinal = u32::from_le_bytes(*ordinal);
        if *expires == 0 {
            return Some(Payload { ordinal, expires_at_ms: None, value });
        }
        let (at_ms, value) = value.split_first_chunk()?;
        Some(Payload { ordinal, expires_at_ms: Some(u64::from_le_bytes(*at_ms)), value })
    }

    fn encode(self) -> Vec<u8> {
        // Exactly as much as it takes: then nothing is moved when it becomes shared bytes.
        let head_len = if self.expires_at_ms.is_some() { PAYLOAD_ROOM } else { 5 };
        let mut bytes = Vec::with_capacity(head_len + self.value.len());
        bytes.push(u8::from(self.expires_at_ms.is_some()));
        bytes.extend_from_slice(&self.ordinal.to_le_bytes());
        if let Some(at_ms) = self.expires_at_ms {
            bytes.extend_from_slice(&at_ms.to_le_bytes());
        }
        bytes.extend_from_slice(self.value);
        bytes
    }
}

/// A field of a hash that is there.
pub(crate) fn get(txn: &Txn<'_>, key: &[u8], name: &[u8]) -> Result<Option<Field>> {
    get_at(txn, key, &elements::sort_key(name), name)
}

fn get_at(txn: &Txn<'_>, key: &[u8], sk: &[u8], name: &[u8]) -> Result<Option<Field>> {
    let Some(payload) = elements::get(txn, key, sk, name)? else { return Ok(None) };
    let Payload { ordinal, expires_at_ms, value } = Payload::read(&payload);
    Ok(Some(Field { value: payload.slice_ref(value), expires_at_ms, ordinal }))
}

/// An error unless a field can be stored.
pub(crate) fn check_len(name: &[u8], value: &[u8]) -> Result<()> {
    elements::check_len(name, value.len() + PAYLOAD_ROOM)
}

/// Shows every field of a hash that is there, with its payload, until told to stop: if they are
/// few, in the order in which they came.
pub(crate) fn each(
    txn: &Txn<'_>,
    key: &[u8],
    count: u64,
    mut see: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    if count > ORDERED_LEN_MAX || count == 1 {
        return elements::each(txn, key, see);
    }
    // Names and payloads one behind the other, and where each begins.
    let (mut bytes, mut found) = (Vec::new(), Vec::with_capacity(count as usize));
    elements::each(txn, key, |name, payload| {
        let start = bytes.len();
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(payload);
        found.push((Payload::read(payload).ordinal, start, name.len(), payload.len()));
        Ok(ControlFlow::Continue(()))
    })?;
    found.sort_unstable();
    for (_, start, name_len, payload_len) in found {
        let field = bytes.get(start..start + name_len + payload_len).unwrap_or_default();
        let (name, payload) = field.split_at_checked(name_len).unwrap_or_default();
        if see(name, payload)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Writes a field, keeping count in `head`; returns what was there. The caller writes the head.
pub(crate) fn set(
    txn: &mut Txn<'_>,
    key: &[u8],
    head: &mut HashHead,
    name: &[u8],
    value: &[u8],
    expires_at_ms: Option<u64>,
) -> Result<Option<Field>> {
    let sk = elements::sort_key(name);
    let old = get_at(txn, key, &sk, name)?;
    let ordinal = match &old {
        None => {
            head.count += 1;
            let ordinal = head.next_ordinal;
            head.next_ordinal = ordinal.saturating_add(1);
            ordinal
        }
        Some(old) => {
            forget_expiry(txn, key, head, &sk, old.expires_at_ms, expires_at_ms)?;
            old.ordinal
        }
    };
    put_at(txn, key, head, &sk, name, Payload { ordinal, expires_at_ms, value });
    Ok(old)
}

/// Gives a field that is there another expiry or none.
pub(crate) fn set_expiry(
    txn: &mut Txn<'_>,
    key: &[u8],
    head: &mut HashHead,
    name: &[u8],
    field: &Field,
    expires_at_ms: Option<u64>,
) -> Result<()> {
    let sk = elements::sort_key(name);
    forget_expiry(txn, key, head, &sk, field.expires_at_ms, expires_at_ms)?;
    let payload = Payload { ordinal: field.ordinal, expires_at_ms, value: &field.value };
    put_at(txn, key, head, &sk, name, payload);
    Ok(())
}

fn put_at(
    txn: &mut Txn<'_>,
    key: &[u8],
    head: &mut HashHead,
    sk: &[u8],
    name: &[u8],
    payload: Payload<'_>,
) {
    if let Some(at_ms) = payload.expires_at_ms {
        txn.put_part(key, &due_at(at_ms, sk), Bytes::new());
        head.next_expiry_ms = Some(head.next_expiry_ms.map_or(at_ms, |next| next.min(at_ms)));
    }
    elements::put(txn, key, sk, name, payload.encode());
}

/// Removes a field; returns what was there. The caller writes the head.
pub(crate) fn delete(
    txn: &mut Txn<'_>,
    key: &[u8],
    head: &mut HashHead,
    name: &[u8],
) -> Result<Option<Field>> {
    let sk = elements::sort_key(name);
    let Some(old) = get_at(txn, key, &sk, name)? else { return Ok(None) };
    txn.delete_member(key, &sk);
    forget_expiry(txn, key, head, &sk, old.expires_at_ms, None)?;
    head.count = head.count.saturating_sub(1);
    Ok(Some(old))
}

/// The field no longer expires when it did, but `then`.
fn forget_expiry(
    txn: &mut Txn<'_>,
    key: &[u8],
    head: &mut HashHead,
    sk: &[u8],
    was_ms: Option<u64>,
    then_ms: Option<u64>,
) -> Result<()> {
    let Some(was_ms) = was_ms else { return Ok(()) };
    if then_ms == Some(was_ms) {
        return Ok(());
    }
    txn.delete_part(key, &due_at(was_ms, sk));
    if head.next_expiry_ms == Some(was_ms) {
        head.next_expiry_ms = first_due(txn, key)?;
    }
    Ok(())
}

fn due_at(at_ms: u64, sk: &[u8]) -> Vec<u8> {
    [&[DUE], at_ms.to_be_bytes().as_slice(), sk.get(1..).unwrap_or_default()].concat()
}

/// When a field expires, and its sort key, from the record that orders it by time.
fn read_due(sk: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (at_ms, field) = sk.get(1..)?.split_first_chunk()?;
    Some((u64::from_be_bytes(*at_ms), [&[ELEMENT], field].concat()))
}

fn first_due(txn: &Txn<'_>, key: &[u8]) -> Result<Option<u64>> {
    let mut first = None;
    let (low, high) = (Bound::Included(&[DUE][..]), Bound::Excluded(&[DUE + 1][..]));
    txn.each_part(key, low, high, false, |sk, _| {
        first = read_due(sk).map(|(at_ms, _)| at_ms);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(first)
}

/// The sort keys of the two records of a field that is due: in order of time, and the field.
type Due = (Vec<u8>, Vec<u8>);

/// Shows the fields that are due, until told to stop.
fn each_due(
    txn: &Txn<'_>,
    key: &[u8],
    mut see: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<()> {
    let high = due_at(txn.now_ms().saturating_add(1), &[]);
    let (low, high) = (Bound::Included(&[DUE][..]), Bound::Excluded(high.as_slice()));
    txn.each_part(key, low, high, false, |sk, _| Ok(see(sk)))
}

/// Up to so many fields that are due.
fn due(txn: &Txn<'_>, key: &[u8], most: usize) -> Result<Vec<Due>> {
    let mut found = Vec::new();
    each_due(txn, key, |sk| {
        if let Some((_, field)) = read_due(sk) {
            found.push((sk.to_vec(), field));
        }
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

/// Whether a hash has fields that are due and none else: it is as good as gone. Changes nothing.
pub(crate) fn is_gone(txn: &Txn<'_>, key: &[u8], body: &[u8]) -> Result<bool> {
    let head = HashHead::decode(body)?;
    if head.next_expiry_ms.is_none_or(|next_ms| next_ms > txn.now_ms()) {
        return Ok(false);
    }
    let mut left = head.count;
    each_due(txn, key, |_| {
        left = left.saturating_sub(1);
        ControlFlow::Continue(())
    })?;
    Ok(left == 0)
}

/// Sets the alarm of a key that has got the head and the parts of a hash from elsewhere.
pub(crate) fn set_alarm(txn: &mut Txn<'_>, key: &[u8], body: &[u8]) -> Result<()> {
    if let Some(next_ms) = HashHead::decode(body)?.next_expiry_ms {
        txn.set_alarm(key, next_ms);
    }
    Ok(())
}

/// Removes the fields of a hash that are due; returns the hash as it is then, if it is still there.
pub(crate) fn purge(txn: &mut Txn<'_>, key: &[u8], entry: Entry) -> Result<Option<Entry>> {
    let was = HashHead::decode(&entry.body)?;
    if was.next_expiry_ms.is_none_or(|next_ms| next_ms > txn.now_ms()) {
        return Ok(Some(entry));
    }
    let mut head = was;
    loop {
        let most = if txn.has_changed(key) { usize::MAX } else { PURGE_LEN_MAX };
        let found = due(txn, key, most)?;
        if found.len() >= most {
            // One is left for the command itself, which removes the hash with its last field.
            let some = found.split_last().map_or(&[][..], |(_, some)| some);
            let mut aside = txn.aside();
            let stored = head;
            remove_due(&mut aside, key, &mut head, some)?;
            head.put(&mut aside, key, stored, entry.expires_at_ms)?;
            aside.commit_aside()?;
            continue;
        }
        remove_due(txn, key, &mut head, &found)?;
        if !found.is_empty() {
            txn.touch(key);
            txn.notify('h', "hexpired", key);
        }
        if head.count == 0 {
            txn.notify('g', "del", key);
        }
        head.put(txn, key, was, entry.expires_at_ms)?;
        txn.note_timed(key);
        return if head.count == 0 { Ok(None) } else { txn.lookup_quietly(key) };
    }
}

fn remove_due(txn: &mut Txn<'_>, key: &[u8], head: &mut HashHead, some: &[Due]) -> Result<()> {
    for (due_sk, field_sk) in some {
        txn.delete_part(key, due_sk);
        txn.delete_member(key, field_sk);
    }
    head.count = head.count.saturating_sub(some.len() as u64);
    head.next_expiry_ms = first_due(txn, key)?;
    Ok(())
}
