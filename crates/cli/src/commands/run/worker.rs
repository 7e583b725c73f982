//! `aec-bench run` as a worker on a cluster: an ordinary run of one shard, with the additions of its contract.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_cluster::contract::{Contract, Folder};
use aec_cluster::environment;
use aec_cluster::segment::Segment;
use aec_ledger::layout::ExperimentDirectory;
use aec_model::client::Client;
use aec_model::day::DayBook;
use aec_model::meter::{Account, Budget};
use aec_model::money::MicroDollars;
use aec_run::campaign::ClusterOptions;
use aec_run::control::{Control, Wish};
use aec_run::event::RunEvent;
use aec_run::plan::Plan;
use aec_run::resume::Past;
use aec_run::session::{Shard, live_shards};

use crate::commands::models::Models;
use crate::commands::planning::VERSION;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::signals::Signals;

/// How long to wait before an ended attempt is recorded: longer than a node takes to signal all processes of a job.
const DOUBT: Duration = Duration::from_millis(100);

/// Shortest time between two counts of the other workers.
const LOOK: Duration = Duration::from_secs(3);

/// Shortest time between two progress reports of a worker.
const SAY: Duration = Duration::from_secs(1);

pub(crate) struct Worker {
    folder: Folder,
    contract: Contract,
    shard: Shard,
    /// Whether the cluster ended the job.
    terminated: Arc<AtomicBool>,
}

impl Worker {
    /// Reads the contract, and adds its variables to the environment.
    pub(crate) fn open(context: &Context, folder: &Path, shard: Shard) -> Result<Self, Failure> {
        let folder = Folder::at(context.absolute(folder)?);
        let contract = folder.contract().map_err(Failure::environment)?;
        if shard.count != contract.shards {
            let what = format!("the contract has {} shards, not {}", contract.shards, shard.count);
            return Err(Failure::usage(Problem::error(what).fix("let the cluster start workers")));
        }
        match environment::read(&folder.environment()).map_err(Failure::environment)? {
            Some(variables) => context.add_variables(variables),
            // A cluster that passes secrets itself leaves no file.
            None => tracing::debug!("no variables were kept for this worker"),
        }
        Ok(Self { folder, contract, shard, terminated: Arc::default() })
    }

    /// Refuses a plan other than the contract's, and a submission that was asked to stop before this shard began.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), Failure> {
        if plan.digest != self.contract.plan {
            let problem = Problem::error("the plan is not the one of the contract").id("J022");
            return Err(problem.fix("submit the run again").in_file(self.folder.plan()).into());
        }
        if self.folder.wish() != Wish::GoOn {
            let problem = Problem::error("the run was asked to stop before this shard began").id("J017");
            let fix =
                format!("go on with `aec-bench run --resume {} --engine slurm`", self.contract.experiment_id);
            return Err(Failure { exit: Exit::Interrupted, problems: vec![problem.fix(fix)] });
        }
        Ok(())
    }

    /// Problems to report before the work.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        if self.contract.tool_version == VERSION {
            return Vec::new();
        }
        let what =
            format!("the run was submitted by version {}, this is {VERSION}", self.contract.tool_version);
        vec![Problem::warning(what).fix("use one version on all nodes")]
    }

    /// How the campaign differs from an ordinary run.
    pub(crate) fn options(&self) -> ClusterOptions {
        ClusterOptions { doubt: DOUBT }
    }

    /// The trials still to be rerun: those without a newer attempt than the one that the contract names.
    pub(crate) fn again(&self, past: &Past) -> BTreeSet<Name> {
        let wanted =
            self.contract.rerun.iter().filter(|again| {
                past.trials.get(&again.trial).is_none_or(|past| past.attempt <= again.attempt)
            });
        wanted.map(|again| again.trial.clone()).collect()
    }

    /// The account of the experiment. All shards share its budget through a book in the folder.
    pub(crate) fn account(&self, whole: Budget, opened: &Models) -> Result<Account, Failure> {
        if whole == Budget::UNLIMITED {
            return Ok(opened.run.clone());
        }
        let before = self.contract.spent_before;
        let spent = before.and_then(|spent| MicroDollars::from_dollars(spent.usd)).unwrap_or_default();
        let tokens = before.map_or(0, |spent| spent.tokens);
        let left = Budget {
            money: whole.money.map(|money| money.minus(spent)),
            tokens: whole.tokens.map(|all| all.saturating_sub(tokens)),
        };
        let book = DayBook::open_timeless(&self.folder.book()).map_err(|error| {
            let problem = Problem::error(format!("what the shards spend cannot be written down: {error}"));
            Failure::environment(problem.id("J023").fix("make the run's folder writable on every node"))
        })?;
        Ok(opened.meter.open_book(&opened.run, book, left))
    }

    /// Time between two looks at the other shards. The more shards there are, the less often each one looks.
    fn apart(&self) -> Duration {
        LOOK.max(Duration::from_millis(20 * self.contract.shards as u64))
    }

    /// From now on, divides the limits of endpoints among the running shards.
    pub(crate) async fn divide(&self, client: &Client, directory: ExperimentDirectory) {
        if !client.is_limited() || self.contract.shards < 2 {
            return;
        }
        let (share, count, apart) = (client.share().clone(), self.contract.shards, self.apart());
        let look = move || {
            let live = live_shards(&directory, count).max(1);
            share.divide_among(u32::try_from(live).unwrap_or(u32::MAX));
        };
        look();
        // The other shards must see this one before it sends its first request.
        tokio::time::sleep(apart + Duration::from_millis(500)).await;
        tokio::spawn(async move {
            loop {
                look();
                tokio::time::sleep(apart).await;
            }
        });
    }

    /// Stops when the cluster signals the job: running attempts are cancelled and recorded, so nothing is lost.
    pub(crate) async fn listen(mut signals: Signals, control: Control, terminated: Arc<AtomicBool>) {
        signals.next().await;
        terminated.store(true, Ordering::Release);
        control.wish_for(Wish::GiveUp);
        // A cluster may signal a job twice for one reason, so signals within one second count as one.
        tokio::time::sleep(Duration::from_secs(1)).await;
        tokio::time::timeout(Duration::ZERO, signals.next()).await.ok();
        signals.next().await;
        std::process::exit(i32::from(Exit::Terminated as u8));
    }

    pub(crate) fn terminated(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.terminated)
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.terminated.load(Ordering::Acquire).then_some(Exit::Terminated)
    }

    /// Starts to report the shard's progress, and to look for requests to stop.
    pub(crate) fn teller(&self, control: Control) -> Result<Teller, Failure> {
        let (sender, receiver) = channel();
        let folder = self.folder.clone();
        let writer = std::thread::Builder::new()
            .name("segment".to_owned())
            .spawn(move || tell(&folder, &receiver, &control))?;
        let segment = Segment::new(self.shard.index);
        Ok(Teller { segment, said: None, sender: Some(sender), writer: Some(writer) })
    }
}

/// Reports the progress of a shard. A separate thread writes it, so that a slow file system does not delay the run.
pub(crate) struct Teller {
    segment: Segment,
    said: Option<Instant>,
    sender: Option<Sender<Segment>>,
    writer: Option<std::thread::JoinHandle<()>>,
}

impl Teller {
    pub(crate) fn on(&mut self, event: &RunEvent) {
        let due = self.said.is_none_or(|said| said.elapsed() >= SAY);
        let last = matches!(event, RunEvent::Ended(_));
        if self.segment.on(event) && (due || last) {
            self.said = Some(Instant::now());
            if let Some(sender) = &self.sender {
                // If the writer has ended, the progress is not written.
                sender.send(self.segment.clone()).ok();
            }
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(writer) = self.writer.take() {
            writer.join().ok();
        }
    }
}

fn tell(folder: &Folder, segments: &Receiver<Segment>, control: &Control) {
    while let Ok(mut segment) = segments.recv() {
        if let Err(error) = segment.write(folder) {
            tracing::debug!(%error, "how far the shard is was not written");
        }
        match folder.wish() {
            Wish::GoOn => {}
            wish => control.wish_for(wish),
        }
    }
}
