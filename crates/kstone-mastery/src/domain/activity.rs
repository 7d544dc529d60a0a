//! Active days of a learner: streaks and regularity.

use serde::{Deserialize, Serialize};

use super::results::ActivityData;
use super::score::to_millionths;
use kstone_base::time::{Date, Moment, Zone};

/// How many days are remembered one by one.
const LOG_MAX: usize = 30;
/// Consistency looks back over so many days, today among them.
const WINDOW_DAYS: i64 = 14;
/// Who comes on so many of them is fully consistent: five days a week.
const WINDOW_ACTIVE: f64 = 10.0;

/// The days on which a learner was active.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct ActiveDays {
    last_activity: Option<Moment>,
    /// Newest first.
    log: Vec<Date>,
    /// The row of days that the newest day belongs to.
    row: Option<Streak>,
    max_streak: u32,
    /// An external assessment of consistency, and its day.
    assessed: Option<(Date, f64)>,
}

/// A streak of consecutive days, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Streak(Date, Date);

impl Streak {
    fn days(self) -> u32 {
        u32::try_from(self.1.days_since(self.0) + 1).unwrap_or(0)
    }
}

impl ActiveDays {
    /// Records activity at a moment, on this day in the learner's time zone. Days may arrive out of
    /// order.
    pub(super) fn active(&mut self, at: Moment, day: Date) {
        self.last_activity = self.last_activity.max(Some(at));
        let place = self.log.partition_point(|known| *known > day);
        if self.log.get(place) == Some(&day) {
            return;
        }
        self.log.insert(place, day);
        let joined = self.row_around(day);
        self.row = match self.row {
            // The row may reach further back than the days that are remembered.
            Some(row) if joined.0 <= row.1.plus_days(1) && joined.1.plus_days(1) >= row.0 => {
                Some(Streak(row.0.min(joined.0), row.1.max(joined.1)))
            }
            Some(row) if day < row.0 => Some(row),
            _ => Some(joined),
        };
        let current = self.row.map_or(0, Streak::days);
        self.max_streak = self.max_streak.max(current).max(joined.days());
        self.log.truncate(LOG_MAX);
    }

    /// Records an external assessment of consistency.
    pub(super) fn assess(&mut self, consistency: f64, day: Date) {
        self.assessed = Some((day, to_millionths(consistency)));
    }

    /// How regularly the learner was active in the two weeks up to this day, from 0 to 1.
    ///
    /// An external assessment counts for the days before it, and so less with each day.
    pub(super) fn consistency(&self, today: Date) -> f64 {
        let first = today.plus_days(1 - WINDOW_DAYS);
        let (said, from) = match self.assessed {
            Some((day, value)) if today.days_since(day) < WINDOW_DAYS => {
                let days_left = WINDOW_DAYS - today.days_since(day).max(0);
                (value * days_left as f64 / WINDOW_DAYS as f64, first.max(day.plus_days(1)))
            }
            _ => (0.0, first),
        };
        let active = self.log.iter().filter(|day| (from..=today).contains(*day)).count();
        to_millionths((said + active as f64 / WINDOW_ACTIVE).clamp(0.0, 1.0))
    }

    /// The activity as of now.
    pub(super) fn data(&self, otherwise: Moment, today: Date, zone: &Zone) -> ActivityData {
        let goes_on = |row: &Streak| row.1 >= today.plus_days(-1);
        ActivityData {
            last_activity: self.last_activity.unwrap_or(otherwise),
            current_streak: self.row.filter(goes_on).map_or(0, Streak::days),
            max_streak: self.max_streak,
            activity_log: self.log.clone(),
            time_zone: zone.name().to_owned(),
        }
    }

    /// The streak around a day, as far as days are remembered.
    fn row_around(&self, day: Date) -> Streak {
        let place = self.log.partition_point(|known| *known > day);
        let (newer, older) = self.log.split_at(place);
        let mut row = Streak(day, day);
        for known in newer.iter().rev() {
            match known.days_since(row.1) {
                1 => row.1 = *known,
                _ => break,
            }
        }
        for known in older.iter().filter(|known| **known != day) {
            match row.0.days_since(*known) {
                1 => row.0 = *known,
                _ => break,
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn day(number: u64) -> Date {
        Date::from_epoch_days(20_000 + number).unwrap()
    }

    fn after(days: impl IntoIterator<Item = u64>) -> ActiveDays {
        let mut active = ActiveDays::default();
        for number in days {
            active.active(Moment::start_of(day(number)), day(number));
        }
        active
    }

    fn streaks(active: &ActiveDays, today: u64) -> (u32, u32) {
        let data = active.data(Moment::default(), day(today), &Zone::UTC);
        (data.current_streak, data.max_streak)
    }

    #[test]
    fn days_in_a_row_make_a_streak_that_lasts_until_a_day_is_missed() {
        let active = after([1, 2, 3, 3, 3]);
        assert_eq!(streaks(&active, 3), (3, 3));
        assert_eq!(streaks(&active, 4), (3, 3), "today is not over");
        assert_eq!(streaks(&active, 5), (0, 3));
        assert_eq!(streaks(&after([1, 2, 3, 5]), 5), (1, 3));
    }

    #[test]
    fn a_streak_longer_than_the_log_is_counted_whole_and_outlives_silence() {
        let active = after(0..100);
        assert_eq!(streaks(&active, 99), (100, 100));
        assert_eq!(active.log.len(), LOG_MAX);
        let mut active = active;
        active.active(Moment::start_of(day(50)), day(50));
        assert_eq!(streaks(&active, 99), (100, 100), "that day was among them");
        active.active(Moment::start_of(day(200)), day(200));
        assert_eq!(streaks(&active, 200), (1, 100));
    }

    #[test]
    fn a_day_that_comes_late_closes_the_gap() {
        assert_eq!(streaks(&after([1, 2, 4, 5, 3]), 5), (5, 5));
        assert_eq!(streaks(&after([5, 4]), 5), (2, 2));
        assert_eq!(
            streaks(&after([10, 1, 3, 2]), 10),
            (1, 3),
            "a row of the past counts for the longest"
        );
    }

    #[test]
    fn the_newest_activity_is_kept_when_an_older_one_comes_late() {
        let active = after([9, 3]);
        let data = active.data(Moment::default(), day(9), &Zone::UTC);
        assert_eq!(data.last_activity, Moment::start_of(day(9)));
        assert_eq!(data.activity_log, [day(9), day(3)]);
    }

    #[test]
    fn ten_days_of_fourteen_are_full_consistency() {
        assert_eq!(after([]).consistency(day(50)), 0.0);
        assert_eq!(after([50]).consistency(day(50)), 0.1);
        assert_eq!(after(41..=50).consistency(day(50)), 1.0);
        assert_eq!(after(20..=50).consistency(day(50)), 1.0);
        assert_eq!(after(41..=50).consistency(day(57)), 0.7);
        assert_eq!(after(41..=50).consistency(day(64)), 0.0);
    }

    #[test]
    fn what_was_said_of_consistency_counts_for_the_days_before() {
        let mut active = after([40, 49, 50]);
        active.assess(0.82, day(50));
        assert_eq!(active.consistency(day(50)), 0.82);
        assert_eq!(active.consistency(day(57)), 0.41);
        assert_eq!(active.consistency(day(64)), 0.0);
        active.active(Moment::start_of(day(57)), day(57));
        assert_eq!(active.consistency(day(57)), 0.51);
        assert_eq!(active.consistency(day(30)), 0.82, "before it was said it is believed whole");
    }

    #[test]
    fn moving_to_another_time_zone_neither_doubles_nor_breaks_a_streak() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let new_york = Zone::named("America/New_York").unwrap();
        let mut active = ActiveDays::default();
        let mut at = |text: &str, zone: &Zone| {
            let moment: Moment = text.parse().unwrap();
            active.active(moment, zone.date(moment));
            let data = active.data(moment, zone.date(moment), zone);
            (data.current_streak, data.time_zone)
        };
        assert_eq!(at("2026-03-28T22:30:00Z", &berlin), (1, "Europe/Berlin".into()));
        // Half an hour later it is Sunday in Berlin, the day of 23 hours, and still Saturday in New
        // York.
        assert_eq!(at("2026-03-28T23:00:00Z", &berlin), (2, "Europe/Berlin".into()));
        assert_eq!(at("2026-03-28T23:30:00Z", &new_york), (2, "America/New_York".into()));
        assert_eq!(at("2026-03-30T03:59:00Z", &new_york), (2, "America/New_York".into()));
        assert_eq!(at("2026-03-30T04:00:00Z", &new_york), (3, "America/New_York".into()));
    }

    proptest! {
        #[test]
        fn streaks_are_those_of_the_set_of_days_in_whatever_order_they_come(
            days in proptest::collection::vec(0..40_u64, 1..29),
        ) {
            let active = after(days.iter().copied());
            let set: BTreeSet<u64> = days.iter().copied().collect();
            let row_to = |last: u64| (0..=last).rev().take_while(|day| set.contains(day)).count() as u32;
            let newest = days.iter().copied().max().unwrap();
            let longest = set.iter().map(|day| row_to(*day)).max().unwrap();
            prop_assert_eq!(streaks(&active, newest), (row_to(newest), longest));
            let log: Vec<Date> = set.iter().rev().map(|number| day(*number)).collect();
            prop_assert_eq!(active.log, log);
        }
    }
}
