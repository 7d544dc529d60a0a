//! The libraries of functions: their list, loading and deleting.
//!
//! They are stored with the server's own records, one for each library: its text. The functions
//! themselves are compiled from the texts when they are first called.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kstone_core::env::Random as _;

use super::lua::{Interpreter, Registered};
use super::shebang;
use super::state::broken;
use crate::fault::{Fault, Result};
use crate::server::Server;
use crate::store::Txn;

/// How long the code of a library may take to register its functions.
const LOAD_MS_MAX: u64 = 500;

/// A library.
#[derive(Debug, Clone)]
pub(super) struct Library {
    /// As it was given, first line included.
    pub(super) text: Vec<u8>,
    pub(super) functions: Arc<Vec<Registered>>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Libraries {
    interpreter: Option<Interpreter>,
    by_name: BTreeMap<String, Library>,
    /// The functions of all libraries, by their names in lower case.
    functions: HashMap<String, Registered>,
}

/// What to do with a library whose name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Append,
    Replace,
    /// Whatever was there goes.
    Flush,
}

impl Libraries {
    /// Reads the libraries that are stored, the first time.
    pub(super) fn open(&mut self, server: &Server) -> Result<()> {
        if self.interpreter.is_some() {
            return Ok(());
        }
        let mut opened = Libraries {
            interpreter: Some(
                Interpreter::for_functions(server.random.next_u64()).map_err(broken)?,
            ),
            ..Libraries::default()
        };
        for text in server.databases.libraries()? {
            let (name, library) = opened.compile(server, &text, None)?;
            opened.link(name, library);
        }
        *self = opened;
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn functions_len(&self) -> usize {
        self.functions.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Library)> {
        self.by_name.iter()
    }

    /// A function by its name, in any case.
    pub(super) fn function(&self, name: &[u8]) -> Option<Registered> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        self.functions.get(&name).cloned()
    }

    /// What runs functions.
    pub(super) fn interpreter(&mut self) -> Result<&mut Interpreter> {
        self.interpreter.as_mut().ok_or(Fault::fixed("ERR the functions are not loaded"))
    }

    /// Runs the code of a library; returns its name and functions.
    fn compile(
        &self,
        server: &Server,
        text: &[u8],
        most_ms: Option<u64>,
    ) -> Result<(String, Library)> {
        let (name, code) = shebang::of_library(text)?;
        let Some(interpreter) = &self.interpreter else {
            return Err(Fault::fixed("ERR the functions are not loaded"));
        };
        let engine = server.engine.clone();
        let started_ms = engine.now_ms();
        let is_over =
            move || most_ms.is_some_and(|most| engine.now_ms().saturating_sub(started_ms) > most);
        let loaded = interpreter.load(code, Arc::new(is_over));
        let functions = loaded.map_err(|message| Fault::new(format!("ERR {message}")))?;
        if functions.is_empty() {
            return Err(Fault::fixed("ERR No functions registered"));
        }
        Ok((name, Library { text: text.to_vec(), functions: Arc::new(functions) }))
    }

    /// FUNCTION LOAD; returns the library's name.
    pub(super) fn load(
        &mut self,
        server: &Server,
        txn: &mut Txn<'_>,
        text: &[u8],
        replaces: bool,
    ) -> Result<String> {
        let (name, _) = shebang::of_library(text)?;
        if !replaces && self.by_name.contains_key(&name) {
            return Err(Fault::new(format!("ERR Library '{name}' already exists")));
        }
        let (name, library) = self.compile(server, text, Some(LOAD_MS_MAX))?;
        self.check_functions(&library, |owner| owner == name)?;
        txn.put_library(&name, Some(text))?;
        self.unlink(&name);
        self.link(name.clone(), library);
        Ok(name)
    }

    /// Refuses a library with functions that others have, but for those whose libraries go.
    fn check_functions(&self, library: &Library, goes: impl Fn(&str) -> bool) -> Result<()> {
        for function in library.functions.iter() {
            let has = |other: &&Registered| other.name.eq_ignore_ascii_case(&function.name);
            let is_taken = self
                .by_name
                .iter()
                .any(|(name, other)| !goes(name) && other.functions.iter().any(|f| has(&f)));
            if is_taken {
                let name = &function.name;
                return Err(Fault::new(format!("ERR Function {name} already exists")));
            }
        }
        Ok(())
    }

    fn link(&mut self, name: String, library: Library) {
        for function in library.functions.iter() {
            self.functions.insert(function.name.to_ascii_lowercase(), function.clone());
        }
        self.by_name.insert(name, library);
    }

    fn unlink(&mut self, name: &str) -> bool {
        let Some(library) = self.by_name.remove(name) else { return false };
        for function in library.functions.iter() {
            self.functions.remove(&function.name.to_ascii_lowercase());
        }
        true
    }

    /// FUNCTION DELETE.
    pub(super) fn delete(&mut self, txn: &mut Txn<'_>, name: &[u8]) -> Result<()> {
        const NOT_FOUND: Fault = Fault::fixed("ERR Library not found");
        let name = std::str::from_utf8(name).map_err(|_| NOT_FOUND)?;
        if !self.unlink(name) {
            return Err(NOT_FOUND);
        }
        txn.put_library(name, None)
    }

    /// FUNCTION FLUSH.
    pub(super) fn flush(&mut self, txn: &mut Txn<'_>) -> Result<()> {
        for name in self.by_name.keys() {
            txn.put_library(name, None)?;
        }
        self.by_name.clear();
        self.functions.clear();
        Ok(())
    }

    /// FUNCTION RESTORE: all of these libraries or none.
    pub(super) fn restore(
        &mut self,
        server: &Server,
        txn: &mut Txn<'_>,
        texts: &[Vec<u8>],
        policy: Policy,
    ) -> Result<()> {
        let mut come: BTreeMap<String, Library> = BTreeMap::new();
        for text in texts {
            Txn::check_library(text)?;
            let (name, library) = self.compile(server, text, Some(LOAD_MS_MAX))?;
            if come.contains_key(&name) {
                return Err(Fault::new(format!("ERR Library '{name}' already exists")));
            }
            come.insert(name, library);
        }
        if policy == Policy::Append
            && let Some(name) = come.keys().find(|name| self.by_name.contains_key(*name))
        {
            return Err(Fault::new(format!("ERR Library {name} already exists")));
        }
        if policy != Policy::Flush {
            for library in come.values() {
                self.check_functions(library, |owner| come.contains_key(owner))?;
            }
        } else {
            self.flush(txn)?;
        }
        for (name, library) in come {
            self.unlink(&name);
            txn.put_library(&name, Some(&library.text))?;
            self.link(name, library);
        }
        Ok(())
    }
}
