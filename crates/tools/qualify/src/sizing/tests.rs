use super::*;

fn need(bits_per_s: u64, mix: &str, pool_bytes: u64) -> Need {
    let mix = Mix::named(mix).unwrap();
    Need { bits_per_s, mean_bits_per_s: bits_per_s / 10, days: 0, mix, pool_bytes }
}

fn propose_one(need: &Need, name: &str, parity: u8, members: Option<u32>) -> Proposal {
    let found = proposals(need, &[typical(name).unwrap()], &[parity], members);
    found.into_iter().next().unwrap()
}

#[track_caller]
fn is_between(bytes_per_s: u64, low: u64, high: u64) {
    assert!((low * 1_000_000..high * 1_000_000).contains(&bytes_per_s), "{bytes_per_s}");
}

/// Rates that `zone_levelling.py` computes of the published profiles.
#[test]
fn the_published_arrays_guarantee_what_was_computed_of_them() {
    // RAID 0 of two, and 350 MB/s of traffic: it lost packets, and carries them in levelled order.
    let raid0 = propose_one(&need(2_700_000_000, "640", 2 << 30), "hdd-8tb", 0, Some(2));
    is_between(raid0.bytes_per_s, 384, 412);
    assert!(raid0.fits && raid0.traffic_bit_per_s_lost == [None, None]);
    // RAID 6 of 8 x 8 TB: near 10 Gigabit Ethernet, and not there.
    let eight = propose_one(&need(10_000_000_000, "640", 4 << 30), "hdd-8tb", 2, Some(8));
    is_between(eight.bytes_per_s, 1170, 1230);
    assert!(!eight.is_fast_enough && eight.margin_permille < 0);
    // RAID 6 of 10 x 4 TB: the link at line rate from a mean frame of about 600 bytes up.
    let fits = |mix: &str| {
        propose_one(&need(10_000_000_000, mix, 4 << 30), "hdd-4tb", 2, Some(10)).is_fast_enough
    };
    is_between(
        propose_one(&need(1, "640", 4 << 30), "hdd-4tb", 2, Some(10)).bytes_per_s,
        1270,
        1310,
    );
    assert_eq!([fits("short"), fits("300"), fits("640"), fits("long")], [false, false, true, true]);
}

#[test]
fn the_fewest_disks_that_fit_are_proposed() {
    let ten_gigabit = need(10_000_000_000, "640", 4 << 30);
    for parity in 0..=2 {
        let found = propose_one(&ten_gigabit, "hdd-8tb", parity, None);
        assert_eq!((found.data, found.parity, found.fits), (7, parity, true), "{found:?}");
        let fewer = propose_one(
            &ten_gigabit,
            "hdd-8tb",
            parity,
            Some(found.data + u32::from(found.parity) - 1),
        );
        assert!(!fewer.fits);
        let lost = found.traffic_bit_per_s_lost.map(|rate| rate.is_some());
        assert_eq!(lost, [parity >= 1, parity >= 2]);
    }
}

#[test]
fn days_need_disks_as_well() {
    let thirty = Need { days: 30, ..need(10_000_000_000, "640", 4 << 30) };
    // A tenth of 1.28 GB/s for 30 days are 332 TB: more than 22 data disks of 8 TB.
    let found = propose_one(&thirty, "hdd-8tb", 2, None);
    assert_eq!((found.data, found.parity), (22, 2));
    assert_eq!((found.is_fast_enough, found.is_large_enough), (true, false));
    let days = found.held_ns / DAY_NS;
    assert_eq!(days, 15, "22 x 7.96 TB at 128 MB/s");
    let found = propose_one(&Need { days: 10, ..thirty }, "hdd-8tb", 2, None);
    assert_eq!((found.data, found.fits), (14, true), "111 TB of packets in 7.96 TB each");
}

#[test]
fn what_does_not_fit_says_how_many_disks_would() {
    let ten_gigabit = need(10_000_000_000, "640", 4 << 30);
    let found = propose_one(&ten_gigabit, "hdd-8tb", 2, Some(8));
    let enough = Enough { volumes: 1, data: 7, parity: 2, disks: 9 };
    assert_eq!(found.enough, Some(enough));
    assert_eq!(propose_one(&ten_gigabit, "hdd-8tb", 2, Some(9)).enough, None, "it fits");
    // 332 TB of packets in 7.96 TB each are 42 disks of data: two volumes of 21.
    let thirty = Need { days: 30, ..ten_gigabit };
    let found = propose_one(&thirty, "hdd-8tb", 2, None);
    let enough = found.enough.unwrap();
    assert_eq!((enough.volumes, enough.data, enough.disks), (2, 21, 46));
    let each = Need {
        bits_per_s: thirty.bits_per_s / 2,
        mean_bits_per_s: thirty.mean_bits_per_s / 2,
        pool_bytes: thirty.pool_bytes / 2,
        ..thirty.clone()
    };
    assert!(propose_one(&each, "hdd-8tb", 2, Some(23)).fits, "each volume with its half");
    let never = Need { days: 36_500, ..thirty };
    assert_eq!(propose_one(&never, "hdd-8tb", 2, None).enough, None);
}

#[test]
fn a_rebuild_takes_what_recording_leaves() {
    let of_mean = |mean_bits_per_s: u64| {
        let need = Need { mean_bits_per_s, ..need(5_000_000_000, "640", 4 << 30) };
        propose_one(&need, "hdd-8tb", 2, Some(8)).rebuild_ns.unwrap() / 3_600_000_000_000
    };
    // 8 TB in batches of 8 MiB: 41 ms of transfer and two jumps of 15 ms each, 19 h in all.
    assert!((18..21).contains(&of_mean(1)), "{}", of_mean(1));
    assert!((36..40).contains(&of_mean(4_750_000_000)), "{}", of_mean(4_750_000_000));
    assert_eq!(propose_one(&need(1, "640", 4 << 30), "hdd-8tb", 0, Some(2)).rebuild_ns, None);
}

#[test]
fn between_two_pools_a_curve_is_straight() {
    let point = |pool_bytes, bytes_per_s| CurvePoint { pool_bytes, bytes_per_s };
    let curve = [point(100, 50), point(200, 70)];
    let at = |pool| on_curve(&curve, pool);
    assert_eq!([at(0), at(50), at(100), at(150), at(200), at(999)], [0, 25, 50, 60, 70, 70]);
}
