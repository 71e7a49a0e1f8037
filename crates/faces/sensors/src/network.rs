//! The way to the sensors.

use core::time::Duration;

use fleet::{Fault, Line, Ranked, Sensor};
use remote::{NoVolume, Service, Settings, There, Trust};
use stage::sync::atomic::Ordering;
use zeroize::Zeroizing;

use crate::fault::of_remote;

/// The sensors, and how they are asked.
#[derive(Debug)]
pub struct Network {
    /// Who they are.
    pub sensors: Vec<Sensor>,
    /// Silence for so long is an end.
    pub silence: Duration,
    /// Name and version of the program that asks.
    pub program: &'static str,
    /// The token of those that have no file of one.
    pub token: Option<Zeroizing<String>>,
}

impl Network {
    fn sensor(&self, number: usize) -> &Sensor {
        self.sensors.get(number).expect("sensors are asked by their numbers")
    }

    /// A client of a sensor's service, which gives up when the attempt does not count any more.
    pub(crate) fn service<T: Ranked>(
        &self,
        sensor: usize,
        line: &Line<'_, T>,
    ) -> Result<Service, Fault> {
        let sensor = self.sensor(sensor);
        let refused = |why: &dyn ToString| Fault::Refused(why.to_string());
        let origin = sensor.url.parse().map_err(|error: remote::NoOrigin| refused(&error))?;
        let path = |text: &Option<String>| text.as_ref().map(Into::into);
        let certificate = path(&sensor.certificate).zip(path(&sensor.key));
        let token = self.token.clone().filter(|_| sensor.token_file.is_none());
        let token_file = path(&sensor.token_file);
        let trust = Trust { ca: path(&sensor.ca), certificate, token_file, token };
        let over = line.over();
        let settings = Settings {
            trust,
            silence: self.silence,
            program: self.program,
            is_stopped: Box::new(move || over.load(Ordering::Relaxed)),
        };
        Service::new(origin, settings).map_err(of_remote)
    }

    /// The volume of a sensor; it has said which it has.
    pub(crate) fn there<T: Ranked>(
        &self,
        sensor: usize,
        line: &Line<'_, T>,
    ) -> Result<There, Fault> {
        let service = self.service(sensor, line)?;
        let there = self.volume(sensor, service)?;
        line.hear()?;
        Ok(there)
    }

    /// The volume of a sensor behind a client of its service.
    pub(crate) fn volume(&self, sensor: usize, service: Service) -> Result<There, Fault> {
        let volume = self.sensor(sensor).volume.as_deref();
        let chosen = There::choose(service, volume, &[]).and_then(|(there, words)| {
            // Of a service with one volume another name is no word of a query.
            there.named_by_all(&words)
        });
        chosen.map_err(|error| match error {
            NoVolume::Service(error) => of_remote(error),
            which => Fault::Refused(which.to_string()),
        })
    }
}
