//! RocksDB.
//!
//! How the budget is spent: one LRU block cache has the whole of it. Index and filter blocks live
//! in that cache, and a write-buffer manager charges the memtables to it too, up to half of the
//! budget; what the memtables do not use is left to blocks. A memtable is a quarter of the
//! budget, so one can fill while another is flushed. Everything else that bears on speed is either
//! RocksDB's default or named below.

use super::{Budget, Durability, Engine};
use crate::Outcome;
use crate::engine::dataset::{BenchKey, Record, Values};
use ::rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DB, DBCompressionType,
    IngestExternalFileOptions, LruCacheOptions, Options, ReadOptions, SstFileWriter,
    WaitForCompactOptions, WriteBatch, WriteBufferManager, WriteOptions,
};
use std::path::Path;

/// Four pieces: enough for the two threads of the workloads.
const CACHE_SHARD_BITS: i32 = 2;

/// The size of the files that are made for an ingest: what RocksDB's compactions make by default.
const INGEST_FILE_BYTES: u64 = 64 << 20;

/// An open RocksDB, with options that would otherwise be made anew for every call.
pub struct RocksDb {
    db: DB,
    options: Options,
    read: ReadOptions,
    write_os: WriteOptions,
    write_sync: WriteOptions,
}

impl RocksDb {
    fn write_options(&self, durability: Durability) -> &WriteOptions {
        match durability {
            Durability::Soon | Durability::Os => &self.write_os,
            Durability::Sync => &self.write_sync,
        }
    }
}

impl Engine for RocksDb {
    fn open(dir: &Path, budget: Budget) -> Outcome<Self> {
        // By default a cache this small is cut into pieces of a megabyte or less, and the index of
        // one file, which has to fit into one of them, would be read anew for every get.
        let mut cache = LruCacheOptions::default();
        cache.set_capacity(budget.memory_bytes);
        cache.set_num_shard_bits(CACHE_SHARD_BITS);
        let cache = Cache::new_lru_cache_opts(&cache);

        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&cache);
        table.set_block_size(4 * 1024);
        table.set_bloom_filter(10.0, false);
        // Without this, indexes and filters are memory beside the budget.
        table.set_cache_index_and_filter_blocks(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);

        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_write_buffer_size(budget.memory_bytes / 4);
        options.set_max_write_buffer_number(2);
        options.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager_with_cache(
            budget.memory_bytes / 2,
            false,
            cache,
        ));
        options.set_max_background_jobs(i32::try_from(budget.background_threads)?);

        let mut write_sync = WriteOptions::default();
        write_sync.set_sync(true);
        Ok(RocksDb {
            db: DB::open(&options, dir)?,
            options,
            read: ReadOptions::default(),
            write_os: WriteOptions::default(),
            write_sync,
        })
    }

    fn put(&self, record: &Record, durability: Durability) -> Outcome<()> {
        let options = self.write_options(durability);
        Ok(self.db.put_opt(record.key.joined(), record.value, options)?)
    }

    fn batch(&self, records: &[Record], durability: Durability) -> Outcome<()> {
        let mut batch = WriteBatch::default();
        for record in records {
            batch.put(record.key.joined(), record.value);
        }
        Ok(self.db.write_opt(batch, self.write_options(durability))?)
    }

    fn delete(&self, key: &BenchKey, durability: Durability) -> Outcome<()> {
        Ok(self.db.delete_opt(key.joined(), self.write_options(durability))?)
    }

    fn get<R>(&self, key: &BenchKey, read: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let value = self.db.get_pinned_opt(key.joined(), &self.read)?;
        Ok(value.map(|value| read(&value)))
    }

    fn range(&self, start: &BenchKey, count: usize, mut visit: impl FnMut(&[u8])) -> Outcome<()> {
        let mut iter = self.db.raw_iterator_opt(ReadOptions::default());
        iter.seek(start.joined());
        for nth in 0..count {
            if nth > 0 {
                iter.next();
            }
            let Some(value) = iter.value() else { break };
            visit(value);
        }
        Ok(iter.status()?)
    }

    fn scan(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Outcome<()> {
        let mut iter = self.db.raw_iterator_opt(ReadOptions::default());
        iter.seek_to_first();
        while let Some((key, value)) = iter.item() {
            visit(key, value);
            iter.next();
        }
        Ok(iter.status()?)
    }

    fn settle(&self) -> Outcome<()> {
        self.db.flush()?;
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn ingest(&self, records: u32, value_len: usize) -> Outcome<()> {
        // Beside the database's files, so that they are moved and not copied.
        let path = |nth: usize| self.db.path().join(format!("ingest-{nth}.sst"));
        let mut values = Values::new(1, value_len);
        let (mut paths, mut id) = (Vec::new(), 0);
        while id < records {
            let mut writer = SstFileWriter::create(&self.options);
            paths.push(path(paths.len()));
            writer.open(&paths[paths.len() - 1])?;
            // The size costs a call, so it is asked for now and then only.
            while id < records
                && (!id.is_multiple_of(1024) || writer.file_size() < INGEST_FILE_BYTES)
            {
                let Record { key, value } = values.record(id, 0);
                writer.put(key.joined(), value)?;
                id += 1;
            }
            writer.finish()?;
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        Ok(self.db.ingest_external_file_opts(&options, paths)?)
    }

    fn compact(self) -> Outcome<()> {
        self.settle()?;
        let mut options = CompactOptions::default();
        // Without this, files that are already in the last level stay as they are.
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        self.db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        self.settle()?;
        self.close()
    }

    fn close(self) -> Outcome<()> {
        drop(self);
        Ok(())
    }
}
