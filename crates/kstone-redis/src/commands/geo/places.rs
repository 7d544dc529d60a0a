//! GEOADD, GEOPOS, GEODIST, GEOHASH.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::geo::hash::Position;
use crate::commands::sorted_sets::{self, SortedSet};
use crate::fault::{Fault, Result};
use crate::float::plain_text;
use crate::reply::Out;

/// A position as two arguments give it.
pub(super) fn position(longitude: &[u8], latitude: &[u8]) -> Result<Position> {
    let position =
        Position { longitude: args::float(longitude)?, latitude: args::float(latitude)? };
    if position.is_valid() {
        return Ok(position);
    }
    Err(Fault::new(format!(
        "ERR invalid longitude,latitude pair {:.6},{:.6}",
        position.longitude, position.latitude
    )))
}

/// How many metres a unit has.
pub(super) fn unit_m(unit: &[u8]) -> Result<f64> {
    match unit {
        _ if args::is(unit, "m") => Ok(1.0),
        _ if args::is(unit, "km") => Ok(1000.0),
        _ if args::is(unit, "ft") => Ok(0.3048),
        _ if args::is(unit, "mi") => Ok(1609.34),
        _ => Err(Fault::fixed("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}

/// Says a distance: four digits after the point are plenty, even for kilometres.
pub(super) fn write_distance(out: Out<'_>, distance: f64) {
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    let (sign, scaled) = (if scaled < 0 { "-" } else { "" }, scaled.unsigned_abs());
    out.bulk(format!("{sign}{}.{:04}", scaled / 10_000, scaled % 10_000).as_bytes());
}

/// Says a position: a list of two numbers.
pub(super) fn write_position(out: Out<'_>, resp3: bool, position: Position) {
    out.array(2);
    for degrees in [position.longitude, position.latitude] {
        match resp3 {
            true => out.double(degrees),
            false => out.bulk(plain_text(degrees).as_bytes()),
        }
    }
}

pub(super) fn geoadd(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let mut rest = rest;
    let mut options = sorted_sets::Options::default();
    while let [option, after @ ..] = rest {
        match option {
            _ if args::is(option, "nx") => options.nx = true,
            _ if args::is(option, "xx") => options.xx = true,
            _ if args::is(option, "ch") => options.ch = true,
            _ => break,
        }
        rest = after;
    }
    let (places, []) = rest.as_chunks::<3>() else { return Err(Fault::SYNTAX) };
    if places.is_empty() || (options.nx && options.xx) {
        return Err(Fault::SYNTAX);
    }
    let mut scored = Vec::with_capacity(places.len());
    for [longitude, latitude, member] in places {
        scored.push((position(longitude, latitude)?.score(), *member));
    }
    sorted_sets::add(context, key, &scored, options)
}

/// The position of a member of a set that is there or not.
pub(super) fn find_position(
    context: &Context<'_, '_>,
    key: &[u8],
    set: Option<&SortedSet>,
    member: &[u8],
) -> Result<Option<Position>> {
    let score = match set {
        Some(_) => SortedSet::score(context.txn, key, member)?,
        None => None,
    };
    Ok(score.map(Position::of_score))
}

pub(super) fn geopos(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, members @ ..] = args else { return Err(Fault::SYNTAX) };
    let set = SortedSet::find(context.txn, key)?;
    context.out.array(members.len());
    for member in members {
        match find_position(context, key, set.as_ref(), member)? {
            Some(position) => write_position(context.out, context.client.resp3, position),
            None => context.out.null_array(),
        }
    }
    Ok(Flow::Done)
}

pub(super) fn geohash(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, members @ ..] = args else { return Err(Fault::SYNTAX) };
    let set = SortedSet::find(context.txn, key)?;
    context.out.array(members.len());
    for member in members {
        let position = find_position(context, key, set.as_ref(), member)?;
        context.out.bulk_or_null(position.map(Position::geohash).as_ref().map(|hash| &hash[..]));
    }
    Ok(Flow::Done)
}

pub(super) fn geodist(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let (key, from, to, unit) = match args {
        [_, key, from, to] => (key, from, to, 1.0),
        [_, key, from, to, unit] => (key, from, to, unit_m(unit)?),
        _ => return Err(Fault::SYNTAX),
    };
    let set = SortedSet::find(context.txn, key)?;
    let from = find_position(context, key, set.as_ref(), from)?;
    let to = find_position(context, key, set.as_ref(), to)?;
    match (from, to) {
        (Some(from), Some(to)) => write_distance(context.out, from.distance_m(to) / unit),
        _ => context.out.null(),
    }
    Ok(Flow::Done)
}
