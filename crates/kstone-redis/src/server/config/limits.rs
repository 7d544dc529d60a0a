//! `client-output-buffer-limit`: how many bytes of replies a client may leave unread before it is
//! disconnected.

use crate::server::config::value;

/// The classes of clients that have limits of their own.
const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

/// The limits of one class; 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OutputLimit {
    /// Never more bytes than this.
    pub(crate) hard_bytes: u64,
    /// Not more bytes than this…
    pub(crate) soft_bytes: u64,
    /// …for so long.
    pub(crate) soft_seconds: u64,
}

/// The limits of each class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OutputLimits([OutputLimit; 3]);

impl OutputLimits {
    /// Of ordinary clients.
    pub(crate) fn normal(&self) -> OutputLimit {
        self.0[0]
    }

    /// Of clients that have subscribed to something.
    pub(crate) fn pubsub(&self) -> OutputLimit {
        self.0[2]
    }

    /// These limits with some of them changed as CONFIG SET was told.
    pub(super) fn changed(mut self, given: &str) -> Result<OutputLimits, String> {
        let words: Vec<&str> = given.split_whitespace().collect();
        if !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
        }
        for group in words.chunks(4) {
            let [class, hard, soft, seconds] = group else { continue };
            let class = if *class == "replica" { "slave" } else { class };
            let place = CLASSES.iter().position(|name| name.eq_ignore_ascii_case(class));
            let Some(limit) = place.and_then(|place| self.0.get_mut(place)) else {
                return Err(
                    "Invalid client class specified in buffer limit configuration.".to_owned()
                );
            };
            let bytes = |text: &str| value::bytes(text.as_bytes()).map(i64::unsigned_abs);
            let (Some(hard_bytes), Some(soft_bytes), Ok(soft_seconds)) =
                (bytes(hard), bytes(soft), seconds.parse())
            else {
                return Err("Error in hard, soft or soft_seconds setting in buffer limit \
                            configuration."
                    .to_owned());
            };
            *limit = OutputLimit { hard_bytes, soft_bytes, soft_seconds };
        }
        Ok(self)
    }

    /// As CONFIG GET shows them.
    pub(super) fn show(&self) -> String {
        let shown: Vec<String> = CLASSES
            .iter()
            .zip(&self.0)
            .map(|(class, limit)| {
                let OutputLimit { hard_bytes, soft_bytes, soft_seconds } = limit;
                format!("{class} {hard_bytes} {soft_bytes} {soft_seconds}")
            })
            .collect();
        shown.join(" ")
    }
}
