//! Fingerprints of bound expressions: bytes that are equal exactly when the expressions mean the same.
//! A transaction's token keeps them for expressions that were built without a text.

use crate::expr::condition::{BoundCondition, Predicate, Term};
use crate::expr::path::{DocumentPath, Step};
use crate::expr::update::{BoundUpdate, ChangeKind, Source};
use crate::value::EncodedValue;

/// The bytes as they are written. Every part says where it ends, so no two meanings share bytes.
#[derive(Debug, Default)]
pub struct FingerprintBytes {
    out: Vec<u8>,
}

impl FingerprintBytes {
    /// What was written.
    pub fn as_slice(&self) -> &[u8] {
        &self.out
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Which of several kinds follows.
    pub fn tag(&mut self, tag: u8) {
        self.out.push(tag);
    }

    /// A number.
    pub fn count(&mut self, count: usize) {
        self.out.extend_from_slice(&(count as u64).to_be_bytes());
    }

    /// Bytes with their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    /// A text with its length.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// A value.
    pub fn value(&mut self, value: &EncodedValue) {
        self.bytes(value.as_slice());
    }

    fn path(&mut self, path: &DocumentPath) {
        self.count(path.steps().len());
        for step in path.steps() {
            match step {
                Step::Name(name) => {
                    self.tag(1);
                    self.text(name);
                }
                Step::Index(index) => {
                    self.tag(2);
                    self.count(*index);
                }
            }
        }
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Path(path) => {
                self.tag(1);
                self.path(path);
            }
            Term::Value(value) => {
                self.tag(2);
                self.value(value);
            }
            Term::Size(inner) => {
                self.tag(3);
                self.term(inner);
            }
        }
    }

    fn terms<'t>(&mut self, tag: u8, terms: impl ExactSizeIterator<Item = &'t Term>) {
        self.tag(tag);
        self.count(terms.len());
        terms.for_each(|term| self.term(term));
    }

    fn predicates(&mut self, tag: u8, predicates: &[Predicate]) {
        self.tag(tag);
        self.count(predicates.len());
        predicates.iter().for_each(|predicate| self.predicate(predicate));
    }

    fn predicate(&mut self, predicate: &Predicate) {
        match predicate {
            Predicate::And(parts) => self.predicates(1, parts),
            Predicate::Or(parts) => self.predicates(2, parts),
            Predicate::Not(inner) => self.predicates(3, std::slice::from_ref(&**inner)),
            Predicate::Compare(comparator, left, right) => {
                self.tag(4);
                self.text(comparator.as_str());
                self.terms(4, [left, right].into_iter());
            }
            Predicate::Between(value, low, high) => self.terms(5, [value, low, high].into_iter()),
            Predicate::In(value, list) => {
                self.terms(6, [value].into_iter());
                self.terms(6, list.iter());
            }
            Predicate::Exists(path) => {
                self.tag(7);
                self.path(path);
            }
            Predicate::NotExists(path) => {
                self.tag(8);
                self.path(path);
            }
            Predicate::HasType(value, type_name) => {
                self.terms(9, [value].into_iter());
                self.text(type_name);
            }
            Predicate::BeginsWith(whole, prefix) => self.terms(10, [whole, prefix].into_iter()),
            Predicate::Contains(whole, part) => self.terms(11, [whole, part].into_iter()),
        }
    }

    fn source(&mut self, source: &Source) {
        match source {
            Source::Value(value) => {
                self.tag(1);
                self.value(&EncodedValue::new(value));
            }
            Source::Path(path) => {
                self.tag(2);
                self.path(path);
            }
            Source::IfNotExists(path, otherwise) => {
                self.tag(3);
                self.path(path);
                self.source(otherwise);
            }
            Source::ListAppend(both) => self.sources(4, both),
            Source::Sum(both) => self.sources(5, both),
            Source::Difference(both) => self.sources(6, both),
        }
    }

    fn sources(&mut self, tag: u8, both: &[Source; 2]) {
        self.tag(tag);
        both.iter().for_each(|source| self.source(source));
    }
}

impl BoundCondition {
    /// Writes what it means.
    pub fn write_fingerprint(&self, out: &mut FingerprintBytes) {
        out.predicate(&self.root);
    }
}

impl BoundUpdate {
    /// Writes what it means.
    pub fn write_fingerprint(&self, out: &mut FingerprintBytes) {
        out.count(self.changes.len());
        for change in self.changes.iter() {
            out.path(&change.target);
            match &change.kind {
                ChangeKind::Set(source) => {
                    out.tag(1);
                    out.source(source);
                }
                ChangeKind::Remove => out.tag(2),
                ChangeKind::Add(value) => {
                    out.tag(3);
                    out.value(&EncodedValue::new(value));
                }
                ChangeKind::Delete(value) => {
                    out.tag(4);
                    out.value(&EncodedValue::new(value));
                }
            }
        }
    }
}
