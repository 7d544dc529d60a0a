//! HINCRBY and HINCRBYFLOAT.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::hashes::{Hash, check_len};
use crate::fault::{Fault, Result};
use crate::float::LongDouble;
use crate::store::fields::{self, Field};

/// The field to be changed, if it is there.
fn old_field(context: &mut Context<'_, '_>, hash: &Hash<'_>, name: &[u8]) -> Result<Option<Field>> {
    if hash.head.count == 0 { Ok(None) } else { fields::get(context.txn, hash.key, name) }
}

/// Writes the sum. A field that expires still does.
fn put(
    context: &mut Context<'_, '_>,
    mut hash: Hash<'_>,
    name: &[u8],
    old: Option<Field>,
    sum: &[u8],
    event: &'static str,
) -> Result<()> {
    let expires_at_ms = old.and_then(|old| old.expires_at_ms);
    fields::set(context.txn, hash.key, &mut hash.head, name, sum, expires_at_ms)?;
    hash.changed(context.txn, event, 1)
}

pub(super) fn hincrby(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const NO_NUMBER: Fault = Fault::fixed("ERR hash value is not an integer");
    const OVERFLOW: Fault = Fault::fixed("ERR increment or decrement would overflow");
    let [_, key, name, increment] = args else { return Ok(Flow::Done) };
    let increment = args::integer(increment)?;
    check_len(std::iter::once((*name, &[][..])))?;
    let hash = Hash::find_or_new(context.txn, key)?;
    let old = old_field(context, &hash, name)?;
    let number = match &old {
        None => 0,
        Some(old) => args::parse_integer(&old.value).ok_or(NO_NUMBER)?,
    };
    let sum = number.checked_add(increment).ok_or(OVERFLOW)?;
    put(context, hash, name, old, sum.to_string().as_bytes(), "hincrby")?;
    context.out.reply_integer(sum)
}

pub(super) fn hincrbyfloat(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const NO_NUMBER: Fault = Fault::fixed("ERR hash value is not a float");
    const INFINITE: Fault = Fault::fixed("ERR value is NaN or Infinity");
    const TOO_LARGE: Fault = Fault::fixed("ERR increment would produce NaN or Infinity");
    let [_, key, name, increment] = args else { return Ok(Flow::Done) };
    let increment = LongDouble::parse(increment).ok_or(Fault::NOT_FLOAT)?;
    let zero = LongDouble::parse(b"0").ok_or(Fault::NOT_FLOAT)?;
    if increment.plus(zero).is_none() {
        return Err(INFINITE);
    }
    check_len(std::iter::once((*name, &[][..])))?;
    let hash = Hash::find_or_new(context.txn, key)?;
    let old = old_field(context, &hash, name)?;
    let number = match &old {
        None => zero,
        Some(old) => LongDouble::parse(&old.value).ok_or(NO_NUMBER)?,
    };
    let sum = number.plus(increment).ok_or(TOO_LARGE)?.to_string();
    put(context, hash, name, old, sum.as_bytes(), "hincrbyfloat")?;
    context.out.reply_bulk(sum.as_bytes())
}
