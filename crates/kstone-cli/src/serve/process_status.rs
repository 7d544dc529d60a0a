//! Figures of this process for the console.

use std::sync::Arc;

use kstone::Database;
use kstone_console::server_status::{DoorStatus, EngineStatus, ServerStatus, StripeStatus};
use kstone_core::env::{Clock as _, SystemClock};
use kstone_core::meter::{Meter, Reading};
use kstone_core::{Options, StripeStats};
use kstone_redis::Redis;

use super::durability_name;
use super::settings::Settings;

/// What is known of this process.
#[derive(Debug)]
pub struct ProcessStatus {
    /// A handle that does not keep the database open.
    db: Database,
    doors: Vec<OpenDoor>,
    started_at_ms: u64,
    place: String,
    memory_budget_bytes: u64,
}

/// A door, and what counts at it.
#[derive(Debug)]
pub struct OpenDoor {
    name: &'static str,
    address: String,
    durability: &'static str,
    counts: Counts,
}

#[derive(Debug)]
enum Counts {
    Meter(Arc<Meter>),
    Redis(Redis),
}

impl OpenDoor {
    /// A door with a meter.
    pub fn metered(
        name: &'static str,
        address: String,
        durability: kstone::Durability,
        meter: Arc<Meter>,
    ) -> OpenDoor {
        OpenDoor {
            name,
            address,
            durability: durability_name(durability),
            counts: Counts::Meter(meter),
        }
    }

    /// The Redis door, which counts for itself.
    pub fn redis(address: String, durability: kstone::Durability, redis: Redis) -> OpenDoor {
        let durability = durability_name(durability);
        OpenDoor { name: "Redis", address, durability, counts: Counts::Redis(redis) }
    }

    fn read(&self) -> Reading {
        match &self.counts {
            Counts::Meter(meter) => meter.read(),
            Counts::Redis(redis) => redis.meter(),
        }
    }
}

impl ProcessStatus {
    /// What is known from now on.
    pub fn new(db: &Database, settings: &Settings, doors: Vec<OpenDoor>) -> ProcessStatus {
        ProcessStatus {
            db: db.internal(),
            doors,
            started_at_ms: SystemClock::new().now_ms(),
            place: match &settings.dir {
                Some(dir) => dir.display().to_string(),
                None => "memory only".to_owned(),
            },
            memory_budget_bytes: settings
                .memory_budget
                .map_or(Options::default().memory_budget_bytes, |it| it.0)
                as u64,
        }
    }
}

impl ServerStatus for ProcessStatus {
    fn doors(&self) -> Vec<DoorStatus> {
        let vitals = |door: &OpenDoor| DoorStatus {
            name: door.name.to_owned(),
            address: door.address.clone(),
            durability: door.durability.to_owned(),
            reading: door.read(),
        };
        self.doors.iter().map(vitals).collect()
    }

    fn engine(&self) -> EngineStatus {
        let engine = self.db.engine();
        let stats = engine.stats();
        let blocks = stats.cache_hits + stats.cache_misses;
        EngineStatus {
            process_memory_bytes: resident_bytes(),
            memtable_bytes: stats.memtable_bytes,
            cache_bytes: stats.cache_bytes,
            memory_budget_bytes: self.memory_budget_bytes,
            file_bytes: stats.total.file_bytes,
            log_bytes: stats.log_bytes,
            data_bytes: stats.total.data_bytes,
            records: stats.total.records,
            files: stats.total.files,
            sequence: engine.applied_seq(),
            commits: stats.commits,
            syncs: stats.syncs,
            sync_us_p50: stats.sync_us_quantile(0.5),
            sync_us_p99: stats.sync_us_quantile(0.99),
            write_amplification: match stats.user_bytes {
                0 => 0.0,
                _ => stats.write_amplification(),
            },
            cache_hit_rate: (blocks > 0).then(|| stats.cache_hit_rate()),
            stalls: stats.stalls,
            stripes: stats.stripes.iter().map(stripe).collect(),
        }
    }

    fn started_at_ms(&self) -> u64 {
        self.started_at_ms
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}

fn stripe(stats: &StripeStats) -> StripeStatus {
    StripeStatus {
        data_bytes: stats.data_bytes,
        records: stats.records,
        files: stats.files,
        gets: stats.gets,
        writes: stats.writes,
    }
}

/// Memory of this process, where the machine is Linux.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_takes_some_memory_and_not_all() {
        let bytes = resident_bytes().unwrap();
        assert!((1 << 20..1 << 40).contains(&bytes), "{bytes}");
    }
}
