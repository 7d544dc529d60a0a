//! The server's scripts and functions: the cache of compiled scripts, and the libraries.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use kstone_core::env::Random as _;
use kstone_core::sync::{Mutex, MutexGuard};

use super::libraries::Libraries;
use super::lua::{Compiled, Interpreter, sha1_hex};
use super::running::Running;
use super::shebang;
use crate::command_spec::{Request, flag};
use crate::fault::{Fault, Result};
use crate::server::{ScriptUsage, Server};

/// A script that was compiled.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) function: Compiled,
    /// What it says about itself, if anything.
    pub(super) flags: Option<u32>,
}

/// Most scripts that came by EVAL and are kept. A client that writes values into the text of a
/// script sends another one each time, and never asks for it again.
const EVALUATED_MAX: usize = 500;

/// The scripts of EVAL, by digest. The cache is gone when the server stops.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) interpreter: Interpreter,
    scripts: HashMap<String, CachedScript>,
    text_bytes: usize,
    /// How many came by EVAL alone.
    evaluated: usize,
    /// Counts the uses.
    now: u64,
}

#[derive(Debug)]
struct CachedScript {
    script: Script,
    bytes: usize,
    /// It came by SCRIPT LOAD: somebody counts on its being there.
    is_loaded: bool,
    used: u64,
}

impl Cache {
    /// The script with this digest.
    pub(super) fn get(&self, digest: &str) -> Option<&Script> {
        self.scripts.get(digest).map(|kept| &kept.script)
    }

    /// The same, to be run.
    pub(super) fn take_up(&mut self, digest: &str) -> Option<Script> {
        self.now += 1;
        let kept = self.scripts.get_mut(digest)?;
        kept.used = self.now;
        Some(kept.script.clone())
    }

    /// Compiles a script, unless it is there; returns its digest. One that is not loaded but only
    /// came with EVAL may make room for others.
    pub(super) fn add(&mut self, body: &[u8], is_loaded: bool) -> Result<(String, Script)> {
        let digest = sha1_hex(body);
        self.now += 1;
        if let Some(kept) = self.scripts.get_mut(&digest) {
            kept.used = self.now;
            if is_loaded && !kept.is_loaded {
                kept.is_loaded = true;
                self.evaluated -= 1;
            }
            return Ok((digest, kept.script.clone()));
        }
        let (flags, code) = shebang::of_script(body)?;
        let function = self.interpreter.compile(code).map_err(|message| {
            Fault::new(format!("ERR Error compiling script (new function): {message}"))
        })?;
        let script = Script { function, flags };
        let (bytes, used) = (digest.len() + body.len(), self.now);
        let kept = CachedScript { script: script.clone(), bytes, is_loaded, used };
        self.scripts.insert(digest.clone(), kept);
        self.text_bytes += bytes;
        if !is_loaded {
            self.evaluated += 1;
            self.make_room();
        }
        Ok((digest, script))
    }

    fn make_room(&mut self) {
        if self.evaluated <= EVALUATED_MAX {
            return;
        }
        let evaluated = self.scripts.iter().filter(|(_, kept)| !kept.is_loaded);
        let oldest = evaluated.min_by_key(|(_, kept)| kept.used);
        let oldest = oldest.map(|(digest, _)| digest.clone());
        if let Some(kept) = oldest.and_then(|digest| self.scripts.remove(&digest)) {
            self.text_bytes -= kept.bytes;
            self.evaluated -= 1;
        }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Scripts {
    /// Made when the first script comes, and anew after SCRIPT FLUSH.
    cache: Mutex<Option<Cache>>,
    libraries: Mutex<Libraries>,
    /// What runs now.
    pub(crate) running: Running,
    usage: Usage,
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts").field("running", &self.running).finish_non_exhaustive()
    }
}

/// Figures for INFO, which must not wait for a script that runs.
#[derive(Debug, Default)]
struct Usage {
    lua_bytes: AtomicUsize,
    text_bytes: AtomicUsize,
    scripts: AtomicUsize,
    functions: AtomicUsize,
    libraries: AtomicUsize,
}

impl Scripts {
    /// Reads the functions that are stored, if there are any, so that they can be counted. What
    /// cannot be read is reported to the client that asks for a function.
    pub(crate) fn open(&self, server: &Server) {
        if server.databases.libraries().is_ok_and(|stored| !stored.is_empty()) {
            drop(self.libraries(server));
        }
    }

    /// Works with the scripts of EVAL. The caller has the whole keyspace to itself, so nobody else
    /// is here.
    pub(super) fn with_cache<T>(
        &self,
        server: &Server,
        work: impl FnOnce(&mut Cache) -> Result<T>,
    ) -> Result<T> {
        let mut cache = self.cache.lock();
        let cache = match &mut *cache {
            Some(cache) => cache,
            none => none.insert(Cache {
                interpreter: Interpreter::for_scripts(server.random.next_u64()).map_err(broken)?,
                scripts: HashMap::new(),
                text_bytes: 0,
                evaluated: 0,
                now: 0,
            }),
        };
        let done = work(cache);
        let usage = &self.usage;
        usage.lua_bytes.store(cache.interpreter.memory_bytes(), Ordering::Relaxed);
        usage.text_bytes.store(cache.text_bytes, Ordering::Relaxed);
        usage.scripts.store(cache.scripts.len(), Ordering::Relaxed);
        done
    }

    /// Forgets the scripts of EVAL.
    pub(super) fn forget_scripts(&self) {
        *self.cache.lock() = None;
        for figure in [&self.usage.lua_bytes, &self.usage.text_bytes, &self.usage.scripts] {
            figure.store(0, Ordering::Relaxed);
        }
    }

    /// The functions, which are read from the engine when they are first asked for. The caller has
    /// the keyspace for itself.
    pub(super) fn libraries(&self, server: &Server) -> Result<MutexGuard<'_, Libraries>> {
        let mut libraries = self.libraries.lock();
        libraries.open(server)?;
        self.count_libraries(&libraries);
        Ok(libraries)
    }

    /// The functions are not what is stored: they are read again when they are asked for.
    pub(crate) fn forget_libraries(&self) {
        *self.libraries.lock() = Libraries::default();
    }

    /// Libraries came or went.
    pub(super) fn count_libraries(&self, libraries: &Libraries) {
        self.usage.libraries.store(libraries.len(), Ordering::Relaxed);
        self.usage.functions.store(libraries.functions_len(), Ordering::Relaxed);
    }

    /// A command's flags; for one that runs a script, those that follow from what the script says
    /// about itself. While a script runs nothing is known of the others.
    pub(crate) fn flags_of(&self, Request { command, args }: Request<'_>) -> u32 {
        let given = args.get(1).copied().unwrap_or_default();
        let script = match command.name {
            "eval" | "eval_ro" => shebang::of_script(given).ok().and_then(|(flags, _)| flags),
            "evalsha" | "evalsha_ro" => {
                let digest = String::from_utf8_lossy(given).to_ascii_lowercase();
                let cache = self.cache.try_lock();
                let script = cache.as_deref().and_then(|cache| cache.as_ref()?.get(&digest));
                script.and_then(|script| script.flags)
            }
            "fcall" | "fcall_ro" => {
                let libraries = self.libraries.try_lock();
                libraries.and_then(|libraries| Some(libraries.function(given)?.flags))
            }
            _ => None,
        };
        let Some(script) = script else { return command.flags };
        let has = |flag| script & flag != 0;
        let mut flags =
            command.flags & !(flag::STALE | flag::DENYOOM | flag::WRITE | flag::MAY_REPLICATE);
        if !has(shebang::flag::NO_WRITES) {
            flags |= flag::WRITE;
            if !has(shebang::flag::ALLOW_OOM) {
                flags |= flag::DENYOOM;
            }
        }
        if has(shebang::flag::ALLOW_STALE) {
            flags |= flag::STALE;
        }
        flags
    }

    /// What scripts use, for INFO.
    pub(crate) fn usage(&self) -> ScriptUsage {
        let figure = |figure: &AtomicUsize| figure.load(Ordering::Relaxed);
        ScriptUsage {
            lua_bytes: figure(&self.usage.lua_bytes) as u64,
            script_bytes: figure(&self.usage.text_bytes) as u64,
            scripts: figure(&self.usage.scripts),
            functions: figure(&self.usage.functions),
            libraries: figure(&self.usage.libraries),
        }
    }
}

/// An interpreter could not be made.
pub(super) fn broken(error: mlua::Error) -> Fault {
    Fault::new(format!("ERR the interpreter could not be started: {error}"))
}
