//! On the embedded database.

use std::sync::Arc;

use kstone::Database;
use kstone_contract::items::Store;

macro_rules! tests {
    ($($module:ident :: $case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let database = Database::memory().unwrap();
                let store = Store::new(Arc::new(database), "embedded");
                kstone_contract::items::$module::$case(&store).await;
            }
        )*
    };
}

kstone_contract::items_cases!(tests);
