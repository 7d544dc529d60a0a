//! `bit`: operations on the lower 32 bits of numbers.

use mlua::{Lua, MultiValue, Table};

use super::arguments::Arguments;

/// A number's lower 32 bits, after rounding.
fn bits(args: &Arguments<'_>, position: usize) -> mlua::Result<u32> {
    let number = args.number(position)?.round_ties_even();
    const RANGE: f64 = 4_294_967_296.0;
    Ok(if number.is_finite() { number.rem_euclid(RANGE) as u64 as u32 } else { 0 })
}

/// As scripts get it back: with a sign.
fn signed(bits: u32) -> i64 {
    i64::from(bits as i32)
}

/// The library.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    for (name, operation) in [
        ("tobit", (|bits| bits) as fn(u32) -> u32),
        ("bnot", |bits| !bits),
        ("bswap", u32::swap_bytes),
    ] {
        let function = lua.create_function(move |lua, args: MultiValue| {
            Ok(signed(operation(bits(&Arguments::new(lua, name, args), 1)?)))
        })?;
        library.set(name, function)?;
    }
    for (name, operation) in [
        ("band", (|one, other| one & other) as fn(u32, u32) -> u32),
        ("bor", |one, other| one | other),
        ("bxor", |one, other| one ^ other),
    ] {
        let function = lua.create_function(move |lua, args: MultiValue| {
            let args = Arguments::new(lua, name, args);
            let mut result = bits(&args, 1)?;
            for position in 2..=args.len() {
                result = operation(result, bits(&args, position)?);
            }
            Ok(signed(result))
        })?;
        library.set(name, function)?;
    }
    for (name, operation) in [
        ("lshift", (|bits, by| bits << by) as fn(u32, u32) -> u32),
        ("rshift", |bits, by| bits >> by),
        ("arshift", |bits, by| ((bits as i32) >> by) as u32),
        ("rol", u32::rotate_left),
        ("ror", u32::rotate_right),
    ] {
        let function = lua.create_function(move |lua, args: MultiValue| {
            let args = Arguments::new(lua, name, args);
            Ok(signed(operation(bits(&args, 1)?, bits(&args, 2)? & 31)))
        })?;
        library.set(name, function)?;
    }
    library.set(
        "tohex",
        lua.create_function(|lua, args: MultiValue| {
            let args = Arguments::new(lua, "tohex", args);
            let number = bits(&args, 1)?;
            let digits = if args.len() < 2 { 8 } else { bits(&args, 2)? as i32 };
            let text = if digits < 0 { format!("{number:08X}") } else { format!("{number:08x}") };
            let digits = (digits.unsigned_abs() as usize).min(8);
            Ok(text.get(8 - digits..).unwrap_or_default().to_owned())
        })?,
    )?;
    Ok(library)
}
