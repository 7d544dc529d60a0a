//! INFO: facts and figures about the server.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use crate::command_spec::{Context, Flow};
use crate::commands;
use crate::fault::Result;
use crate::server::Server;
use crate::server::config;
use crate::server::process;
use crate::server::pubsub::Topic;
use crate::server::stats::HISTOGRAM_LEN;
use crate::store::Txn;
use crate::store::databases::DATABASES;

/// The version of Redis whose commands and replies these are.
pub(in crate::commands) const REDIS_VERSION: &str = "7.0.15";

/// The sections in their order, and whether `default` has them.
const SECTIONS: [(&str, bool); 13] = [
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("persistence", true),
    ("stats", true),
    ("replication", true),
    ("cpu", true),
    ("modules", true),
    ("commandstats", false),
    ("errorstats", true),
    ("latencystats", false),
    ("cluster", true),
    ("keyspace", true),
];

pub(super) fn info(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let asked: Vec<String> =
        args.iter().skip(1).map(|arg| String::from_utf8_lossy(arg).to_ascii_lowercase()).collect();
    let has = |word: &str| asked.iter().any(|have| have == word);
    let is_all = has("all") || has("everything");
    let is_default = asked.is_empty() || has("default");
    let mut text = String::new();
    for (name, by_default) in SECTIONS {
        if is_all || is_default && by_default || has(name) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            section(context.server, context.txn, name, &mut text)?;
        }
    }
    context.out.reply_text(&text)
}

fn section(server: &Server, txn: &mut Txn<'_>, name: &str, text: &mut String) -> Result<()> {
    let title = match name {
        "cpu" => "CPU".to_owned(),
        name => {
            name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)).collect()
        }
    };
    let mut lines = Lines { text };
    lines.text.push_str("# ");
    lines.text.push_str(&title);
    lines.text.push_str("\r\n");
    match name {
        "server" => server_section(server, &mut lines),
        "clients" => clients_section(server, &mut lines),
        "memory" => memory_section(server, &mut lines),
        "persistence" => persistence_section(server, &mut lines),
        "stats" => stats_section(server, &mut lines),
        "replication" => replication_section(server, &mut lines),
        "cpu" => cpu_section(&mut lines),
        "commandstats" => command_stats_section(server, &mut lines),
        "errorstats" => {
            for (code, count) in server.stats.errors() {
                lines.add(&format!("errorstat_{code}"), format_args!("count={count}"));
            }
        }
        "latencystats" => latency_stats_section(server, &mut lines),
        "cluster" => lines.add("cluster_enabled", 0),
        "keyspace" => return keyspace_section(txn, &mut lines),
        _ => {}
    }
    Ok(())
}

struct Lines<'t> {
    text: &'t mut String,
}

impl Lines<'_> {
    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing into a string cannot fail.
        let _ = write!(self.text, "{name}:{value}\r\n");
    }
}

fn server_section(server: &Server, lines: &mut Lines<'_>) {
    let now_ms = server.engine.now_ms();
    let uptime = now_ms.saturating_sub(server.started_ms) / 1000;
    lines.add("redis_version", REDIS_VERSION);
    lines.add("redis_git_sha1", "00000000");
    lines.add("redis_git_dirty", 0);
    lines.add("redis_build_id", "0");
    lines.add("redis_mode", "standalone");
    lines.add("kstone_version", env!("CARGO_PKG_VERSION"));
    lines.add("os", std::env::consts::OS);
    lines.add("arch_bits", usize::BITS);
    lines.add("multiplexing_api", "epoll");
    lines.add("process_id", std::process::id());
    lines.add("process_supervised", "no");
    lines.add("run_id", &server.run_id);
    lines.add("tcp_port", server.config.number(config::PORT));
    lines.add("server_time_usec", now_ms * 1000);
    lines.add("uptime_in_seconds", uptime);
    lines.add("uptime_in_days", uptime / 86_400);
    lines.add("hz", 10);
    lines.add("configured_hz", 10);
    lines.add("lru_clock", (now_ms / 1000) & 0xff_ffff);
    lines.add("executable", "");
    lines.add("config_file", "");
    lines.add("io_threads_active", 0);
}

fn clients_section(server: &Server, lines: &mut Lines<'_>) {
    lines.add("connected_clients", server.clients.count());
    lines.add("cluster_connections", 0);
    lines.add("maxclients", server.config.number(config::MAXCLIENTS));
    lines.add("client_recent_max_input_buffer", 0);
    lines.add("client_recent_max_output_buffer", 0);
    lines.add("blocked_clients", server.blocked_clients());
    lines.add("tracking_clients", server.tracking.count());
    lines.add("clients_in_timeout_table", 0);
}

/// Bytes as people read them.
fn human(bytes: u64) -> String {
    let units = [(1u64 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    for (size, unit) in units {
        if bytes >= size {
            return format!("{:.2}{unit}", bytes as f64 / size as f64);
        }
    }
    format!("{bytes}B")
}

fn memory_section(server: &Server, lines: &mut Lines<'_>) {
    let usage = process::usage();
    let used = usage.resident_bytes;
    for name in ["used_memory", "used_memory_rss", "used_memory_peak"] {
        lines.add(name, used);
        lines.add(&format!("{name}_human"), human(used));
    }
    lines.add("used_memory_overhead", 0);
    lines.add("used_memory_startup", 0);
    lines.add("used_memory_dataset", 0);
    lines.add("total_system_memory", usage.system_bytes);
    lines.add("total_system_memory_human", human(usage.system_bytes));
    let scripts = server.script_usage();
    lines.add("used_memory_lua", scripts.lua_bytes);
    lines.add("used_memory_vm_eval", scripts.lua_bytes);
    lines.add("used_memory_lua_human", human(scripts.lua_bytes));
    lines.add("used_memory_scripts_eval", scripts.script_bytes);
    lines.add("number_of_cached_scripts", scripts.scripts);
    lines.add("number_of_functions", scripts.functions);
    lines.add("number_of_libraries", scripts.libraries);
    lines.add("used_memory_vm_functions", 0);
    lines.add("used_memory_vm_total", scripts.lua_bytes);
    lines.add("used_memory_vm_total_human", human(scripts.lua_bytes));
    lines.add("used_memory_functions", 0);
    lines.add("used_memory_scripts", scripts.script_bytes);
    lines.add("used_memory_scripts_human", human(scripts.script_bytes));
    let maxmemory = server.config.size(config::MAXMEMORY);
    lines.add("maxmemory", maxmemory);
    lines.add("maxmemory_human", human(maxmemory));
    lines.add("maxmemory_policy", "noeviction");
    lines.add("mem_fragmentation_ratio", "1.00");
    lines.add("mem_fragmentation_bytes", 0);
    lines.add("mem_not_counted_for_evict", 0);
    lines.add("mem_replication_backlog", 0);
    lines.add("mem_clients_slaves", 0);
    lines.add("mem_clients_normal", 0);
    lines.add("mem_aof_buffer", 0);
    lines.add("mem_allocator", "libc");
    lines.add("active_defrag_running", 0);
    lines.add("lazyfree_pending_objects", 0);
    lines.add("lazyfreed_objects", 0);
}

fn persistence_section(server: &Server, lines: &mut Lines<'_>) {
    lines.add("loading", 0);
    lines.add("async_loading", 0);
    // Every acknowledged change is in the log: what Redis would still have to save is counted from
    // the start.
    lines.add("rdb_changes_since_last_save", server.dirty.load(Relaxed));
    lines.add("rdb_bgsave_in_progress", 0);
    lines.add("rdb_last_save_time", server.saved_ms.load(Relaxed) / 1000);
    lines.add("rdb_last_bgsave_status", "ok");
    lines.add("rdb_last_bgsave_time_sec", -1);
    lines.add("rdb_current_bgsave_time_sec", -1);
    lines.add("rdb_saves", 0);
    lines.add("rdb_last_cow_size", 0);
    lines.add("rdb_last_load_keys_expired", 0);
    lines.add("rdb_last_load_keys_loaded", 0);
    lines.add("aof_enabled", 1);
    lines.add("aof_rewrite_in_progress", 0);
    lines.add("aof_rewrite_scheduled", 0);
    lines.add("aof_last_rewrite_time_sec", -1);
    lines.add("aof_current_rewrite_time_sec", -1);
    lines.add("aof_last_bgrewrite_status", "ok");
    lines.add("aof_last_write_status", "ok");
    lines.add("aof_last_cow_size", 0);
}

fn stats_section(server: &Server, lines: &mut Lines<'_>) {
    let stats = &server.stats;
    lines.add("total_connections_received", stats.connections.load(Relaxed));
    lines.add("total_commands_processed", stats.commands_processed());
    lines.add("instantaneous_ops_per_sec", 0);
    lines.add("total_net_input_bytes", stats.input_bytes.load(Relaxed));
    lines.add("total_net_output_bytes", stats.output_bytes.load(Relaxed));
    lines.add("instantaneous_input_kbps", "0.00");
    lines.add("instantaneous_output_kbps", "0.00");
    lines.add("rejected_connections", stats.rejected_connections.load(Relaxed));
    for name in ["sync_full", "sync_partial_ok", "sync_partial_err"] {
        lines.add(name, 0);
    }
    lines.add("expired_keys", stats.expired_keys.load(Relaxed));
    lines.add("evicted_keys", 0);
    lines.add("evicted_clients", 0);
    lines.add("keyspace_hits", stats.keyspace_hits.load(Relaxed));
    lines.add("keyspace_misses", stats.keyspace_misses.load(Relaxed));
    lines.add("pubsub_channels", server.pubsub.topics(Topic::Channel));
    lines.add("pubsub_patterns", server.pubsub.topics(Topic::Pattern));
    lines.add("pubsubshard_channels", server.pubsub.topics(Topic::Shard));
    lines.add("latest_fork_usec", 0);
    lines.add("total_forks", 0);
    lines.add("migrate_cached_sockets", 0);
    let (keys, items, prefixes) = server.tracking.counts();
    lines.add("tracking_total_keys", keys);
    lines.add("tracking_total_items", items);
    lines.add("tracking_total_prefixes", prefixes);
    lines.add("unexpected_error_replies", 0);
    lines.add("total_error_replies", stats.error_replies.load(Relaxed));
    lines.add("total_reads_processed", 0);
    lines.add("total_writes_processed", 0);
}

fn replication_section(server: &Server, lines: &mut Lines<'_>) {
    lines.add("role", "master");
    lines.add("connected_slaves", 0);
    lines.add("master_failover_state", "no-failover");
    lines.add("master_replid", &server.run_id);
    lines.add("master_replid2", "0".repeat(40));
    lines.add("master_repl_offset", 0);
    lines.add("second_repl_offset", -1);
    lines.add("repl_backlog_active", 0);
    lines.add("repl_backlog_size", 0);
    lines.add("repl_backlog_first_byte_offset", 0);
    lines.add("repl_backlog_histlen", 0);
}

fn cpu_section(lines: &mut Lines<'_>) {
    let usage = process::usage();
    lines.add("used_cpu_sys", format_args!("{:.6}", usage.system_seconds));
    lines.add("used_cpu_user", format_args!("{:.6}", usage.user_seconds));
    lines.add("used_cpu_sys_children", format_args!("{:.6}", usage.children_system_seconds));
    lines.add("used_cpu_user_children", format_args!("{:.6}", usage.children_user_seconds));
}

fn command_stats_section(server: &Server, lines: &mut Lines<'_>) {
    for (place, command) in commands::each().enumerate() {
        let Some(stats) = server.stats.at(place) else { continue };
        let counts = [&stats.calls, &stats.usec, &stats.rejected, &stats.failed];
        let [calls, usec, rejected, failed] = counts.map(|count| count.load(Relaxed));
        if calls + rejected + failed == 0 {
            continue;
        }
        let each = if calls == 0 { 0.0 } else { usec as f64 / calls as f64 };
        lines.add(
            &format!("cmdstat_{}", command.name),
            format_args!(
                "calls={calls},usec={usec},usec_per_call={each:.2},rejected_calls={rejected},\
                 failed_calls={failed}"
            ),
        );
    }
}

fn latency_stats_section(server: &Server, lines: &mut Lines<'_>) {
    if !server.config.is_on(config::LATENCY_TRACKING) {
        return;
    }
    let percentiles = server.config.text(config::LATENCY_PERCENTILES);
    for (place, command) in commands::each().enumerate() {
        let Some(counts) = server.stats.at(place).and_then(|stats| stats.histogram()) else {
            continue;
        };
        if counts.iter().all(|count| *count == 0) {
            continue;
        }
        let shown: Vec<String> = percentiles
            .split_whitespace()
            .map(|percentile| format!("p{percentile}={:.3}", at_percentile(&counts, percentile)))
            .collect();
        lines.add(&format!("latency_percentiles_usec_{}", command.name), shown.join(","));
    }
}

/// The microseconds that so many percent did not exceed, as closely as the histogram knows.
fn at_percentile(counts: &[u32; HISTOGRAM_LEN], percentile: &str) -> f64 {
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let wanted = percentile.parse::<f64>().unwrap_or(100.0) / 100.0 * total as f64;
    let mut seen = 0;
    for (power, count) in counts.iter().enumerate() {
        seen += u64::from(*count);
        if *count > 0 && seen as f64 >= wanted {
            return (1u64 << power) as f64;
        }
    }
    0.0
}

fn keyspace_section(txn: &mut Txn<'_>, lines: &mut Lines<'_>) -> Result<()> {
    let before = txn.db();
    for db in 0..DATABASES as u8 {
        txn.select(db);
        let keys = txn.count_keys()?;
        if keys > 0 {
            lines.add(&format!("db{db}"), format_args!("keys={keys},expires=0,avg_ttl=0"));
        }
    }
    txn.select(before);
    Ok(())
}
