//! The configuration: parameters that CONFIG GET shows and CONFIG SET changes.
//!
//! [`table`] lists the parameters. A value is read by its index in the table, which is computed at
//! compile time: `config.number(config::MAXMEMORY)`.

pub(crate) mod limits;
pub(crate) mod table;
mod value;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use kstone_core::sync::Mutex;

use crate::args;
use crate::fault::{Fault, Result};
use limits::{OutputLimit, OutputLimits};
use table::{Access, Kind, PARAMETERS, Parameter, ParameterIndex, index_of};
use value::Value;

pub(crate) const MAXMEMORY: ParameterIndex = index_of("maxmemory");
pub(crate) const HASH_PACKED_ENTRIES: ParameterIndex = index_of("hash-max-listpack-entries");
pub(crate) const HASH_PACKED_VALUE: ParameterIndex = index_of("hash-max-listpack-value");
pub(crate) const SORTED_SET_PACKED_ENTRIES: ParameterIndex = index_of("zset-max-listpack-entries");
pub(crate) const SORTED_SET_PACKED_VALUE: ParameterIndex = index_of("zset-max-listpack-value");
pub(crate) const INTSET_ENTRIES: ParameterIndex = index_of("set-max-intset-entries");
pub(crate) const MAXCLIENTS: ParameterIndex = index_of("maxclients");
pub(crate) const TIMEOUT: ParameterIndex = index_of("timeout");
pub(crate) const TCP_KEEPALIVE: ParameterIndex = index_of("tcp-keepalive");
pub(crate) const PORT: ParameterIndex = index_of("port");
pub(crate) const BIND: ParameterIndex = index_of("bind");
pub(crate) const DIR: ParameterIndex = index_of("dir");
pub(crate) const APPENDFSYNC: ParameterIndex = index_of("appendfsync");
pub(crate) const REQUIREPASS: ParameterIndex = index_of("requirepass");
pub(crate) const QUERY_BUFFER_LIMIT: ParameterIndex = index_of("client-query-buffer-limit");
pub(crate) const BULK_LEN_MAX: ParameterIndex = index_of("proto-max-bulk-len");
pub(crate) const BUSY_REPLY_THRESHOLD: ParameterIndex = index_of("busy-reply-threshold");
pub(crate) const MIN_REPLICAS_TO_WRITE: ParameterIndex = index_of("min-replicas-to-write");
pub(crate) const NOTIFY_KEYSPACE_EVENTS: ParameterIndex = index_of("notify-keyspace-events");
pub(crate) const SLOWLOG_SLOWER_THAN: ParameterIndex = index_of("slowlog-log-slower-than");
pub(crate) const SLOWLOG_MAX_LEN: ParameterIndex = index_of("slowlog-max-len");
pub(crate) const LATENCY_THRESHOLD: ParameterIndex = index_of("latency-monitor-threshold");
pub(crate) const LATENCY_TRACKING: ParameterIndex = index_of("latency-tracking");
pub(crate) const LATENCY_PERCENTILES: ParameterIndex =
    index_of("latency-tracking-info-percentiles");
pub(crate) const TRACKING_KEYS_MAX: ParameterIndex = index_of("tracking-table-max-keys");
pub(crate) const ACL_LOG_MAX_LEN: ParameterIndex = index_of("acllog-max-len");
pub(crate) const ACL_PUBSUB_DEFAULT: ParameterIndex = index_of("acl-pubsub-default");
const OUTPUT_LIMITS: ParameterIndex = index_of("client-output-buffer-limit");

/// Listens at another port, or says why not.
type Listen = dyn Fn(u16) -> std::io::Result<()> + Send + Sync;

/// See the module.
pub(crate) struct Config {
    /// The values that are numbers, by place.
    numbers: Vec<AtomicI64>,
    /// The values that are texts, by place.
    texts: Mutex<Vec<String>>,
    output_limits: Mutex<OutputLimits>,
    /// Held while values are changed, so that a group of changes is one.
    changing: Mutex<Option<Box<Listen>>>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

impl Default for Config {
    fn default() -> Self {
        let config = Config {
            numbers: PARAMETERS.iter().map(|_| AtomicI64::new(0)).collect(),
            texts: Mutex::new(vec![String::new(); PARAMETERS.len()]),
            output_limits: Mutex::default(),
            changing: Mutex::new(None),
        };
        for (place, parameter) in PARAMETERS.iter().enumerate() {
            // A test reads every default.
            if let Ok(value) = config.read(parameter, parameter.default.as_bytes()) {
                config.store(ParameterIndex(place), value);
            }
        }
        config
    }
}

impl Config {
    /// A parameter's value as a number: bytes, 1 for yes, a choice's position.
    pub(crate) fn number(&self, at: ParameterIndex) -> i64 {
        self.numbers.get(at.0).map_or(0, |number| number.load(Ordering::Relaxed))
    }

    /// A parameter's value as an unsigned number; below zero is 0.
    pub(crate) fn size(&self, at: ParameterIndex) -> u64 {
        u64::try_from(self.number(at)).unwrap_or(0)
    }

    /// Whether a parameter is `yes`.
    pub(crate) fn is_on(&self, at: ParameterIndex) -> bool {
        self.number(at) != 0
    }

    /// A parameter's value as a text.
    pub(crate) fn text(&self, at: ParameterIndex) -> String {
        self.texts.lock().get(at.0).cloned().unwrap_or_default()
    }

    /// How much a client may leave unread.
    pub(crate) fn output_limit(&self, is_subscribed: bool) -> OutputLimit {
        let limits = self.output_limits.lock();
        if is_subscribed { limits.pubsub() } else { limits.normal() }
    }

    /// Says how the server was started, whatever CONFIG SET may do with the parameter.
    pub(crate) fn note(&self, at: ParameterIndex, value: &str) {
        if let Some(parameter) = PARAMETERS.get(at.0)
            && let Ok(value) = self.read(parameter, value.as_bytes())
        {
            self.store(at, value);
        }
    }

    /// From now on a change of `port` is real.
    pub(crate) fn listen_with(&self, listen: Box<Listen>) {
        *self.changing.lock() = Some(listen);
    }

    /// Every name and value that one of the patterns asks for.
    pub(crate) fn matching(&self, patterns: &[&[u8]]) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for (place, parameter) in PARAMETERS.iter().enumerate() {
            for name in [parameter.name, parameter.alias] {
                let is_asked = patterns.iter().any(|pattern| {
                    args::is(pattern, name)
                        || parameter.access != Access::Hidden
                            && crate::glob::matches_any_case(pattern, name.as_bytes())
                });
                if !name.is_empty() && is_asked {
                    found.push((name, self.show(ParameterIndex(place))));
                }
            }
        }
        found
    }

    /// A parameter's value as CONFIG GET shows it.
    fn show(&self, at: ParameterIndex) -> String {
        let Some(parameter) = PARAMETERS.get(at.0) else { return String::new() };
        match parameter.kind {
            Kind::OutputLimits => self.output_limits.lock().show(),
            Kind::Text | Kind::Save | Kind::Percentiles => self.text(at),
            kind => value::show(kind, &Value::Number(self.number(at))),
        }
    }

    /// Changes parameters: all of them or none. `pairs` are names and values. Returns which
    /// parameters changed.
    pub(crate) fn set(&self, pairs: &[&[u8]]) -> Result<Vec<ParameterIndex>> {
        let changing = self.changing.lock();
        let mut changes: Vec<(ParameterIndex, &[u8], Value)> = Vec::new();
        let mut places = Vec::new();
        for pair in pairs.chunks(2) {
            let [name, _] = pair else { return Err(Fault::SYNTAX) };
            let at = find(name).ok_or_else(|| unknown(name))?;
            let access = PARAMETERS.get(at.0).map_or(Access::Immutable, |found| found.access);
            if access == Access::Immutable {
                return Err(failed(name, "can't set immutable config"));
            }
            if places.contains(&at) {
                return Err(failed(name, "duplicate parameter"));
            }
            places.push(at);
        }
        for (pair, at) in pairs.chunks(2).zip(places) {
            let ([name, given], Some(parameter)) = (pair, PARAMETERS.get(at.0)) else { continue };
            let value = self.read(parameter, given).map_err(|why| failed(name, &why))?;
            if parameter.access == Access::Fixed && self.current(at) != value {
                return Err(failed(name, "this server does not work in another way"));
            }
            changes.push((at, name, value));
        }
        let port = changes.iter().find(|(at, ..)| *at == PORT);
        if let Some((_, name, Value::Number(port))) = port
            && *port != self.number(PORT)
        {
            let listen = changing.as_ref().map(|listen| listen(u16::try_from(*port).unwrap_or(0)));
            if !matches!(listen, Some(Ok(()))) {
                let why = "Unable to listen on this port. Check server logs.";
                return Err(failed(name, why));
            }
        }
        let mut changed = Vec::new();
        for (at, _, value) in changes {
            if self.current(at) != value {
                self.store(at, value);
                changed.push(at);
            }
        }
        Ok(changed)
    }

    /// What a value would be.
    fn read(&self, parameter: &Parameter, given: &[u8]) -> std::result::Result<Value, String> {
        let value = value::parse(parameter.kind, given)?;
        match (parameter.kind, value) {
            (Kind::OutputLimits, Value::Text(text)) => {
                let limits = *self.output_limits.lock();
                Ok(Value::Text(limits.changed(&text)?.show()))
            }
            (_, value) => Ok(value),
        }
    }

    fn current(&self, at: ParameterIndex) -> Value {
        match PARAMETERS.get(at.0).map(|parameter| parameter.kind) {
            Some(Kind::Text | Kind::Save | Kind::Percentiles) => Value::Text(self.text(at)),
            Some(Kind::OutputLimits) => Value::Text(self.output_limits.lock().show()),
            _ => Value::Number(self.number(at)),
        }
    }

    fn store(&self, at: ParameterIndex, value: Value) {
        match value {
            Value::Number(number) => {
                if let Some(place) = self.numbers.get(at.0) {
                    place.store(number, Ordering::Relaxed);
                }
            }
            Value::Text(text) if at == OUTPUT_LIMITS => {
                let mut limits = self.output_limits.lock();
                if let Ok(changed) = limits.changed(&text) {
                    *limits = changed;
                }
            }
            Value::Text(text) => {
                if let Some(place) = self.texts.lock().get_mut(at.0) {
                    *place = text;
                }
            }
        }
    }
}

/// Whether a parameter's value is not for any log.
pub(crate) fn is_secret(name: &[u8]) -> bool {
    let found = find(name).and_then(|at| PARAMETERS.get(at.0));
    found.is_some_and(|parameter| parameter.access == Access::Secret)
}

fn find(name: &[u8]) -> Option<ParameterIndex> {
    let is_it = |parameter: &Parameter| {
        args::is(name, parameter.name)
            || !parameter.alias.is_empty() && args::is(name, parameter.alias)
    };
    PARAMETERS.iter().position(is_it).map(ParameterIndex)
}

fn unknown(name: &[u8]) -> Fault {
    let name = args::shown(name);
    Fault::new(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"))
}

fn failed(name: &[u8], why: &str) -> Fault {
    let name = args::shown(name);
    let failed = "ERR CONFIG SET failed (possibly related to argument";
    Fault::new(format!("{failed} '{name}') - {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_can_be_set_to_what_it_is() {
        let config = Config::default();
        for (name, value) in config.matching(&[b"*"]) {
            let access = find(name.as_bytes()).map(|at| PARAMETERS[at.0].access);
            if access != Some(Access::Immutable) {
                assert_eq!(config.set(&[name.as_bytes(), value.as_bytes()]), Ok(vec![]), "{name}");
            }
        }
    }

    #[test]
    fn every_default_is_what_its_parameter_takes() {
        let config = Config::default();
        for parameter in &PARAMETERS {
            let read = config.read(parameter, parameter.default.as_bytes());
            assert!(read.is_ok(), "{}: {read:?}", parameter.name);
        }
    }

    #[test]
    fn one_bad_value_leaves_all_as_they_were() {
        let config = Config::default();
        let fault = config.set(&[b"maxmemory", b"1", b"maxmemory-clients", b"200%"]).unwrap_err();
        let expected = "ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - \
                        percentage argument must be less or equal to 100";
        assert_eq!(fault.message(), expected);
        assert_eq!(config.number(MAXMEMORY), 0);
    }
}
