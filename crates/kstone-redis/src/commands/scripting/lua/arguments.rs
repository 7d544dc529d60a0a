//! Arguments of the libraries' functions, with the errors that Lua's own functions give.

use mlua::{BorrowedBytes, Lua, LuaString, MultiValue, Value};

use super::failure;

/// The arguments of one call.
#[derive(Debug)]
pub(super) struct Arguments<'l> {
    lua: &'l Lua,
    /// The function's name, for messages.
    name: &'static str,
    values: MultiValue,
}

impl<'l> Arguments<'l> {
    pub(super) fn new(lua: &'l Lua, name: &'static str, values: MultiValue) -> Self {
        Arguments { lua, name, values }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The argument at a position that counts from 1.
    pub(super) fn get(&self, position: usize) -> Option<&Value> {
        self.values.get(position.checked_sub(1)?)
    }

    /// Raises that an argument is not as it should be.
    pub(super) fn refuse<T>(&self, position: usize, what: &str) -> mlua::Result<T> {
        failure::raise(self.lua, &format!("bad argument #{position} to '{}' ({what})", self.name))
    }

    fn expected<T>(&self, position: usize, what: &str) -> mlua::Result<T> {
        let got = self.get(position).map_or("no value", |value| match value.type_name() {
            "integer" => "number",
            name => name,
        });
        self.refuse(position, &format!("{what} expected, got {got}"))
    }

    /// A number, which may be written as text.
    pub(super) fn number(&self, position: usize) -> mlua::Result<f64> {
        let given = self.get(position).cloned().unwrap_or(Value::Nil);
        match self.lua.coerce_number(given)? {
            Some(number) => Ok(number),
            None => self.expected(position, "number"),
        }
    }

    /// A whole number; `default` if it is not given.
    pub(super) fn integer_or(&self, position: usize, default: i64) -> mlua::Result<i64> {
        match self.get(position) {
            None | Some(Value::Nil) => Ok(default),
            Some(_) => Ok(super::number::to_i64(self.number(position)?)),
        }
    }

    /// A text, which may be a number.
    pub(super) fn text(&self, position: usize) -> mlua::Result<LuaString> {
        match self.get(position) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(value @ (Value::Integer(_) | Value::Number(_))) => {
                match self.lua.coerce_string(value.clone())? {
                    Some(text) => Ok(text),
                    None => self.expected(position, "string"),
                }
            }
            _ => self.expected(position, "string"),
        }
    }
}

/// One argument of a Redis command.
#[derive(Debug)]
pub(super) enum CommandArgument {
    Text(BorrowedBytes),
    Number(String),
}

impl CommandArgument {
    /// What a script may hand to a command: a text or a number.
    pub(super) fn of(value: &Value) -> Option<CommandArgument> {
        match value {
            Value::String(text) => Some(CommandArgument::Text(text.as_bytes())),
            Value::Integer(number) => Some(CommandArgument::Number(number.to_string())),
            Value::Number(number) => {
                Some(CommandArgument::Number(super::number::general(*number, 17)))
            }
            _ => None,
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            CommandArgument::Text(text) => text,
            CommandArgument::Number(text) => text.as_bytes(),
        }
    }
}
