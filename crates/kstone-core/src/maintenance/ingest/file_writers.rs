//! The second half of an ingest: compresses blocks and writes them to their files.
//!
//! The caller puts runs of blocks into a queue, from which threads take them; when the queue is
//! full, the caller takes one too instead of waiting. So all cores have work, whichever half of an
//! ingest costs more. Without threads ([`Env::threads`](crate::env::Env) is `None`, or the ingest
//! is small) the caller takes everything.
//!
//! Invariant: the runs of a stripe are written one at a time, in the order in which they came. So
//! the files depend on nothing but the runs, except for the ids of those behind a stripe's first.
//!
//! Rejected: handing over records instead of blocks leaves less to the caller, but copies each
//! record once more; a thread with half of the stripes for itself idles whenever the order of the
//! keys favours the other half.

use std::collections::VecDeque;

use crate::engine::Inner;
use crate::engine::flush::Written;
use crate::env::JoinHandle;
use crate::error::{Error, Result};
use crate::key::STRIPES;
use crate::sst::{FileIdent, FrameBuffer, Run, SstAssembly, SstMeta, SstOptions};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};
use crate::tree::picker;

/// What may wait in the queue. Enough that no thread runs dry while the caller writes a run
/// itself; more would only be memory, and no longer fit into a processor's cache.
const QUEUE_BYTES_MAX: usize = 1 << 20;

/// What is written before a thread makes it durable, while the others go on: so the disk has
/// something to do all the time, and little is left for the end. Less at a time would be more syncs.
const SYNC_BYTES: u64 = 128 << 20;

/// The files of an ingest while they are written. Dropped, it ends the threads; the files stay
/// until somebody removes them.
#[derive(Debug)]
pub(super) struct FileWriters {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle>,
    frame_buffer: FrameBuffer,
}

#[derive(Debug)]
struct Shared {
    inner: Arc<Inner>,
    written: Mutex<Written<Arc<Inner>>>,
    options: SstOptions,
    file_bytes_max: u64,
    /// By stripe; locked by the only thread that works on the stripe.
    files: Vec<Mutex<Files>>,
    queue: Mutex<Queue>,
    /// There is something to take, or nobody takes anything any more.
    added: Condvar,
    /// Something was done.
    done: Condvar,
    /// Bytes written since a thread last synced.
    unsynced_bytes: AtomicU64,
}

/// The files of one stripe.
#[derive(Debug, Default)]
struct Files {
    /// The first file, while it has only a name.
    named: Option<FileIdent>,
    open: Option<SstAssembly>,
    finished: Vec<SstMeta>,
}

#[derive(Debug, Default)]
struct Queue {
    /// By stripe.
    stripes: Vec<StripeQueue>,
    /// Stripes that have tasks and nobody who works on them, each once.
    ready: VecDeque<u8>,
    /// Of all tasks that wait; 0 if there are none.
    bytes: usize,
    working: usize,
    /// Empty runs, for their memory.
    spare: Vec<Run>,
    failed: Option<Error>,
    is_closed: bool,
}

/// What is to be done for a stripe, first come first.
#[derive(Debug, Default)]
struct StripeQueue {
    tasks: VecDeque<Task>,
    is_busy: bool,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every task is a run")]
enum Task {
    Append(Run),
    Finish,
}

impl Task {
    fn bytes(&self) -> usize {
        match self {
            Task::Append(run) => run.bytes(),
            Task::Finish => 1,
        }
    }
}

impl FileWriters {
    pub(super) fn new(inner: &Arc<Inner>) -> Result<Self> {
        let options = inner.sst_options(true);
        let stripes = std::iter::repeat_with(StripeQueue::default).take(STRIPES).collect();
        let shared = Shared {
            inner: Arc::clone(inner),
            written: Mutex::new(Written::new(Arc::clone(inner))),
            options,
            file_bytes_max: picker::file_bytes_max(1, &inner.options.tuning),
            files: std::iter::repeat_with(Mutex::default).take(STRIPES).collect(),
            queue: Mutex::new(Queue { stripes, ..Queue::default() }),
            added: Condvar::default(),
            done: Condvar::default(),
            unsynced_bytes: AtomicU64::new(0),
        };
        let frame_buffer = FrameBuffer::new(options.compression)?;
        Ok(FileWriters { shared: Arc::new(shared), threads: Vec::new(), frame_buffer })
    }

    pub(super) fn written(&self) -> MutexGuard<'_, Written<Arc<Inner>>> {
        self.shared.written.lock()
    }

    /// Names the first file of a stripe: in the order in which records come, so that small ingests
    /// give their files the same names every time.
    pub(super) fn name_first_file(&self, stripe: u8) {
        if let Some(files) = self.shared.files.get(usize::from(stripe)) {
            files.lock().named = Some(self.shared.written.lock().begin(stripe));
        }
    }

    /// An empty run, if possible one that has memory.
    pub(super) fn spare_run(&self) -> Run {
        self.shared.queue.lock().spare.pop().unwrap_or_default()
    }

    /// Has a run written, now or later. An error may be that of an earlier run.
    pub(super) fn append(&mut self, stripe: u8, run: Run) -> Result<()> {
        self.shared.queue.lock().push(stripe, Task::Append(run));
        self.shared.added.notify_one();
        let bytes_max = if self.threads.is_empty() { 0 } else { QUEUE_BYTES_MAX };
        self.shared.take_part(bytes_max, &mut self.frame_buffer)
    }

    /// From now on everything fails.
    pub(super) fn fail(&self, error: &Error) {
        self.shared.queue.lock().note(Err(error.clone()));
    }

    /// Finishes the files of all stripes, and ends. They are complete, but not durable.
    pub(super) fn finish(&mut self) -> Result<Vec<SstMeta>> {
        let mut queue = self.shared.queue.lock();
        for stripe in 0..=u8::MAX {
            queue.push(stripe, Task::Finish);
        }
        drop(queue);
        self.shared.added.notify_all();
        self.shared.take_part(0, &mut self.frame_buffer)?;
        let mut queue = self.shared.queue.lock();
        while queue.working > 0 {
            queue = self.shared.done.wait(queue);
        }
        drop(queue);
        // A thread may still be syncing; the system tells of what it could not write only once.
        self.end();
        self.shared.queue.lock().failed.clone().map_or(Ok(()), Err)?;
        let finished = |files: &Mutex<Files>| std::mem::take(&mut files.lock().finished);
        Ok(self.shared.files.iter().flat_map(finished).collect())
    }

    /// Nothing is written any more when this returns, and no thread is left.
    pub(super) fn end(&mut self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.added.notify_all();
        for thread in self.threads.drain(..) {
            thread.join();
        }
    }

    /// Lets threads take part, if there are any.
    pub(super) fn start_threads(&mut self) {
        let inner = &self.shared.inner;
        let Some(threads) = &inner.env.threads else { return };
        while self.threads.len() < inner.options.background_threads {
            let shared = Arc::clone(&self.shared);
            // One that cannot be had is done without: the caller takes part.
            let Ok(thread) = threads.spawn("kstone-ingest", Box::new(move || shared.run())) else {
                break;
            };
            self.threads.push(thread);
        }
    }
}

impl Drop for FileWriters {
    fn drop(&mut self) {
        self.end();
    }
}

impl Queue {
    fn push(&mut self, stripe: u8, task: Task) {
        let Some(line) = self.stripes.get_mut(usize::from(stripe)) else { return };
        self.bytes += task.bytes();
        line.tasks.push_back(task);
        if !line.is_busy && line.tasks.len() == 1 {
            self.ready.push_back(stripe);
        }
    }

    /// Keeps an error, if it is the first.
    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }

    /// The next task whose stripe nobody works on.
    fn pop(&mut self) -> Option<(u8, Task)> {
        let stripe = self.ready.pop_front()?;
        let line = self.stripes.get_mut(usize::from(stripe))?;
        let task = line.tasks.pop_front()?;
        line.is_busy = true;
        self.bytes -= task.bytes();
        self.working += 1;
        Some((stripe, task))
    }
}

impl Shared {
    /// What a thread does.
    fn run(&self) {
        let Ok(mut frame_buffer) = FrameBuffer::new(self.options.compression) else { return };
        let mut queue = self.queue.lock();
        while !queue.is_closed && queue.failed.is_none() {
            queue = match queue.pop() {
                Some((stripe, task)) => {
                    drop(queue);
                    StripeTask::begin(self, stripe).work(task, &mut frame_buffer);
                    let synced = self.sync_if_due();
                    let mut queue = self.queue.lock();
                    queue.note(synced);
                    queue
                }
                None => self.added.wait(queue),
            };
        }
    }

    /// Works on what waits until that is no more than so many bytes.
    fn take_part(&self, bytes_max: usize, frame_buffer: &mut FrameBuffer) -> Result<()> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(error) = &queue.failed {
                return Err(error.clone());
            }
            if queue.bytes <= bytes_max {
                return Ok(());
            }
            queue = match queue.pop() {
                Some((stripe, task)) => {
                    drop(queue);
                    StripeTask::begin(self, stripe).work(task, frame_buffer);
                    self.queue.lock()
                }
                None => self.done.wait(queue),
            };
        }
    }

    fn append(&self, stripe: u8, run: &Run, frame_buffer: &mut FrameBuffer) -> Result<()> {
        let Some(files) = self.files.get(usize::from(stripe)) else { return Ok(()) };
        let mut files = files.lock();
        if files.open.as_ref().is_some_and(|file| file.estimated_bytes() >= self.file_bytes_max) {
            self.finish(&mut files, frame_buffer)?;
        }
        let files = &mut *files;
        let file = match &mut files.open {
            Some(file) => file,
            none => {
                let ident = files.named.take().unwrap_or_else(|| self.written.lock().begin(stripe));
                let Inner { env, dir, .. } = &*self.inner;
                let file = SstAssembly::create(&*env.vfs, dir, ident, self.options)?;
                self.written.lock().add(Arc::clone(file.file()));
                none.insert(file)
            }
        };
        let bytes = file.append(run, frame_buffer)?;
        self.unsynced_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn finish(&self, files: &mut Files, frame_buffer: &mut FrameBuffer) -> Result<()> {
        let Some(open) = files.open.take() else { return Ok(()) };
        let (meta, _) = open.finish(frame_buffer)?;
        files.finished.push(meta);
        Ok(())
    }

    fn sync_if_due(&self) -> Result<()> {
        let is_due = |bytes: u64| bytes >= SYNC_BYTES;
        // The second look, because another thread may have begun in between.
        if !is_due(self.unsynced_bytes.load(Ordering::Relaxed))
            || !is_due(self.unsynced_bytes.swap(0, Ordering::Relaxed))
        {
            return Ok(());
        }
        let files = self.written.lock().files().to_vec();
        let Inner { env, dir, .. } = &*self.inner;
        env.vfs.sync_files(&files).map_err(|e| Error::io("sync SST files in", dir, e))
    }
}

/// Somebody's work on a stripe. Dropped, it makes room for the next; dropped in a panic, it tells
/// the caller, who would wait forever otherwise.
struct StripeTask<'a> {
    shared: &'a Shared,
    stripe: u8,
    result: Result<Option<Run>>,
}

impl<'a> StripeTask<'a> {
    fn begin(shared: &'a Shared, stripe: u8) -> Self {
        StripeTask {
            shared,
            stripe,
            result: Err(Error::invalid("a thread of the ingest panicked")),
        }
    }

    fn work(mut self, task: Task, frame_buffer: &mut FrameBuffer) {
        self.result = match task {
            Task::Append(mut run) => {
                self.shared.append(self.stripe, &run, frame_buffer).map(|()| {
                    run.clear();
                    Some(run)
                })
            }
            Task::Finish => match self.shared.files.get(usize::from(self.stripe)) {
                Some(files) => self.shared.finish(&mut files.lock(), frame_buffer).map(|()| None),
                None => Ok(None),
            },
        };
    }
}

impl Drop for StripeTask<'_> {
    fn drop(&mut self) {
        let mut queue = self.shared.queue.lock();
        match std::mem::replace(&mut self.result, Ok(None)) {
            Ok(run) => queue.spare.extend(run),
            Err(error) => queue.note(Err(error)),
        }
        let Queue { stripes, ready, working, .. } = &mut *queue;
        *working -= 1;
        if let Some(line) = stripes.get_mut(usize::from(self.stripe)) {
            line.is_busy = false;
            if !line.tasks.is_empty() {
                ready.push_back(self.stripe);
                self.shared.added.notify_one();
            }
        }
        self.shared.done.notify_one();
    }
}
