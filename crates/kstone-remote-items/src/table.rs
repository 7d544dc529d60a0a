//! Tables: required, listed, described.

use aws_sdk_dynamodb::types::{
    TableDescription as SdkTable, TimeToLiveSpecification, TimeToLiveStatus,
};
use kstone_ports::items::{Status, TableDescription, TableSpec, TtlState};
use kstone_ports::{Error, Result};

use crate::attempts::{Attempts, Repeat};
use crate::description::{Definition, description};
use crate::store::RemoteItems;

impl RemoteItems {
    pub(crate) async fn require(&self, spec: &TableSpec, ttl: Option<&str>) -> Result<()> {
        let ready = self.until_active(spec);
        let Ok(known) = tokio::time::timeout(self.options.table_timeout, ready).await else {
            return Err(Error::Unavailable(format!(
                "the table `{}` was not ready after {:?}",
                spec.name, self.options.table_timeout
            )));
        };
        if known?.spec.key != spec.key {
            return Err(Error::Invalid(format!(
                "the table `{}` is there with another key; rename one of the two",
                spec.name
            )));
        }
        match ttl {
            Some(ttl) => self.require_ttl(&spec.name, ttl).await,
            None => Ok(()),
        }
    }

    /// Makes the table if it is missing, and waits until it can be used. It may be made, and even
    /// dropped, by somebody else meanwhile.
    async fn until_active(&self, spec: &TableSpec) -> Result<TableDescription> {
        let mut attempt = 1;
        loop {
            match self.table(&spec.name).await {
                Ok(table) => {
                    let known = description(&table, TtlState::Off)?;
                    if matches!(known.status, Status::Active | Status::Updating) {
                        return Ok(known);
                    }
                }
                Err(Error::NotFound(_)) if self.options.make_tables => self.make(spec).await?,
                Err(Error::NotFound(_)) => {
                    return Err(Error::NotFound(format!(
                        "{} has no table `{}`, and this program is not to make any",
                        self.options.url, spec.name
                    )));
                }
                Err(error) => return Err(error),
            }
            self.attempts.wait(attempt).await;
            attempt += 1;
        }
    }

    /// Asks for a new table. Whether it is there shows when it is looked for again: so it is no error
    /// when somebody else was quicker or the outcome is not known.
    async fn make(&self, spec: &TableSpec) -> Result<()> {
        let definition = Definition::of(spec)?;
        let ask = self
            .client
            .create_table()
            .table_name(&spec.name)
            .set_attribute_definitions(Some(definition.attributes))
            .set_key_schema(Some(definition.key))
            .set_local_secondary_indexes(definition.local)
            .set_global_secondary_indexes(definition.global)
            .set_provisioned_throughput(definition.throughput)
            .billing_mode(definition.billing)
            .set_stream_specification(definition.stream)
            .set_on_demand_throughput(definition.on_demand)
            .set_tags(definition.tags)
            .set_sse_specification(definition.encryption)
            .set_table_class(definition.class)
            .set_deletion_protection_enabled(spec.deletion_protection.then_some(true));
        let once = Attempts { max: 1, ..self.attempts.clone() };
        match once.run(Repeat::Write, || ask.clone().send()).await {
            Err(error) if !error.may_be_retried() && !matches!(error, Error::OutcomeUnknown(_)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    async fn require_ttl(&self, table: &str, ttl: &str) -> Result<()> {
        if self.expires_by(table, ttl).await? {
            return Ok(());
        }
        let wanted = TimeToLiveSpecification::builder().enabled(true).attribute_name(ttl).build();
        let wanted = wanted.map_err(|error| Error::Invalid(error.to_string()))?;
        let ask =
            self.client.update_time_to_live().table_name(table).time_to_live_specification(wanted);
        match self.attempts.run(Repeat::Write, || ask.clone().send()).await {
            Ok(_) => Ok(()),
            // Asked for twice it is an error: somebody else may have been quicker.
            Err(error) => match self.expires_by(table, ttl).await? {
                true => Ok(()),
                false => Err(error),
            },
        }
    }

    /// Whether items expire by this attribute; an error if they do by another.
    async fn expires_by(&self, table: &str, ttl: &str) -> Result<bool> {
        match self.ttl(table).await? {
            TtlState::On(now) | TtlState::Enabling(now) if now == ttl => Ok(true),
            TtlState::On(now) | TtlState::Enabling(now) => Err(Error::Invalid(format!(
                "the items of `{table}` expire by a different AttributeName: `{now}`, not `{ttl}`"
            ))),
            TtlState::Off | TtlState::Disabling(_) => Ok(false),
        }
    }

    pub(crate) async fn list_tables(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        let mut last = None;
        loop {
            let ask = self.client.list_tables().set_exclusive_start_table_name(last);
            let page = self.attempts.run(Repeat::Read, || ask.clone().send()).await?;
            names.extend(page.table_names.unwrap_or_default());
            last = page.last_evaluated_table_name;
            if last.is_none() {
                break;
            }
        }
        names.sort();
        Ok(names)
    }

    pub(crate) async fn describe_table(&self, name: &str) -> Result<TableDescription> {
        let table = self.table(name).await?;
        description(&table, self.ttl(name).await?)
    }

    async fn table(&self, name: &str) -> Result<SdkTable> {
        let ask = self.client.describe_table().table_name(name);
        let answer = self.attempts.run(Repeat::Read, || ask.clone().send()).await?;
        let nothing = || Error::Unreadable(format!("the store says nothing of the table `{name}`"));
        answer.table.ok_or_else(nothing)
    }

    async fn ttl(&self, table: &str) -> Result<TtlState> {
        let ask = self.client.describe_time_to_live().table_name(table);
        let answer = self.attempts.run(Repeat::Read, || ask.clone().send()).await?;
        let Some(said) = answer.time_to_live_description else { return Ok(TtlState::Off) };
        let name = said.attribute_name.unwrap_or_default();
        Ok(match said.time_to_live_status {
            Some(TimeToLiveStatus::Enabled) => TtlState::On(name),
            Some(TimeToLiveStatus::Enabling) => TtlState::Enabling(name),
            Some(TimeToLiveStatus::Disabling) => TtlState::Disabling(name),
            _ => TtlState::Off,
        })
    }
}
