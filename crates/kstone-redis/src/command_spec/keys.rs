//! Finds the keys among a command's arguments.

/// Where a command's keys are. Positions count the command's name as 0.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keys {
    /// It has none.
    None,
    /// From `first` to `last` (from the end if negative), every `step`-th.
    Range { first: i32, last: i32, step: i32 },
    /// Argument `count` says how many keys follow it; `also` is the position of one more, 0 if
    /// there is none.
    Counted { count: usize, also: usize },
    /// Only the command itself knows. With how many of `first`, `last`, `step` `COMMAND` lists.
    Found { listed: (i32, i32, i32), find: fn(&[&[u8]]) -> Vec<usize> },
}

impl Keys {
    /// One key, the first argument.
    pub(crate) const FIRST: Keys = Keys::Range { first: 1, last: 1, step: 1 };
    /// One key, the second argument.
    pub(crate) const SECOND: Keys = Keys::Range { first: 2, last: 2, step: 1 };
    /// The first two arguments.
    pub(crate) const FIRST_TWO: Keys = Keys::Range { first: 1, last: 2, step: 1 };
    /// Every argument.
    pub(crate) const ALL: Keys = Keys::Range { first: 1, last: -1, step: 1 };
    /// All arguments but the last, which is a timeout.
    pub(crate) const ALL_BUT_LAST: Keys = Keys::Range { first: 1, last: -2, step: 1 };
    /// As many as the first argument says.
    pub(crate) const COUNTED: Keys = Keys::Counted { count: 1, also: 0 };
    /// As many as the second argument says.
    pub(crate) const COUNTED_SECOND: Keys = Keys::Counted { count: 2, also: 0 };

    /// Whether these arguments name more than one key.
    pub(crate) fn are_many(&self, args: &[&[u8]]) -> bool {
        self.positions(args).nth(1).is_some()
    }

    /// The positions of the keys in these arguments.
    pub(crate) fn positions(&self, args: &[&[u8]]) -> Positions {
        match *self {
            Keys::None => Positions::Every { next: 1, last: 0, step: 1 },
            Keys::Range { first, last, step } => {
                let last = if last < 0 { args.len() as i64 + i64::from(last) } else { last.into() };
                let last = last.min(args.len() as i64 - 1);
                let step = step.max(1) as usize;
                Positions::Every { next: first.max(1) as usize, last: last.max(0) as usize, step }
            }
            Keys::Counted { count, also } => {
                let given = args.get(count).and_then(|arg| crate::args::parse_integer(arg));
                let given = given.and_then(|given| usize::try_from(given).ok()).unwrap_or(0);
                let last = count.saturating_add(given).min(args.len().saturating_sub(1));
                let mut found: Vec<usize> = (count + 1..=last).collect();
                if also > 0 && also < args.len() {
                    found.insert(0, also);
                }
                Positions::Listed(found.into_iter())
            }
            Keys::Found { find, .. } => Positions::Listed(find(args).into_iter()),
        }
    }
}

/// Positions of keys.
#[derive(Debug)]
pub(crate) enum Positions {
    Every { next: usize, last: usize, step: usize },
    Listed(std::vec::IntoIter<usize>),
}

impl Iterator for Positions {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        match self {
            Positions::Every { next, last, step } => {
                let at = *next;
                *next += *step;
                (at <= *last).then_some(at)
            }
            Positions::Listed(found) => found.next(),
        }
    }
}
