//! Typed keys: a wrong key does not compile.
//!
//! Each pattern of a catalogue becomes a struct with a field for each placeholder, and each
//! placeholder a type of its own. [`rust_keys`] writes them as Rust; the result is committed, and a
//! test compares it with the catalogue. That costs no build script and no procedural macro, readers
//! see the code, and an application outside can do the same with its own catalogue.
//!
//! ```
//! use kstone_keyspace::keys::mastery::{DailyMastery, StudentId};
//! use kstone_keyspace::typed::TypedKey;
//!
//! let student_id = StudentId::new("student_12345")?;
//! let key = DailyMastery { student_id, date: "2026-01-14".parse()? };
//! assert_eq!(key.key(), "student:student_12345:mastery:2026-01-14");
//! assert_eq!(key.partition_key(), "student:student_12345");
//! assert_eq!(DailyMastery::parse(b"student:student_12345:mastery:2026-01-14"), Some(key));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The values the wrong way round, or text where an id belongs, do not compile:
//!
//! ```compile_fail,E0308
//! use kstone_keyspace::keys::mastery::{DailyMastery, StudentId};
//!
//! let key = DailyMastery { student_id: "2026-01-14", date: StudentId::new("student_12345").unwrap() };
//! ```

mod generate;

pub use generate::{GenerateError, rust_keys};

use crate::date::{Date, Millis};
use crate::pattern::ValueType;
use crate::placeholder::{Kind, PartError, excepts};
use crate::text;
use crate::ttl::Ttl;

/// Facts about a pattern that are known at compile time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternInfo {
    /// The pattern's full name: `mastery.daily_mastery`.
    pub name: &'static str,
    /// The pattern itself.
    pub pattern: &'static str,
    /// The table that its items are in; `None` for a key of Redis.
    pub table: Option<&'static str>,
    /// What its keys hold.
    pub value_type: ValueType,
    /// How long its keys live.
    pub ttl: Ttl,
    /// What the sort keys of its items begin with, to list them by.
    pub sort_prefix: &'static str,
}

/// A key of a declared pattern.
pub trait TypedKey: Sized {
    /// What the catalogue says of the pattern.
    const FACTS: PatternInfo;

    /// Writes the segments of the partition.
    fn write_partition(&self, to: &mut KeyWriter);

    /// Writes the segments after the partition.
    fn write_sort(&self, to: &mut KeyWriter);

    /// Reads all segments.
    fn read(from: &mut KeyReader<'_>) -> Option<Self>;

    /// The key.
    fn key(&self) -> String {
        let mut writer = KeyWriter::default();
        self.write_partition(&mut writer);
        self.write_sort(&mut writer);
        writer.0
    }

    /// The partition key of the item; the whole key for a key of Redis.
    fn partition_key(&self) -> String {
        let mut writer = KeyWriter::default();
        self.write_partition(&mut writer);
        writer.0
    }

    /// The sort key of the item.
    fn sort_key(&self) -> String {
        let mut writer = KeyWriter::default();
        self.write_sort(&mut writer);
        match writer.0.is_empty() {
            true => String::from_utf8_lossy(crate::WHOLE_KEY).into_owned(),
            false => writer.0,
        }
    }

    /// The key that these bytes are; `None` when they are no key of the pattern.
    fn parse(key: &[u8]) -> Option<Self> {
        let mut reader = KeyReader { rest: key };
        Self::read(&mut reader).filter(|_| reader.rest.is_empty())
    }
}

/// A value that stands in the place of a placeholder.
pub trait KeyPart: Sized {
    /// Adds it to a key.
    fn write_part(&self, key: &mut String);

    /// Reads it from a key.
    fn read_part(part: &[u8]) -> Option<Self>;
}

/// Builds the text of a key.
#[derive(Debug, Default)]
pub struct KeyWriter(String);

impl KeyWriter {
    /// Begins a segment.
    pub fn segment(&mut self, word: &str) -> &mut KeyWriter {
        if !self.0.is_empty() {
            self.0.push(':');
        }
        self.word(word)
    }

    /// Goes on with the segment.
    pub fn word(&mut self, word: &str) -> &mut KeyWriter {
        self.0.push_str(word);
        self
    }

    /// Goes on with a value.
    pub fn part(&mut self, part: &impl KeyPart) -> &mut KeyWriter {
        part.write_part(&mut self.0);
        self
    }

    /// What was written.
    pub fn finish(self) -> String {
        self.0
    }
}

/// Reads the text of a key.
#[derive(Debug)]
pub struct KeyReader<'k> {
    rest: &'k [u8],
}

impl KeyReader<'_> {
    /// Goes past this text.
    pub fn text(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text.as_bytes())?;
        Some(())
    }

    /// Reads the value that is in its segment before this text, and goes past both. The text may be
    /// empty, and may go on in the segments that follow.
    pub fn part<P: KeyPart>(&mut self, after: &str) -> Option<P> {
        let end = memchr::memchr(b':', self.rest).unwrap_or(self.rest.len());
        let (segment, further) = self.rest.split_at_checked(end)?;
        let (suffix, further_text) = after.split_at(after.find(':').unwrap_or(after.len()));
        self.rest = further.strip_prefix(further_text.as_bytes())?;
        P::read_part(segment.strip_suffix(suffix.as_bytes())?)
    }
}

impl KeyPart for Date {
    fn write_part(&self, key: &mut String) {
        key.push_str(&self.to_string());
    }

    fn read_part(part: &[u8]) -> Option<Date> {
        Date::from_bytes(part)
    }
}

impl KeyPart for Millis {
    fn write_part(&self, key: &mut String) {
        key.push_str(&self.to_string());
    }

    fn read_part(part: &[u8]) -> Option<Millis> {
        Millis::from_bytes(part)
    }
}

impl KeyPart for u64 {
    fn write_part(&self, key: &mut String) {
        key.push_str(&self.to_string());
    }

    fn read_part(part: &[u8]) -> Option<u64> {
        read_int(part, 0, u64::MAX)
    }
}

/// For [`key_parts!`](crate::key_parts): whether the placeholder allows the value.
#[doc(hidden)]
pub fn check_part(
    placeholder: &str,
    kind: &Kind,
    except: &[&str],
    value: &str,
) -> Result<(), PartError> {
    let written = kind.write(value).filter(|part| !excepts(except, part.as_bytes()));
    written.map(|_| ()).ok_or_else(|| {
        let placeholder = crate::Placeholder {
            name: placeholder.to_owned(),
            kind: kind.clone(),
            except: except.iter().map(|word| (*word).to_owned()).collect(),
        };
        PartError::new(&placeholder.name, placeholder.expected(), value)
    })
}

/// For [`key_parts!`](crate::key_parts): adds a value that was checked.
#[doc(hidden)]
pub fn write_text(kind: &Kind, value: &str, key: &mut String) {
    match kind {
        Kind::Text => text::escape_into(value, key),
        _ => key.push_str(value),
    }
}

/// For [`key_parts!`](crate::key_parts): the value of a part.
#[doc(hidden)]
pub fn read_part(kind: &Kind, except: &[&str], part: &[u8]) -> Option<String> {
    kind.read(part).filter(|_| !excepts(except, part))
}

/// For [`key_parts!`](crate::key_parts): a number within bounds.
#[doc(hidden)]
pub fn read_int(part: &[u8], min: u64, max: u64) -> Option<u64> {
    let accepted = Kind::Int { min, max }.accepts(part);
    accepted.then(|| std::str::from_utf8(part).ok()?.parse().ok())?
}

/// A type for each placeholder: text that was checked, a number within bounds, or one of some words.
/// [`rust_keys`](crate::typed::rust_keys) writes its uses.
///
/// ```
/// kstone_keyspace::key_parts! {
///     /// A learner.
///     text LearnerId("learner_id", Id);
///     /// A page of the server.
///     text Page("page", Text, except ["all"]);
///     /// A month of the year.
///     int Month("month", 1..=12);
///     /// How a test went.
///     choice Outcome(Passed = "passed", Failed = "failed");
/// }
/// ```
#[macro_export]
macro_rules! key_parts {
    ($($(#[$doc:meta])* $form:ident $name:ident ($($body:tt)*);)*) => {
        $($crate::key_parts! { @$form $(#[$doc])* $name $($body)* })*
    };
    (
        @text $(#[$doc:meta])*
        $name:ident $placeholder:literal, $kind:ident $(, except [$($except:literal),+])?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// This value, if a key may have it.
            pub fn new(value: impl Into<String>) -> Result<$name, $crate::PartError> {
                let value = value.into();
                $crate::typed::check_part(
                    $placeholder,
                    &$crate::Kind::$kind,
                    &[$($($except),+)?],
                    &value,
                )?;
                Ok($name(value))
            }

            /// The value.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::typed::KeyPart for $name {
            fn write_part(&self, key: &mut String) {
                $crate::typed::write_text(&$crate::Kind::$kind, &self.0, key);
            }

            fn read_part(part: &[u8]) -> Option<$name> {
                let except = &[$($($except),+)?];
                $crate::typed::read_part(&$crate::Kind::$kind, except, part).map($name)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::PartError;

            fn from_str(value: &str) -> Result<$name, $crate::PartError> {
                $name::new(value)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
    (@int $(#[$doc:meta])* $name:ident $placeholder:literal, $min:literal..=$max:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// This number, if a key may have it.
            pub fn new(value: u64) -> Result<$name, $crate::PartError> {
                let kind = $crate::Kind::Int { min: $min, max: $max };
                $crate::typed::check_part($placeholder, &kind, &[], &value.to_string())?;
                Ok($name(value))
            }

            /// The number.
            pub fn get(self) -> u64 {
                self.0
            }
        }

        impl $crate::typed::KeyPart for $name {
            fn write_part(&self, key: &mut String) {
                key.push_str(&self.0.to_string());
            }

            fn read_part(part: &[u8]) -> Option<$name> {
                $crate::typed::read_int(part, $min, $max).map($name)
            }
        }
    };
    (@choice $(#[$doc:meta])* $name:ident $($variant:ident = $word:literal),+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`")] $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word in keys.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl $crate::typed::KeyPart for $name {
            fn write_part(&self, key: &mut String) {
                key.push_str(self.as_str());
            }

            fn read_part(part: &[u8]) -> Option<$name> {
                $name::ALL.iter().copied().find(|it| it.as_str().as_bytes() == part)
            }
        }
    };
}

/// A type for the keys of each pattern. [`rust_keys`](crate::typed::rust_keys) writes its uses.
///
/// Behind the name in Rust stand the full name of the pattern, what its keys hold, the table for
/// items, and the TTL. Partition and sort key are written as in the pattern, but for the quotes and
/// the types: first a text, which may be empty, then placeholders and the texts that follow them.
///
/// ```
/// use kstone_keyspace::{Date, Ttl};
///
/// kstone_keyspace::typed_keys! {
///     /// What was sold on a day: `shop:sold:{date}:all`.
///     Sold = "shop.sold", Json in "days", Ttl::None,
///         partition: "shop:sold",
///         sort: "" { date: Date } ":all";
///
///     /// How many visitors there were: `visitors:{date}`.
///     Visitors = "shop.visitors", Counter, Ttl::None,
///         partition: "visitors:" { date: Date };
/// }
/// ```
#[macro_export]
macro_rules! typed_keys {
    ($(
        $(#[$doc:meta])*
        $name:ident = $full_name:literal, $value_type:ident $(in $table:literal)?, $ttl:expr,
            partition: $p_text:literal $({ $p_field:ident: $p_type:ty } $($p_after:literal)?)*
            $(, sort: $s_text:literal $({ $s_field:ident: $s_type:ty } $($s_after:literal)?)*)?;
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            $(#[doc = concat!("`{", stringify!($p_field), "}`")] pub $p_field: $p_type,)*
            $($(#[doc = concat!("`{", stringify!($s_field), "}`")] pub $s_field: $s_type,)*)?
        }

        impl $name {
            /// The partition key of all keys with these values.
            pub fn partition($($p_field: &$p_type),*) -> String {
                let mut to = $crate::typed::KeyWriter::default();
                to.segment($p_text)$(.part($p_field)$(.word($p_after))?)*;
                to.finish()
            }
        }

        impl $crate::typed::TypedKey for $name {
            const FACTS: $crate::typed::PatternInfo = $crate::typed::PatternInfo {
                name: $full_name,
                pattern: concat!(
                    $p_text, $("{", stringify!($p_field), "}", $($p_after,)?)*
                    $(":", $s_text, $("{", stringify!($s_field), "}", $($s_after,)?)*)?
                ),
                table: $crate::typed_keys!(@table $($table)?),
                value_type: $crate::ValueType::$value_type,
                ttl: $ttl,
                sort_prefix: concat!($($s_text)?),
            };

            fn write_partition(&self, to: &mut $crate::typed::KeyWriter) {
                to.segment($p_text)$(.part(&self.$p_field)$(.word($p_after))?)*;
            }

            #[allow(unused_variables, reason = "a pattern may be all partition")]
            fn write_sort(&self, to: &mut $crate::typed::KeyWriter) {
                $(to.segment($s_text)$(.part(&self.$s_field)$(.word($s_after))?)*;)?
            }

            fn read(from: &mut $crate::typed::KeyReader<'_>) -> Option<$name> {
                from.text($p_text)?;
                $(let $p_field = from.part(concat!($($p_after)?))?;)*
                $(
                    from.text(concat!(":", $s_text))?;
                    $(let $s_field = from.part(concat!($($s_after)?))?;)*
                )?
                Some($name { $($p_field,)* $($($s_field,)*)? })
            }
        }
    )*};
    (@table) => { None };
    (@table $table:literal) => { Some($table) };
}
