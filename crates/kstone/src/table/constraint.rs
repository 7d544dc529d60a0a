//! Constraints on single members of a request: length, characters, smallest value. DynamoDB looks
//! at all of them and tells everything that it found in one message.

use std::fmt::{Display, Write};

use crate::error::{Error, Result};
use crate::table::Throughput;
use crate::table::raw::{KeyElement, RawIndex};

/// The characters that names of tables and indexes are made of.
const NAME_PATTERN: &str = "[a-zA-Z0-9_.-]+";
/// Attributes that one index may name as included.
const INCLUDED_MAX: usize = 20;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Constraints {
    found: Vec<String>,
}

impl Constraints {
    /// Tells what was found, if anything.
    pub fn refuse(self) -> Result<()> {
        let plural = match self.found.len() {
            0 => return Ok(()),
            1 => "",
            _ => "s",
        };
        Err(Error::validation(format!(
            "{} validation error{plural} detected: {}",
            self.found.len(),
            self.found.join("; ")
        )))
    }

    /// The name of a table or an index.
    pub fn resource_name(&mut self, member: &str, name: &str) {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || !name.chars().all(fits) {
            let must = format!("satisfy regular expression pattern: {NAME_PATTERN}");
            self.add(name, member, &must);
        }
        self.length(member, name, name.chars().count(), 3, 255);
    }

    /// The name of an attribute in a key or a projection.
    pub fn attribute_name(&mut self, member: &str, name: &str) {
        self.length(member, name, name.chars().count(), 1, 255);
    }

    /// A key of at most `max` attributes.
    pub fn key(&mut self, member: &str, key: &[KeyElement], max: usize) {
        self.length(member, Listed(key), key.len(), 1, max);
        for (at, element) in (1..).zip(key) {
            self.attribute_name(&format!("{member}.{at}.member.attributeName"), &element.name);
        }
    }

    /// Provisioned units.
    pub fn throughput(&mut self, member: &str, units: Option<Throughput>) {
        let Some(units) = units else { return };
        for (name, units) in
            [("writeCapacityUnits", units.write), ("readCapacityUnits", units.read)]
        {
            if units == 0 {
                let member = format!("{member}.{name}");
                self.add(units, &member, "have value greater than or equal to 1");
            }
        }
    }

    /// An index, with a key of at most `key_max` attributes.
    pub fn index(&mut self, member: &str, index: &RawIndex, key_max: usize) {
        if let Some(names) = &index.non_key {
            let list = format!("{member}.projection.nonKeyAttributes");
            self.length(&list, Named(names), names.len(), 1, INCLUDED_MAX);
            for (at, name) in (1..).zip(names) {
                self.attribute_name(&format!("{list}.{at}.member"), name);
            }
        }
        self.resource_name(&format!("{member}.indexName"), &index.name);
        self.throughput(&format!("{member}.provisionedThroughput"), index.throughput);
        self.key(&format!("{member}.keySchema"), &index.key, key_max);
    }

    fn length(&mut self, member: &str, value: impl Display, length: usize, min: usize, max: usize) {
        if length < min {
            self.add(value, member, &format!("have length greater than or equal to {min}"));
        } else if length > max {
            self.add(value, member, &format!("have length less than or equal to {max}"));
        }
    }

    fn add(&mut self, value: impl Display, member: &str, must: &str) {
        self.found.push(format!(
            "Value '{value}' at '{member}' failed to satisfy constraint: Member must {must}"
        ));
    }
}

/// A key as DynamoDB prints it.
struct Listed<'a>(&'a [KeyElement]);

impl Display for Listed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('[')?;
        for (at, element) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let (name, role) = (&element.name, element.role.name());
            write!(f, "{comma}KeySchemaElement(attributeName={name}, keyType={role})")?;
        }
        f.write_char(']')
    }
}

/// Names as DynamoDB prints them.
struct Named<'a>(&'a [String]);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}]", self.0.join(", "))
    }
}
