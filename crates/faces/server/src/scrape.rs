//! What Prometheus scrapes. A scrape asks each volume as `/api/v1/volumes` does, by a process, at
//! most every few seconds.

use core::sync::atomic::Ordering;

use exposition::{Answered, Counts, Page};

use crate::service::Service;

/// The page of this moment.
pub(crate) async fn scrape(service: &Service) -> String {
    let mut page = Page::default();
    for volume in &service.volumes {
        let state = service.state(volume).await;
        page.volume(&volume.name, state.as_ref().ok());
    }
    page.service(&counts(service));
    page.finish()
}

fn counts(service: &Service) -> Counts {
    let requests = &service.requests;
    let answered = stage::lock(&requests.answered);
    let answered = answered.iter().map(|(&(endpoint, status), tally)| Answered {
        endpoint,
        status,
        count: tally.count,
        took_ns: tally.took_ns,
        bytes: tally.bytes,
    });
    let fill = service.workers.fill();
    Counts {
        answered: answered.collect(),
        connections: requests.connections.load(Ordering::Relaxed),
        workers: (fill.running, fill.limits.running, fill.limits.own_running),
        queue: (fill.waiting, fill.names),
        refused: [("own", fill.refusals.own), ("all", fill.refusals.all)],
        pushed_out: requests.pushed_out.load(Ordering::Relaxed),
        bad_handshakes: requests.bad_handshakes.load(Ordering::Relaxed),
        lines_left_out: service.log.left_out(),
        audit_lines: service.trail.lines(),
    }
}
