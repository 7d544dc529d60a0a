//! Keyspace notifications: the classes of events and the channels they are published to.

use crate::server::Server;
use crate::server::config;
use crate::store::Event;

/// Published as `__keyspace@0__:key`, with the event as the message.
const KEYSPACE: u32 = 1 << 0;
/// Published as `__keyevent@0__:event`, with the key as the message.
const KEYEVENT: u32 = 1 << 1;
/// The classes, in the order in which they are shown; what `A` means are all but the last two.
const CLASSES: &[u8] = b"g$lshzxetdnm";
/// What `A` stands for.
const ALL: &[u8] = b"g$lshzxetd";

fn bit(class: u8) -> Option<u32> {
    let place = CLASSES.iter().position(|have| *have == class)?;
    Some(1 << (place + 2))
}

fn all() -> u32 {
    ALL.iter().filter_map(|class| bit(*class)).sum()
}

/// The classes that some letters ask for; `None` if one of them means nothing.
pub(super) fn parse(letters: &[u8]) -> Option<u32> {
    let mut mask = 0;
    for &letter in letters {
        mask |= match letter {
            b'A' => all(),
            b'K' => KEYSPACE,
            b'E' => KEYEVENT,
            class => bit(class)?,
        };
    }
    Some(mask)
}

/// The letters for some classes.
pub(super) fn show(mask: u32) -> String {
    let mut shown = String::new();
    let has = |class: u8| bit(class).is_some_and(|bit| mask & bit != 0);
    if mask & all() == all() {
        shown.push('A');
    } else {
        let classes = CLASSES.iter().filter(|class| **class != b'm' && has(**class));
        shown.extend(classes.map(|class| char::from(*class)));
    }
    if mask & KEYSPACE != 0 {
        shown.push('K');
    }
    if mask & KEYEVENT != 0 {
        shown.push('E');
    }
    if has(b'm') {
        shown.push('m');
    }
    shown
}

impl Server {
    /// Publishes what happened to keys, as far as anybody asked for it.
    pub(super) fn notify(&self, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let mask = u32::try_from(self.config.number(config::NOTIFY_KEYSPACE_EVENTS)).unwrap_or(0);
        if mask == 0 {
            return;
        }
        if self.pubsub.is_idle() {
            return;
        }
        for event in events {
            let class = u8::try_from(event.class).ok().and_then(bit);
            if class.is_none_or(|class| mask & class == 0) {
                continue;
            }
            if mask & KEYSPACE != 0 {
                let mut channel = format!("__keyspace@{}__:", event.db).into_bytes();
                channel.extend_from_slice(&event.key);
                self.publish(&channel, event.name.as_bytes());
            }
            if mask & KEYEVENT != 0 {
                let channel = format!("__keyevent@{}__:{}", event.db, event.name);
                self.publish(channel.as_bytes(), &event.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_back_as_redis_orders_them() {
        for (given, shown) in
            [("KA", "AK"), ("EA", "AE"), ("gKE", "gKE"), ("$lshzxeKE", "$lshzxeKE"), ("", "")]
        {
            assert_eq!(show(parse(given.as_bytes()).unwrap()), shown);
        }
        assert_eq!(parse(b"q"), None);
    }
}
