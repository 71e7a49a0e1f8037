//! What goes on beside a run: the same for commands and for the machine's figures.

use host::allowed_cpus;
use observe::ProcessorUse;
use statistics::Cell;
use units::number::real;

use crate::run::Fact;

/// What others did beside a shorter run cannot be measured: the kernel counts in steps of 10 ms.
const NS_MIN: u64 = 100_000_000;

/// A run that is under way.
pub(crate) struct Beside(Option<ProcessorUse>);

impl Beside {
    /// It begins, on a given processor or anywhere: with what is known before it.
    pub(crate) fn begin(cpu: Option<usize>) -> (Self, Vec<Fact>) {
        let cpu = cpu.or_else(|| allowed_cpus().ok()?.first().copied());
        let mebibytes = host::memory_available_bytes().map(|bytes| real(bytes >> 20));
        let facts = vec![
            number("temperature of the processors", observe::processor_temperature_c()),
            number("MHz of the processor before", cpu.and_then(observe::processor_mhz)),
            number("MiB of free memory", mebibytes),
        ];
        (Self(ProcessorUse::now()), facts)
    }

    /// It took `wall_ns`, and had so much time of processors itself.
    pub(crate) fn end(self, wall_ns: u64, own_ns: f64) -> [Fact; 2] {
        let used = self.0.zip(ProcessorUse::now()).map(|(before, after)| after.since(before));
        let used = used.filter(|_| wall_ns >= NS_MIN);
        let percent = |ns: f64| (ns / real(wall_ns) * 1000.0).round() / 10.0;
        let others = used.map(|used| percent((real(used.busy_ns) - own_ns).max(0.0)));
        let stolen = used.map(|used| percent(real(used.stolen_ns)));
        [
            number("% of a processor that others used", others),
            number("% of a processor that the host took away", stolen),
        ]
    }
}

pub(crate) fn number(name: &str, value: Option<f64>) -> Fact {
    Fact { name: name.to_owned(), value: value.map(Cell::Number) }
}
