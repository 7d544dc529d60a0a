//! `math.random` and `math.randomseed`: the same numbers for the same seed on every machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mlua::{Lua, MultiValue, Table, Value};

use super::{failure, host, number};

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const BITS_48: u64 = (1 << 48) - 1;

/// The state after a seed, as POSIX's `srand48` has it.
fn seeded(seed: i32) -> u64 {
    (u64::from(seed as u32) << 16) | 0x330E
}

/// The next of the 31-bit numbers that POSIX's `lrand48` gives.
fn next(state: &AtomicU64) -> u64 {
    let now = state.load(Ordering::Relaxed).wrapping_mul(MULTIPLIER).wrapping_add(0xB) & BITS_48;
    state.store(now, Ordering::Relaxed);
    now >> 17
}

/// The two functions, with a state of their own.
pub(super) fn functions(lua: &Lua, seed: u64) -> mlua::Result<Table> {
    let state = Arc::new(AtomicU64::new(seeded(seed as i32)));
    let functions = lua.create_table()?;
    let own = Arc::clone(&state);
    functions.set(
        "random",
        lua.create_function(move |lua, args: MultiValue| random(lua, &own, &args))?,
    )?;
    functions.set(
        "randomseed",
        lua.create_function(move |lua, seed: Value| {
            let seed = integer(lua, Some(&seed), 1, "randomseed")?;
            state.store(seeded(seed as i32), Ordering::Relaxed);
            Ok(())
        })?,
    )?;
    Ok(functions)
}

fn random(lua: &Lua, state: &AtomicU64, args: &MultiValue) -> mlua::Result<f64> {
    if !host::is_running() {
        return failure::raise(lua, "math.random can only be called inside a script invocation");
    }
    let fraction = next(state) as f64 / f64::from(1u32 << 31);
    match args.len() {
        0 => Ok(fraction),
        1 => {
            let high = integer(lua, args.front(), 1, "random")?;
            if high < 1 {
                return failure::raise(lua, "bad argument #1 to 'random' (interval is empty)");
            }
            Ok((fraction * high as f64).floor() + 1.0)
        }
        2 => {
            let low = integer(lua, args.front(), 1, "random")?;
            let high = integer(lua, args.get(1), 2, "random")?;
            if low > high {
                return failure::raise(lua, "bad argument #2 to 'random' (interval is empty)");
            }
            Ok((fraction * (high - low + 1) as f64).floor() + low as f64)
        }
        _ => failure::raise(lua, "wrong number of arguments"),
    }
}

/// A 32-bit integer, which may be written as text, as Lua allows everywhere.
fn integer(lua: &Lua, value: Option<&Value>, position: usize, name: &str) -> mlua::Result<i64> {
    let given = value.cloned().unwrap_or(Value::Nil);
    match lua.coerce_number(given.clone())? {
        Some(number) => Ok(i64::from(number::to_i64(number) as i32)),
        None => {
            let what = given.type_name();
            let text =
                format!("bad argument #{position} to '{name}' (number expected, got {what})");
            failure::raise(lua, &text)
        }
    }
}
