//! The service from its start to its end.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

use host::{StopFlag, SystemClock};
use tokio::sync::watch;
use tokio::time::sleep;
use units::{Clock as _, NANOS_PER_SECOND};

use crate::config::Parent;
use crate::listen::{Door, Doors, Kind, Taken};
use crate::service::Service;
use crate::tls::{Certificates, Clients, Files};
use crate::{Config, Error};

/// Threads that move bytes; whatever takes time is done elsewhere.
const THREADS: usize = 2;
/// A signal is noticed within this.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What keeps the service unwell is tried again so often.
const TRY_EVERY_NS: i64 = 2 * NANOS_PER_SECOND;
/// Answers that are on their way when the service is to end have so long.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until a signal asks to end; what is on its way then has ten seconds.
///
/// # Errors
/// When it may not or cannot begin: what listens where, credentials, certificates, volumes.
pub fn serve(config: &Config) -> Result<(), Error> {
    config.check()?;
    let stop = StopFlag::install()?;
    for note in sandbox::confine_service() {
        // A line that nobody takes is nothing to wait for.
        let _is_written = (config.write_line)(&note);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("serve")
        .enable_all()
        .build()?;
    // Before the audit is opened: what cannot listen leaves no lines there, however often it is
    // started.
    let taken = runtime.block_on(take(config))?;
    let service = Arc::new(Service::new(config)?);
    let (trail, log) = (Arc::clone(&service.trail), Arc::clone(&service.log));
    let result = runtime.block_on(run(config, service, taken, &stop));
    // A worker that the kernel does not end is none to wait for.
    runtime.shutdown_timeout(LOOK_EVERY);
    trail.stop().into_iter().for_each(|head| log.say(&head));
    result
}

/// Takes the addresses: that of the interface first.
async fn take(config: &Config) -> Result<Vec<Taken>, Error> {
    let tls = |clients| {
        let (client_ca, client_crl) = (config.client_ca.clone(), config.client_crl.clone());
        let files = config.tls.clone().map(|tls| Files { tls, client_ca, client_crl });
        files.map(|files| Certificates::new(files, clients).map(Arc::new)).transpose()
    };
    let (address, handed) = (config.listen, config.handed.clone());
    let door = Door { address, handed, tls: tls(Clients::May)?, kind: Kind::Interface };
    let mut taken = vec![door.take().await?];
    if let Some(address) = config.stenographer {
        let door =
            Door { address, handed: None, tls: tls(Clients::Must)?, kind: Kind::Stenographer };
        taken.push(door.take().await?);
    }
    Ok(taken)
}

async fn run(
    config: &Config,
    service: Arc<Service>,
    taken: Vec<Taken>,
    stop: &StopFlag,
) -> Result<(), Error> {
    let (drain, draining) = watch::channel(false);
    let doors = Doors::new(Arc::clone(&service), config.bounds.connections, draining);
    let address = taken.first().map_or(config.listen, |interface| interface.address);
    for taken in taken {
        let line = doors.open(taken);
        service.log.say(&line);
    }
    say_first(config, &service, address)?;
    host::tell_manager("READY=1");
    let mut tried_ns = SystemClock.boottime_ns();
    let mut is_left = false;
    while !stop.is_set() && !is_left {
        sleep(LOOK_EVERY).await;
        let now_ns = SystemClock.boottime_ns();
        if now_ns.saturating_sub(tried_ns) >= TRY_EVERY_NS {
            tried_ns = now_ns;
            service.try_again().await;
            is_left = config.parent.is_some_and(Parent::is_gone);
        }
    }
    if is_left {
        service.log.say("who kept it running has ended; it ends, too");
    }
    host::tell_manager("STOPPING=1");
    service.is_stopping.store(true, Ordering::Relaxed);
    service.jobs.end_all("the service ended");
    // Who listens sees it, or has ended.
    drain.send(true).unwrap_or_default();
    let until_ns = SystemClock.boottime_ns().saturating_add(units::nanos(DRAIN));
    while (doors.count() > 0 || service.jobs.going() > 0) && SystemClock.boottime_ns() < until_ns {
        sleep(LOOK_EVERY).await;
    }
    match doors.count() {
        0 => service.log.say("ended in order"),
        left => service.log.say(&format!(
            "ended; {} still open after {} s",
            page::text::plural(units::number::to_u64(left), "connection"),
            DRAIN.as_secs()
        )),
    }
    Ok(())
}

/// Where nobody can manage people: says the link that makes an administrator, to who can read what
/// this service says. The secret stands behind `#`, which browsers keep to themselves.
fn say_first(config: &Config, service: &Service, address: SocketAddr) -> Result<(), Error> {
    let Some(accounts) = &service.credentials.accounts else { return Ok(()) };
    let Some(secret) = accounts.begin_first()? else { return Ok(()) };
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let place = if address.ip().is_unspecified() {
        format!("{}:{}", host::host_name(), address.port())
    } else {
        address.to_string()
    };
    service.log.say(&format!(
        "no administrator yet: who opens {scheme}://{place}/#/first?link={secret} within an hour \
         becomes the first one; it counts once"
    ));
    Ok(())
}
