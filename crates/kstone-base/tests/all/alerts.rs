//! Alerts are kept, told and, once, sent.

use std::sync::{Arc, Mutex};

use kstone_base::time::Moment;
use kstone_base::work::{Alert, AlertSink, Alerts, Severity};

use kstone_fixture::Store;

use crate::support::{START_MS, empty_store, process_of};

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl AlertSink for Heard {
    fn raised(&self, alert: &Alert) {
        self.0.lock().unwrap().push(alert.title.clone());
    }
}

pub fn alert(title: &str) -> Alert {
    Alert {
        id: String::new(),
        kind: "struggle".to_owned(),
        severity: Severity::Warning,
        title: title.to_owned(),
        detail: "the same error three times".to_owned(),
        student_id: Some("s-1".to_owned()),
        at: Moment::default(),
    }
}

pub fn alerts(store: &Store, sinks: Vec<Arc<dyn AlertSink>>, to_webhook: bool) -> Alerts {
    let items = Arc::new(store.db.clone());
    let outbox = process_of(store, 9).outbox;
    Alerts::new(items, Arc::clone(&store.clock) as _, outbox, sinks, to_webhook)
}

#[tokio::test]
async fn alerts_are_told_and_kept_newest_first_for_90_days() {
    let store = empty_store().await;
    let heard = Arc::new(Heard::default());
    let alerts = alerts(&store, vec![Arc::clone(&heard) as _], false);
    for title in ["one", "two", "three"] {
        alerts.raise(alert(title)).await.unwrap();
        store.clock.advance(1_000);
    }
    assert_eq!(*heard.0.lock().unwrap(), ["one", "two", "three"]);
    let page = alerts.recent(2, None).await.unwrap();
    let titles = |rows: &[Alert]| rows.iter().map(|row| row.title.clone()).collect::<Vec<_>>();
    assert_eq!(titles(&page.items), ["three", "two"]);
    let rest = alerts.recent(2, page.next.as_deref()).await.unwrap();
    assert_eq!((titles(&rest.items), rest.next), (vec!["one".to_owned()], None));
    store.clock.advance(90 * 86_400_000);
    assert!(alerts.recent(2, None).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn an_alert_with_the_same_id_and_moment_is_raised_once() {
    let store = empty_store().await;
    let heard = Arc::new(Heard::default());
    let alerts = alerts(&store, vec![Arc::clone(&heard) as _], true);
    let again =
        Alert { id: "event-1".to_owned(), at: Moment::from_epoch_ms(START_MS), ..alert("one") };
    for _ in 0..3 {
        alerts.raise(again.clone()).await.unwrap();
    }
    assert_eq!(heard.0.lock().unwrap().len(), 1);
    assert_eq!(alerts.recent(10, None).await.unwrap().items, [again]);
    let depth = process_of(&store, 3).queues.depth("alerts").await.unwrap();
    assert_eq!(depth.ready, 1);
}
