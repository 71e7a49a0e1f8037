//! What lies between this process and the disk of a target: limits that explain a rate, layers that
//! cut writes into several requests, and caches.

use blockdev::disk;
use units::ByteSize;

use crate::limits::{GroupLimit, LimitOf};
use crate::number::real;
use crate::report::Target;

/// Hundredths of a limit from which on it, and not the disk, is what was measured: the kernel
/// counts in slices of a tenth of a second, so that not all of it is reached.
const NEAR: u64 = 80;
/// The same where writes are cut into several requests: of those that wait, version 1 lets through
/// half, as if it charged them twice.
const NEAR_CUT: u64 = 40;

impl Target {
    /// The narrowest limit that explains a rate which was measured with blocks of so many bytes;
    /// `None` where none is near to it.
    pub(crate) fn limit_of(
        &self,
        is_write: bool,
        bytes_per_s: u64,
        block_bytes: u64,
    ) -> Option<&GroupLimit> {
        let requests = block_bytes.div_ceil(self.request_bytes_max().unwrap_or(u64::MAX).max(1));
        let request_bytes = block_bytes / requests.max(1);
        let near = if requests > 1 { NEAR_CUT } else { NEAR };
        let most = |limit: &GroupLimit| match limit.of {
            LimitOf::Bytes => limit.per_second,
            LimitOf::Requests => limit.per_second.saturating_mul(request_bytes),
        };
        let is_near = |limit: &&GroupLimit| {
            limit.is_write == is_write
                && real(bytes_per_s) * 100.0 >= real(most(limit)) * real(near)
        };
        self.limits.iter().filter(is_near).min_by_key(|limit| most(limit))
    }

    /// The shortest of what the layers take in one request.
    fn request_bytes_max(&self) -> Option<u64> {
        self.layers.iter().filter_map(|layer| layer.request_bytes_max).min()
    }

    /// Where a write of so many bytes becomes several requests: a line for each such layer.
    pub(crate) fn cuts(&self, block_bytes: u64) -> Vec<String> {
        let line = |name: &str, bytes: u64, why: &str| {
            let count = block_bytes.div_ceil(bytes.max(1));
            let (block, each) = (ByteSize(block_bytes), ByteSize(bytes));
            format!("{name} cuts each write of {block} into {count} requests of {each}: {why}")
        };
        let of_layer = |layer: &disk::Layer| {
            let chunk = layer.chunk_bytes.filter(|bytes| *bytes < block_bytes);
            let request = layer.request_bytes_max.filter(|bytes| *bytes < block_bytes);
            match (chunk, request) {
                (Some(chunk), request) if request.is_none_or(|request| chunk <= request) => {
                    Some(line(&layer.name, chunk, "the chunk of its stripes"))
                }
                (_, Some(request)) => {
                    let place = format!("/sys/block/{}/queue/max_sectors_kb", layer.name);
                    Some(line(&layer.name, request, &place))
                }
                _ => None,
            }
        };
        self.layers.iter().filter_map(of_layer).collect()
    }

    /// Bytes a second that the drives below can do at most; `None` where one of them is unknown.
    /// Only of drives that say themselves that their platters turn: no arm writes faster than that.
    pub(crate) fn most_bytes_per_s(&self) -> Option<u64> {
        const PLATTERS: u64 = 600_000_000;
        let is_built = |name: &str| ["dm-", "md", "bcache"].iter().any(|it| name.starts_with(it));
        let mut most = 0_u64;
        for layer in self.layers.iter().filter(|layer| !is_built(&layer.name)) {
            let turns = layer.drive.as_ref().and_then(|drive| drive.turns_per_min)?;
            most = most.saturating_add((turns > 0).then_some(PLATTERS)?);
        }
        (most > 0).then_some(most)
    }

    /// A write cache that is a layer of its own: its name, and its size where that is known.
    pub(crate) fn cache(&self) -> Option<(&str, Option<u64>)> {
        // The volumes of LVM behind dm-cache and dm-writecache are named so (lvmcache(7)).
        const PARTS: [&str; 3] = ["_cdata", "_cvol", "-cdata"];
        self.layers.iter().find_map(|layer| {
            let is_part = |name: &&String| PARTS.iter().any(|part| name.ends_with(part));
            match layer.model.as_ref().filter(is_part) {
                Some(name) => Some((name.as_str(), Some(layer.size_bytes))),
                None if layer.keeps_writes => Some((layer.name.as_str(), None)),
                None => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use blockdev::disk::Layer;
    use blockdev::drive::Drive;

    use super::*;
    use crate::report::TargetKind;

    fn target(layers: Vec<Layer>) -> Target {
        Target {
            kind: TargetKind::OwnFile,
            path: String::new(),
            size_bytes: 1 << 30,
            layers,
            is_in_memory: false,
            limits: Vec::new(),
        }
    }

    fn layer(name: &str) -> Layer {
        Layer { name: name.to_owned(), ..Layer::default() }
    }

    fn limit(per_second: u64, of: LimitOf, is_write: bool) -> GroupLimit {
        let (group, file) = ("/backup".to_owned(), String::new());
        GroupLimit { group, file, disk: "sda".to_owned(), is_write, of, per_second }
    }

    #[test]
    fn a_limit_explains_a_rate_that_is_near_to_it() {
        let limits =
            vec![limit(5_000_000, LimitOf::Bytes, true), limit(10, LimitOf::Requests, true)];
        let target = Target { limits, ..target(Vec::new()) };
        let of = |rate, is_write| target.limit_of(is_write, rate, 2 << 20).map(|it| it.of);
        assert_eq!(of(4_900_000, true), Some(LimitOf::Bytes));
        assert_eq!((of(3_000_000, true), of(4_900_000, false)), (None, None));
        // Ten requests of 256 KiB each.
        let small = Layer { request_bytes_max: Some(256 << 10), ..layer("sda") };
        let target = Target { layers: vec![small], ..target.clone() };
        let found = target.limit_of(true, 2_500_000, 2 << 20).map(|it| it.of);
        assert_eq!(found, Some(LimitOf::Requests));
        let half = target.limit_of(true, 1_300_000, 2 << 20).map(|it| it.of);
        assert_eq!(half, Some(LimitOf::Requests), "cut requests are charged twice");
    }

    #[test]
    fn writes_that_become_several_requests_are_noted() {
        let stripes = Layer {
            request_bytes_max: Some(1280 << 10),
            chunk_bytes: Some(512 << 10),
            ..layer("md0")
        };
        let short = Layer { request_bytes_max: Some(1280 << 10), ..layer("sda") };
        let target = target(vec![stripes, short, layer("sdb")]);
        assert_eq!(
            target.cuts(2 << 20),
            [
                "md0 cuts each write of 2.00 MiB into 4 requests of 512 KiB: the chunk of its \
                 stripes",
                "sda cuts each write of 2.00 MiB into 2 requests of 1.25 MiB: \
                 /sys/block/sda/queue/max_sectors_kb",
            ]
        );
        assert!(target.cuts(256 << 10).is_empty());
    }

    #[test]
    fn platters_have_a_highest_rate_and_what_is_unknown_has_none() {
        let disk = |turns| {
            let drive = Drive { turns_per_min: turns, ..Drive::default() };
            Layer { drive: Some(drive), ..layer("sda") }
        };
        let most = |layers| target(layers).most_bytes_per_s();
        assert_eq!(
            most(vec![layer("md0"), disk(Some(7200)), disk(Some(7200))]),
            Some(1_200_000_000)
        );
        assert_eq!(most(vec![disk(Some(7200)), disk(Some(0))]), None);
        assert_eq!(
            (most(vec![disk(None)]), most(vec![layer("vda")]), most(vec![])),
            (None, None, None)
        );
    }

    #[test]
    fn caches_that_are_devices_are_known_by_their_names() {
        let named = |model: &str, size_bytes| Layer {
            model: Some(model.to_owned()),
            size_bytes,
            ..layer("dm-3")
        };
        let of = |layers| target(layers).cache().map(|(name, size)| (name.to_owned(), size));
        let found = of(vec![named("vg-data", 9), named("vg-fast_cvol", 8 << 30)]);
        assert_eq!(found, Some(("vg-fast_cvol".to_owned(), Some(8 << 30))));
        let bcache = |keeps_writes| Layer { keeps_writes, ..layer("bcache0") };
        assert_eq!(of(vec![bcache(true)]), Some(("bcache0".to_owned(), None)));
        assert_eq!(of(vec![bcache(false)]), None, "it writes through");
    }
}
