//! The Lua that scripts and functions are written in: Lua 5.1 in a sandbox, with the libraries that
//! Redis gives to scripts.
//!
//! [`sandbox`] makes the interpreter and keeps scripts inside it; [`api`] is `redis.*`, which works
//! on whatever script runs on the thread ([`host`]); [`reply`] translates values both ways;
//! [`failure`] is what goes wrong. The other files are the libraries.

mod api;
mod arguments;
mod bit;
mod cjson;
mod cmsgpack;
mod failure;
mod host;
mod library;
mod number;
mod pack;
mod random;
mod reply;
mod sandbox;

use std::sync::Arc;

use mlua::{Function, Lua, MultiValue, RegistryKey, Table, Value};

pub(super) use api::sha1_hex;
pub(super) use failure::Failure;
pub(super) use host::{HOST, Host};
pub(super) use library::{Library, Registered};
pub(super) use reply::{Returned, on_one_line};
pub(super) use sandbox::Raised;

use crate::reply::Sink;
use sandbox::Sandbox;

/// How many runs pass between two steps of the collector.
const COLLECT_EVERY: u32 = 50;

/// A function that was compiled. It is kept in Lua's registry, which has room for any number.
pub(super) type Compiled = Arc<RegistryKey>;

fn compiled(lua: &Lua, function: Function) -> mlua::Result<Compiled> {
    Ok(Arc::new(lua.create_registry_value(function)?))
}

/// An interpreter for scripts, or one for functions.
#[derive(Debug)]
pub(super) struct Interpreter {
    sandbox: Sandbox,
    runs: u32,
}

impl Interpreter {
    /// One for the scripts of EVAL.
    pub(super) fn for_scripts(seed: u64) -> mlua::Result<Interpreter> {
        let sandbox = Sandbox::new(
            |lua| {
                let libraries = libraries(lua)?;
                let redis: Table = libraries.get("redis")?;
                api::add_script_functions(lua, &redis)?;
                Ok(libraries)
            },
            interrupt,
            seed,
        )?;
        Ok(Interpreter { sandbox, runs: 0 })
    }

    /// One for functions.
    pub(super) fn for_functions(seed: u64) -> mlua::Result<Interpreter> {
        let sandbox = Sandbox::new(libraries, library::interrupt, seed)?;
        library::prepare(&sandbox)?;
        Ok(Interpreter { sandbox, runs: 0 })
    }

    /// Compiles a script.
    pub(super) fn compile(&self, code: &[u8]) -> Result<Compiled, String> {
        let function = self.sandbox.compile(code, "@user_script")?;
        compiled(&self.sandbox.lua, function).map_err(|error| error.to_string())
    }

    /// Runs a library's code, which registers its functions.
    pub(super) fn load(&self, code: &[u8], deadline: library::Deadline) -> Result<Library, String> {
        library::load(&self.sandbox, code, deadline)
    }

    /// Runs a script, which finds its keys and arguments by name.
    pub(super) fn run_script(
        &mut self,
        script: &Compiled,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Value, Raised> {
        let prepared = (|| {
            self.sandbox.globals.raw_set("KEYS", self.list(keys)?)?;
            self.sandbox.globals.raw_set("ARGV", self.list(args)?)
        })();
        match prepared {
            Ok(()) => self.run(script, MultiValue::new()),
            Err(error) => Err(Raised::bare(Failure::of(&error))),
        }
    }

    /// Runs a function, which is handed its keys and arguments.
    pub(super) fn run_function(
        &mut self,
        function: &Compiled,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Value, Raised> {
        let prepared = self.list(keys).and_then(|keys| Ok((keys, self.list(args)?)));
        match prepared {
            Ok((keys, args)) => {
                let args = MultiValue::from_vec(vec![Value::Table(keys), Value::Table(args)]);
                self.run(function, args)
            }
            Err(error) => Err(Raised::bare(Failure::of(&error))),
        }
    }

    fn run(&mut self, work: &Compiled, args: MultiValue) -> Result<Value, Raised> {
        let work: Function = match self.sandbox.lua.registry_value(work) {
            Ok(work) => work,
            Err(error) => return Err(Raised::bare(Failure::of(&error))),
        };
        let returned = self.sandbox.run(&work, args);
        self.runs += 1;
        if self.runs >= COLLECT_EVERY {
            self.runs = 0;
            // A collector that fails has nothing to tell a script.
            let _ = self.sandbox.lua.gc_step();
        }
        returned
    }

    fn list(&self, items: &[&[u8]]) -> mlua::Result<Table> {
        let table = self.sandbox.lua.create_table_with_capacity(items.len(), 0)?;
        for (index, item) in items.iter().enumerate() {
            table.raw_seti(index + 1, self.sandbox.lua.create_string(item)?)?;
        }
        Ok(table)
    }

    /// Says what a script returned; see [`reply::write`].
    pub(super) fn reply(
        &self,
        value: &Value,
        is_resp3: bool,
        out: &mut dyn Sink,
    ) -> mlua::Result<Vec<Returned>> {
        reply::write(value, is_resp3, &self.sandbox.next, out)
    }

    /// How many bytes it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        self.sandbox.lua.used_memory()
    }
}

/// Ends a script that somebody killed.
fn interrupt(_: &Lua) -> Result<(), Failure> {
    match host::with(|host| host.is_killed()) {
        Some(true) => Err(Failure::Killed),
        _ => Ok(()),
    }
}

/// The libraries that scripts find.
fn libraries(lua: &Lua) -> mlua::Result<Table> {
    let libraries = lua.create_table()?;
    libraries.set("redis", api::library(lua)?)?;
    libraries.set("bit", bit::library(lua)?)?;
    libraries.set("cjson", cjson::library(lua, lua.globals().get("next")?)?)?;
    libraries.set("cmsgpack", cmsgpack::library(lua)?)?;
    libraries.set("struct", pack::library(lua)?)?;
    Ok(libraries)
}
