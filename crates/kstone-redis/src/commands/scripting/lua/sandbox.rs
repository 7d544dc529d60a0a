//! The sandboxed interpreter that scripts run in.

use mlua::{
    Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState,
    chunk::ChunkMode,
};

use super::failure::{self, COUNTED, Failure, SANDBOX};
use super::host;

/// How many instructions pass between two looks at whether a script takes too long.
const LOOK_EVERY: u32 = 10_000;

/// All scripts and functions together may take so much memory. A script that takes more fails: the
/// machine's memory is everybody's, and without a limit one loop ends the whole server. Not
/// smaller, because values may be hundreds of megabytes long, and what is no longer needed is freed
/// late.
const MEMORY_BYTES_MAX: usize = 1 << 30;

/// An interpreter with its sandbox.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) lua: Lua,
    /// What scripts find by name.
    pub(super) globals: Table,
    /// The metatable of the shell before the globals: its `__index` is what scripts find.
    pub(super) within: Table,
    protect: Function,
    run: Function,
    /// Lua's own.
    pcall: Function,
    /// Lua's own, which gives a table's next pair.
    pub(super) next: Function,
}

impl Sandbox {
    /// An interpreter whose scripts find these libraries, each a name and a table. `interrupt` is
    /// asked now and then whether to go on; `seed` is where `math.random` begins.
    pub(super) fn new(
        libraries: impl FnOnce(&Lua) -> mlua::Result<Table>,
        interrupt: fn(&Lua) -> Result<(), Failure>,
        seed: u64,
    ) -> mlua::Result<Sandbox> {
        let std = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(std, LuaOptions::default())?;
        lua.set_memory_limit(MEMORY_BYTES_MAX)?;
        let libraries = libraries(&lua)?;
        let (pcall, next) = (lua.globals().get("pcall")?, lua.globals().get("next")?);
        let chunk = lua.load(include_str!("sandbox.lua")).set_name(format!("@{SANDBOX}"));
        let chunk = chunk.set_environment(lua.create_table()?);
        let made: Table = chunk.call((lua.globals(), natives(&lua, seed)?, libraries))?;
        lua.set_globals(made.get("shell")?)?;
        let triggers = HookTriggers::new().every_nth_instruction(LOOK_EVERY);
        lua.set_global_hook(triggers, move |lua, _| match interrupt(lua) {
            Ok(()) => Ok(VmState::Continue),
            Err(failure) => failure.raise(),
        })?;
        Ok(Sandbox {
            globals: made.get("globals")?,
            within: made.get("within")?,
            protect: made.get("protect")?,
            run: made.get("run")?,
            pcall,
            next,
            lua,
        })
    }

    /// A shell before a table, which scripts cannot change it through.
    pub(super) fn protect(&self, table: Table) -> mlua::Result<Table> {
        self.protect.call(table)
    }

    /// Compiles source; never bytecode, which could do anything.
    pub(super) fn compile(&self, source: &[u8], name: &str) -> Result<Function, String> {
        compile(&self.lua, source, name)
    }

    /// Calls a function; what it raises is the error.
    pub(super) fn run(&self, work: &Function, args: MultiValue) -> Result<Value, Raised> {
        let mut call = args;
        call.push_front(Value::Function(work.clone()));
        let raised = match self.run.call::<(bool, Value)>(call) {
            Ok((true, value)) => return Ok(value),
            Ok((false, raised)) => Raised::of(&raised),
            Err(error) => Raised::bare(Failure::of(&error)),
        };
        // If that was for lack of memory, the next script must find some: nothing is freed when an
        // allocation fails.
        if self.lua.used_memory() > MEMORY_BYTES_MAX / 2 {
            let _ = self.lua.gc_collect();
        }
        Err(raised)
    }

    /// Calls a function without arguments that is to return nothing.
    pub(super) fn call_bare(&self, work: &Function) -> mlua::Result<()> {
        let (ok, raised): (bool, Value) = self.pcall.call(work)?;
        match raised {
            _ if ok => Ok(()),
            Value::Error(error) => Err(*error),
            Value::String(text) => Failure::Text(text.as_bytes().to_vec()).raise(),
            Value::Table(table) => match table.raw_get::<Value>("err")? {
                Value::String(text) => {
                    Failure::Reply { message: text.as_bytes().to_vec(), is_counted: false }.raise()
                }
                _ => Failure::reply("execution failure").raise(),
            },
            _ => Failure::reply("execution failure").raise(),
        }
    }

    /// What raises that a global is missing.
    pub(super) fn missing(&self) -> mlua::Result<Function> {
        match self.globals.metatable() {
            Some(metatable) => metatable.raw_get("__index"),
            None => Err(mlua::Error::runtime("the globals have lost their metatable")),
        }
    }
}

/// What a script raised and did not catch.
#[derive(Debug)]
pub(in super::super) struct Raised {
    pub(in super::super) message: Vec<u8>,
    /// Source and line.
    pub(in super::super) place: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether the statistics have counted it.
    pub(in super::super) is_counted: bool,
    /// Whether there is no more to it than a text: not even an explanation could be made.
    pub(in super::super) is_bare: bool,
}

impl Raised {
    /// What kept a script from running.
    pub(super) fn bare(failure: Failure) -> Raised {
        Raised::bare_text(failure.message())
    }

    fn bare_text(message: Vec<u8>) -> Raised {
        Raised { message, place: None, is_counted: false, is_bare: true }
    }

    fn of(raised: &Value) -> Raised {
        let table = match raised {
            Value::Table(table) => table,
            Value::String(text) => return Raised::bare_text(text.as_bytes().to_vec()),
            _ => return Raised::bare_text(b"execution failure".to_vec()),
        };
        let text = |name: &str| match table.raw_get::<Value>(name) {
            Ok(Value::String(text)) => Some(text.as_bytes().to_vec()),
            Ok(Value::Integer(number)) => Some(number.to_string().into_bytes()),
            _ => None,
        };
        Raised {
            message: text("err").unwrap_or_else(|| b"ERR unknown error".to_vec()),
            place: text("source").zip(text("line")),
            is_counted: matches!(table.raw_get::<Value>(COUNTED), Ok(Value::Boolean(true))),
            is_bare: false,
        }
    }
}

fn compile(lua: &Lua, source: &[u8], name: &str) -> Result<Function, String> {
    if source.first() == Some(&0x1b) {
        return Err("attempt to load chunk with wrong mode".to_owned());
    }
    let chunk = lua.load(source).set_name(name).set_mode(ChunkMode::Text);
    chunk.into_function().map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => message,
        other => other.to_string(),
    })
}

/// What the sandbox's own code calls.
fn natives(lua: &Lua, seed: u64) -> mlua::Result<Table> {
    let natives = lua.create_table()?;
    natives.set(
        "refuse",
        lua.create_function(|lua, _: MultiValue| -> mlua::Result<()> {
            failure::raise(lua, "Attempt to modify a readonly table")
        })?,
    )?;
    natives.set(
        "missing",
        lua.create_function(|lua, (_, name): (Value, Value)| -> mlua::Result<()> {
            let name = name.to_string().unwrap_or_default();
            let text = format!("Script attempted to access nonexistent global variable '{name}'");
            failure::raise(lua, &text)
        })?,
    )?;
    natives.set(
        "bad_argument",
        lua.create_function(
            |lua, (position, name, what): (i64, String, String)| -> mlua::Result<()> {
                failure::raise(lua, &format!("bad argument #{position} to '{name}' ({what})"))
            },
        )?,
    )?;
    natives.set("caught", lua.create_function(caught)?)?;
    natives.set("raised", lua.create_function(raised)?)?;
    natives.set("explain", lua.create_function(explain)?)?;
    natives.set(
        "loadstring",
        lua.create_function(|lua, (source, name): (mlua::LuaString, Option<mlua::LuaString>)| {
            loaded(lua, &source.as_bytes(), name)
        })?,
    )?;
    natives.set(
        "load",
        lua.create_function(|lua, (read, name): (Function, Option<mlua::LuaString>)| {
            let mut source = Vec::new();
            loop {
                match read.call::<Value>(())? {
                    Value::String(piece) if !piece.as_bytes().is_empty() => {
                        source.extend_from_slice(&piece.as_bytes());
                    }
                    Value::String(_) | Value::Nil => break,
                    _ => return failure::raise(lua, "reader function must return a string"),
                }
            }
            let name = match name {
                Some(name) => name,
                None => lua.create_string("=(load)")?,
            };
            loaded(lua, &source, Some(name))
        })?,
    )?;
    natives.set("math", super::random::functions(lua, seed)?)?;
    Ok(natives)
}

/// A function, or nil and why there is none.
fn loaded(
    lua: &Lua,
    source: &[u8],
    name: Option<mlua::LuaString>,
) -> mlua::Result<(Value, Option<String>)> {
    let name = match name {
        Some(name) => name.to_string_lossy(),
        None => String::from_utf8_lossy(source).into_owned(),
    };
    Ok(match compile(lua, source, &name) {
        Ok(function) => (Value::Function(function), None),
        Err(message) => (Value::Nil, Some(message)),
    })
}

/// What nothing in a script can catch.
fn pass_on(failure: &Failure) -> mlua::Result<()> {
    let must_end = host::with(|host| host.is_killed()).unwrap_or(false);
    match failure {
        Failure::Killed | Failure::LoadTimeout => failure.clone().raise(),
        _ if must_end => Failure::Killed.raise(),
        _ => Ok(()),
    }
}

/// What `pcall` answers for what was raised: an error reply is its text.
fn caught(lua: &Lua, raised: Value) -> mlua::Result<Value> {
    match &raised {
        Value::Error(error) => {
            let failure = Failure::of(error);
            pass_on(&failure)?;
            Ok(Value::String(lua.create_string(failure.message())?))
        }
        Value::Table(table) => {
            pass_on(&Failure::Text(Vec::new()))?;
            match table.raw_get::<Value>("err")? {
                text @ Value::String(_) => Ok(text),
                _ => Ok(raised),
            }
        }
        _ => {
            pass_on(&Failure::Text(Vec::new()))?;
            Ok(raised)
        }
    }
}

/// What `xpcall`'s handler and who resumes a coroutine get for what was raised.
fn raised(lua: &Lua, mut values: MultiValue) -> mlua::Result<MultiValue> {
    if let Some(Value::Error(error)) = values.front() {
        let failure = Failure::of(error);
        pass_on(&failure)?;
        let shown = failure.shown(lua)?;
        if let Some(first) = values.front_mut() {
            *first = shown;
        }
    } else {
        pass_on(&Failure::Text(Vec::new()))?;
    }
    Ok(values)
}

/// The table for the reply of a script that raised: what, and where.
fn explain(lua: &Lua, raised: Value) -> mlua::Result<Table> {
    let table = match raised {
        Value::Table(table) => table,
        Value::Error(error) => match Failure::of(&error) {
            Failure::Text(text) => {
                Failure::Reply { message: [b"ERR ", text.as_slice()].concat(), is_counted: false }
                    .table(lua)?
            }
            failure => failure.table(lua)?,
        },
        other => {
            let text = match &other {
                Value::String(text) => text.as_bytes().to_vec(),
                other => other.to_string()?.into_bytes(),
            };
            Failure::Reply { message: [b"ERR ", text.as_slice()].concat(), is_counted: false }
                .table(lua)?
        }
    };
    if let Some((source, line)) = failure::place(lua) {
        table.raw_set("source", source)?;
        table.raw_set("line", line)?;
    }
    Ok(table)
}
