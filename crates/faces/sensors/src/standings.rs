//! How sensors stand.

use fleet::{ClockOffset, Fault, Line, Ranked, Said, Standing, Transport};
use host::SystemClock;
use remote::JSON;
use units::Clock as _;

use crate::fault::of_remote;
use crate::network::Network;

/// A clock is asked so often; the quickest answer counts.
const CLOCK_ASKED: u32 = 3;
/// So long a service looks at its recorder for findings.
const FINDINGS_MS: &str = "200";

/// How a sensor stands.
#[derive(Debug)]
pub struct Stands(pub Standing);

impl Ranked for Stands {
    type Key = ();

    fn key(&self) {}

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// A question for how sensors stand.
#[derive(Debug)]
pub struct Standings<'a>(pub &'a Network);

impl Transport for Standings<'_> {
    type Item = Stands;

    fn ask(&self, sensor: usize, line: &Line<'_, Stands>) -> Result<Said, Fault> {
        let Self(network) = self;
        let service = network.service(sensor, line)?;
        let mut standing = Standing::default();
        let mut now_ns = SystemClock.realtime().0;
        for _ in 0..CLOCK_ASKED {
            let sent_ns = SystemClock.realtime().0;
            let said = service.whoami().map_err(of_remote)?;
            let received_ns = SystemClock.realtime().0;
            line.hear()?;
            if let Some(there_ns) = said.now_ns {
                let offset = ClockOffset::of(sent_ns, there_ns, received_ns);
                standing.clock = Some(standing.clock.map_or(offset, |known| known.best(offset)));
                now_ns = there_ns;
            }
            standing.version = said.version;
        }
        let there = network.volume(sensor, service)?;
        let (status, going) = there.status().map_err(of_remote)?;
        line.hear()?;
        standing.take_status(&status, going.as_deref());
        match there.text("/api/v1/recordings", &[], JSON).map_err(of_remote) {
            Ok(text) => standing.take_recordings(&text, now_ns),
            Err(Fault::Refused(why)) => standing.unsaid.push(why),
            Err(fault) => return Err(fault),
        }
        line.hear()?;
        let looked = [("for_ms", FINDINGS_MS.to_owned())];
        match there.text("/api/v1/findings", &looked, JSON).map_err(of_remote) {
            Ok(text) => standing.take_findings(&text),
            Err(Fault::Refused(why)) => standing.unsaid.push(why),
            Err(fault) => return Err(fault),
        }
        line.push(Stands(standing))?;
        Ok(Said::default())
    }
}
