//! Packets of sensors: the bytes of each as blocks. An extract that breaks off goes on behind what
//! came, and is compared with the manifest that its sensor sealed.

use std::io::{self, Write};

use fleet::{Block, Fault, Line, NoPcapng, Said, Splitter, Transport};
use manifest::parse_manifest;
use remote::{Download, Failed, Received, Telling, There};
use stage::sync::{Mutex, PoisonError};

use crate::fault::{of_remote, of_statement};
use crate::network::Network;

/// An extract.
#[derive(Debug)]
pub struct Extracting<'a> {
    network: &'a Network,
    query: String,
    parameters: Vec<(&'static str, String)>,
    /// SHA-256 of what each sensor sent, in hex digits.
    hashes: Mutex<Vec<Option<String>>>,
}

impl<'a> Extracting<'a> {
    /// Of this query, with these parameters of the service.
    pub fn new(
        network: &'a Network,
        query: String,
        parameters: Vec<(&'static str, String)>,
    ) -> Self {
        let hashes = Mutex::new(vec![None; network.sensors.len()]);
        Self { network, query, parameters, hashes }
    }

    /// SHA-256 of what each sensor sent, in hex digits, where it has sealed a manifest of it.
    pub fn hashes(self) -> Vec<Option<String>> {
        self.hashes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Extracting<'_> {
    type Item = Block;

    fn ask(&self, sensor: usize, line: &Line<'_, Block>) -> Result<Said, Fault> {
        let there = self.network.there(sensor, line)?.with_query(self.query.clone());
        match self.extract(&there, sensor, line) {
            // Nothing came yet: a new connection may count.
            Err(Fault::Lapsed(_)) => self.extract(&there, sensor, line),
            done => done,
        }
    }
}

impl Extracting<'_> {
    fn extract(&self, there: &There, sensor: usize, line: &Line<'_, Block>) -> Result<Said, Fault> {
        let mut blocks =
            Blocks { splitter: Splitter::default(), line, fault: None, has_begun: false };
        let received = Download::new(there, self.parameters.clone(), &mut blocks).all(&mut Quiet);
        let Received { said, manifest } = received.map_err(|failed| match failed {
            Failed::Remote(error) => match of_remote(error) {
                // What came is in the answer already.
                Fault::Lapsed(why) if blocks.has_begun => Fault::Refused(why),
                fault => fault,
            },
            Failed::Output(error) => {
                blocks.fault.take().unwrap_or_else(|| Fault::Unlike(error.to_string()))
            }
        })?;
        blocks.splitter.finish().map_err(|error| Fault::Unlike(error.to_string()))?;
        let of_manifest = manifest.as_deref().and_then(|text| {
            let manifest = parse_manifest(text).ok()?;
            Some(units::hex(&manifest.outputs.first()?.sha256))
        });
        let mut hashes = stage::lock(&self.hashes);
        *hashes.get_mut(sensor).expect("sensors are asked by their numbers") = of_manifest;
        of_statement(said.statement)
    }
}

/// Where the bytes of a sensor go.
struct Blocks<'a> {
    splitter: Splitter,
    line: &'a Line<'a, Block>,
    fault: Option<Fault>,
    has_begun: bool,
}

/// Why a block does not go on.
struct Halted(Fault);

impl From<NoPcapng> for Halted {
    fn from(error: NoPcapng) -> Self {
        Self(Fault::Unlike(error.to_string()))
    }
}

impl Write for Blocks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.has_begun = true;
        let line = self.line;
        let taken = self.splitter.take(bytes, &mut |block| line.push(block).map_err(Halted));
        if let Err(Halted(fault)) = taken {
            self.fault = Some(fault);
            return Err(io::Error::other("it is not taken any further"));
        }
        // Bytes without a whole block are a sign of life, too.
        if line.hear().is_err() {
            self.fault = Some(Fault::Stopped);
            return Err(io::Error::other("it is not taken any further"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Nobody is told how one of many goes on.
struct Quiet;

impl Telling for Quiet {
    fn bytes(&mut self, _so_far: u64) {}

    fn say(&mut self, _line: &str) {}
}
