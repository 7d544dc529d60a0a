//! The bytes of a dumped key.
//!
//! Strings, lists, sets, sorted sets and hashes are dumped in Redis's own form, so that Redis can
//! restore them. What that form cannot express, a stream as it is kept here or the expiry of a
//! single field, is dumped in ours: `'K' | kind (1) | length of body (4) | body | (length of sort
//! key (4) | sort key | length of value (4) | value)* | version (2) | checksum of all before (8)`,
//! numbers in little-endian. The end is the same in both forms, so that either server can tell at
//! once that a payload is damaged or is not for it: Redis refuses our version as newer than any it
//! knows.

use std::ops::{Bound, ControlFlow};

use kstone_core::{KEY_LEN_MAX, VALUE_LEN_MAX};

use super::to_redis;
use crate::commands::streams::restore;
use crate::fault::{Fault, Result};
use crate::rdb::{self, Reader};
use crate::store::fields::HashHead;
use crate::store::{Entry, Kind, Txn};

/// The first byte. Redis has its types there, all of them small numbers.
const MARK: u8 = b'K';
/// Our version: larger than any of Redis's.
const VERSION: u16 = 0x4b01;
/// A client could not send a longer one back.
const LEN_MAX: usize = 512 << 20;

const DAMAGED: Fault = Fault::fixed("ERR DUMP payload version or checksum are wrong");
const BAD_FORMAT: Fault = Fault::fixed("ERR Bad data format");

/// A payload whose checksum is right.
#[derive(Debug)]
pub(super) enum Payload<'p> {
    /// One of ours.
    Own(Dump<'p>),
    /// One of Redis's.
    Redis(rdb::Value<'p>),
    /// A stream of Redis's.
    Stream(Box<restore::Stream>),
}

/// A dumped key.
#[derive(Debug)]
pub(super) struct Dump<'p> {
    pub(super) kind: Kind,
    /// What is behind the kind in its head.
    pub(super) body: &'p [u8],
    /// Checked when the payload was read.
    parts: &'p [u8],
}

/// Dumps a key: in Redis's form where that can say all that there is to say, and otherwise in ours.
pub(super) fn write(txn: &mut Txn<'_>, key: &[u8], entry: &Entry) -> Result<Vec<u8>> {
    match to_redis::write(txn, key, entry)? {
        Some(payload) => Ok(rdb::seal(payload, rdb::write::VERSION)),
        None => Ok(rdb::seal(write_own(txn, key, entry)?, VERSION)),
    }
}

fn write_own(txn: &Txn<'_>, key: &[u8], entry: &Entry) -> Result<Vec<u8>> {
    let mut out = vec![MARK, entry.kind.tag()];
    push(&mut out, &entry.body)?;
    if entry.kind.has_parts() {
        txn.each_part(key, Bound::Unbounded, Bound::Unbounded, false, |sk, value| {
            push(&mut out, sk)?;
            push(&mut out, value)?;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(out)
}

/// Refuses a dump that has grown too long for anybody to send it back.
pub(super) fn check_len(len: usize) -> Result<()> {
    if len + rdb::SEAL_LEN <= LEN_MAX {
        return Ok(());
    }
    Err(Fault::fixed("ERR the key is too large to be dumped"))
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    check_len(out.len() + bytes.len() + 4)?;
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Takes the next piece with its length off the front.
fn pull<'p>(bytes: &mut &'p [u8]) -> Option<&'p [u8]> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (piece, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *bytes = rest;
    Some(piece)
}

impl<'p> Payload<'p> {
    /// Checks a payload and reads what it is.
    pub(super) fn read(payload: &'p [u8]) -> Result<Payload<'p>> {
        let (content, version) = rdb::unseal(payload).ok_or(DAMAGED)?;
        if version == VERSION {
            return Dump::read(content).map(Payload::Own).ok_or(BAD_FORMAT);
        }
        if version > rdb::VERSION_MAX {
            return Err(DAMAGED);
        }
        let mut reader = Reader::new(content);
        let kind = reader.byte().ok_or(BAD_FORMAT)?;
        if restore::KINDS.contains(&kind) {
            let stream = restore::read(kind, reader).map(Box::new);
            return stream.map(Payload::Stream).ok_or(BAD_FORMAT);
        }
        rdb::Value::read(kind, reader).map(Payload::Redis).ok_or(BAD_FORMAT)
    }
}

impl<'p> Dump<'p> {
    fn read(content: &'p [u8]) -> Option<Dump<'p>> {
        let [MARK, kind, rest @ ..] = content else { return None };
        let kind = Kind::from_tag(*kind)?;
        let mut parts = rest;
        let body = pull(&mut parts)?;
        let mut rest = parts;
        let mut last: Option<&[u8]> = None;
        while !rest.is_empty() {
            let (sk, value) = (pull(&mut rest)?, pull(&mut rest)?);
            let is_in_order = last.is_none_or(|last| last < sk);
            if !is_in_order || sk.len() > KEY_LEN_MAX || value.len() > VALUE_LEN_MAX {
                return None;
            }
            last = Some(sk);
        }
        match kind {
            Kind::Hash => drop(HashHead::decode(body).ok()?),
            Kind::Stream => restore::check_head(body)?,
            _ => {}
        }
        if body.len() >= VALUE_LEN_MAX || (last.is_some() && !kind.has_parts()) {
            return None;
        }
        Some(Dump { kind, body, parts })
    }

    /// Sort keys and values, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'p [u8], &'p [u8])> {
        let mut rest = self.parts;
        std::iter::from_fn(move || Some((pull(&mut rest)?, pull(&mut rest)?)))
    }
}
