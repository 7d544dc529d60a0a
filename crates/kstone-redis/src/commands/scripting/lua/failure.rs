//! Errors in scripts, from where they are raised to the reply.
//!
//! Redis's own functions raise a table, `{err = "CODE message"}`; everything else raises a text
//! that begins with its position, `user_script:1: `. A Rust function cannot raise a table, so it
//! raises a [`Failure`], which becomes a table or a text wherever a script could look at it.

use std::fmt;

use mlua::{Lua, Table, Value};

/// The name of the chunk that holds the sandbox's own functions, which no script's author knows.
pub(super) const SANDBOX: &str = "sandbox";

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Failure {
    /// A reply that is an error, with its code. Whether the statistics have counted it already.
    Reply { message: Vec<u8>, is_counted: bool },
    /// A text.
    Text(Vec<u8>),
    /// Somebody killed the script. Nothing can catch it.
    Killed,
    /// Loading a library took too long. Nothing can catch it.
    LoadTimeout,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(&self.message()))
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// An error reply of ours: the code `ERR` and a text.
    pub(super) fn reply(text: &str) -> Failure {
        Failure::Reply { message: format!("ERR {text}").into_bytes(), is_counted: false }
    }

    /// What the failure says, with its code if it has one.
    pub(super) fn message(&self) -> Vec<u8> {
        match self {
            Failure::Reply { message, .. } => message.clone(),
            Failure::Text(text) => text.clone(),
            Failure::Killed => b"ERR Script killed by user with SCRIPT KILL...".to_vec(),
            Failure::LoadTimeout => b"ERR FUNCTION LOAD timeout".to_vec(),
        }
    }

    /// Raises it from a function of ours.
    pub(super) fn raise<T>(self) -> mlua::Result<T> {
        Err(mlua::Error::external(self))
    }

    /// The failure inside an error that went through Lua.
    pub(in super::super) fn of(error: &mlua::Error) -> Failure {
        if let Some(failure) = error.downcast_ref::<Failure>() {
            return failure.clone();
        }
        match error {
            mlua::Error::CallbackError { cause, .. } | mlua::Error::WithContext { cause, .. } => {
                Failure::of(cause)
            }
            mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => {
                let text = text.split("\nstack traceback:").next().unwrap_or(text);
                Failure::Text(text.as_bytes().to_vec())
            }
            other => Failure::Text(other.to_string().into_bytes()),
        }
    }

    /// What a script sees of a failure: a table with `err`, or a text.
    pub(super) fn shown(&self, lua: &Lua) -> mlua::Result<Value> {
        if let Failure::Text(text) = self {
            return Ok(Value::String(lua.create_string(text)?));
        }
        Ok(Value::Table(self.table(lua)?))
    }

    /// The table that Redis's functions raise.
    pub(super) fn table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.raw_set("err", lua.create_string(self.message())?)?;
        if let Failure::Reply { is_counted: true, .. } = self {
            table.raw_set(COUNTED, true)?;
        }
        Ok(table)
    }
}

/// The field of an error table that says that the statistics have counted the error.
pub(super) const COUNTED: &str = "ignore_error_stats_update";

/// Raises a text, with the place in the script that it is about, as Lua's own functions do.
pub(super) fn raise<T>(lua: &Lua, text: &str) -> mlua::Result<T> {
    let mut message = place(lua).map_or(String::new(), |(source, line)| {
        format!("{}:{line}: ", source.trim_start_matches('@'))
    });
    message.push_str(text);
    Failure::Text(message.into_bytes()).raise()
}

/// Where the script is: source and line.
pub(super) fn place(lua: &Lua) -> Option<(String, usize)> {
    (1..10).find_map(|level| {
        lua.inspect_stack(level, |frame| {
            let source = frame.source().source?;
            let is_script = source.starts_with('@') && source.get(1..) != Some(SANDBOX);
            frame.current_line().filter(|_| is_script).map(|line| (source.into_owned(), line))
        })
        .flatten()
    })
}
