//! A volume as the target: its members as they are now, beside what the volume keeps of an earlier
//! qualification.

use std::path::PathBuf;

use format::superblock::{Qualified, QualifiedBy};

use crate::judged::{Answer, Lost, Verdict};
use crate::plan::{Array, Ask};
use crate::report::Qualification;

/// Reading is hardly slower than writing was: below this part of it, in percent, a member has
/// become slower.
const SLOWER_PERCENT: u64 = 90;

/// A volume whose members were looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeQualification {
    /// The member that was named.
    pub path: PathBuf,
    /// Columns with packets: members that share what arrives.
    pub data_columns: u8,
    /// Columns of parity: as many members may be lost.
    pub parity_columns: u8,
    /// What the volume keeps.
    pub kept: Option<Qualified>,
    /// Members by number, read only.
    pub members: Vec<(units::MemberId, Qualification)>,
    /// Members that are not there.
    pub absent: Vec<units::MemberId>,
}

/// A member beside what the volume keeps of it. Rates in bytes a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beside {
    /// Read over all of its surface.
    pub mean_bytes_per_s: u64,
    /// In its slowest place.
    pub minimum_bytes_per_s: u64,
    /// Its mean over the one that the volume keeps, in thousandths.
    pub permille: Option<u64>,
    /// It reads more slowly than was guaranteed for writing.
    pub is_slower: bool,
}

/// What reading says of a member; `None` where no part found a rate.
pub fn beside(found: &Qualification, kept: Option<&Qualified>) -> Option<Beside> {
    let judged = found.verdict.as_ref()?.judged.first()?;
    let mean = judged.mean_bytes_per_s;
    let permille = kept.map(|kept| {
        let ratio = u128::from(mean) * 1000 / u128::from(kept.mean_bytes_per_s.max(1));
        u64::try_from(ratio).unwrap_or(u64::MAX)
    });
    // One that was only read is compared with its mean, one that was written with its guarantee.
    let least = kept.map_or(0, |kept| match kept.by {
        QualifiedBy::Reading => kept.mean_bytes_per_s,
        QualifiedBy::Writing | QualifiedBy::Places => kept.guaranteed_bytes_per_s,
    });
    Some(Beside {
        mean_bytes_per_s: mean,
        minimum_bytes_per_s: judged.minimum_bytes_per_s,
        permille,
        is_slower: u128::from(mean) * 100 < u128::from(least) * u128::from(SLOWER_PERCENT),
    })
}

impl Ask {
    /// What one member of a volume is asked, of which each has a share of the traffic and of the
    /// pool, and `parity_columns` may be lost.
    #[must_use]
    pub fn of_member(&self, data_columns: u8, parity_columns: u8) -> Self {
        let columns = u64::from(data_columns.max(1));
        Self {
            pool_bytes: self.pool_bytes / columns,
            mix: self.mix.clone(),
            bits_per_s: self.bits_per_s.map(|bits| bits.div_ceil(columns)),
            array: Some(Array { data_disks: 1, parity_disks: parity_columns }),
        }
    }
}

/// What a volume comes to: the slowest of its members, as often as it has columns with packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Together {
    /// The highest constant arrival that never overflows the pool, if it writes as it reads.
    pub guaranteed_bytes_per_s: u64,
    /// The same as bits a second on the link.
    pub guaranteed_traffic_bit_per_s: u64,
    /// With one and two members lost and replaced, likewise.
    pub lost: Vec<Lost>,
}

impl VolumeQualification {
    /// What all members come to; `None` where a rate of one is not known.
    pub fn together(&self) -> Option<Together> {
        let columns = u64::from(self.data_columns);
        let verdicts: Option<Vec<&Verdict>> =
            self.members.iter().map(|(_, found)| found.verdict.as_ref()).collect();
        let verdicts = verdicts.filter(|verdicts| !verdicts.is_empty())?;
        let least = |of: &dyn Fn(&Verdict) -> Option<u64>| {
            let of_each: Option<Vec<u64>> = verdicts.iter().map(|verdict| of(verdict)).collect();
            of_each.and_then(|rates| rates.into_iter().min()).map(|rate| rate * columns)
        };
        let guaranteed =
            least(&|verdict| verdict.judged.first().map(|judged| judged.guaranteed_bytes_per_s))?;
        let of = |verdict: &Verdict, members: u8| {
            verdict.lost.iter().find(|lost| lost.members == members).copied()
        };
        let lost = |members: u8| Lost {
            members,
            guaranteed_bytes_per_s: least(&|verdict| of(verdict, members)?.guaranteed_bytes_per_s),
            rebuild_ns: verdicts.iter().filter_map(|it| of(it, members)?.rebuild_ns).max(),
        };
        let mix = &verdicts.first()?.mix;
        Some(Together {
            guaranteed_bytes_per_s: guaranteed,
            guaranteed_traffic_bit_per_s: mix.bits_of(guaranteed),
            lost: [1, 2].map(lost).to_vec(),
        })
    }

    /// Too slow where a member is, or where a rate was asked for that it cannot read. Reading
    /// alone never says that a rate fits.
    pub fn answer(&self) -> Answer {
        let slower = self.members.iter().any(|(_, found)| {
            // A limit of a control group is no fault of the disk.
            !found.is_limited()
                && beside(found, self.kept.as_ref()).is_some_and(|beside| beside.is_slower)
        });
        let answers = self.members.iter().map(|(_, found)| match found.answer() {
            Answer::Fits if found.is_limited() => Answer::CannotJudge,
            answer => answer,
        });
        match answers.max_by_key(|answer| match answer {
            Answer::Fits => 0,
            Answer::CannotJudge => 1,
            Answer::TooSlow => 2,
        }) {
            _ if slower => Answer::TooSlow,
            Some(answer) => answer,
            None => Answer::CannotJudge,
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Timestamp;

    use units::MemberId;

    use super::*;
    use crate::judged::Doubt;
    use crate::judged::{Judged, Order, Verdict};
    use crate::limits::{GroupLimit, LimitOf};
    use crate::plan::Part;
    use crate::report::{Target, TargetKind};
    use crate::traffic::Mix;

    fn read_at(mean_bytes_per_s: u64) -> Qualification {
        let judged = Judged {
            basis: Part::Sweep,
            order: Order::FirstToLast,
            is_computed: true,
            is_by_reading: true,
            pool_bytes: 1,
            guaranteed_bytes_per_s: mean_bytes_per_s / 2,
            mean_bytes_per_s,
            minimum_bytes_per_s: mean_bytes_per_s / 2,
            slow_ns: None,
            fast_ns: None,
            jump: None,
        };
        let mix = Mix::named("640").unwrap();
        let verdict = Verdict {
            judged: vec![judged],
            pool_bytes: 1,
            mix,
            guaranteed_traffic_bit_per_s: 1,
            with_readers: None,
            asked: None,
            shares: Vec::new(),
            lost: Vec::new(),
            doubts: Vec::new(),
        };
        let target = Target {
            kind: TargetKind::File,
            path: String::new(),
            size_bytes: 1,
            layers: vec![],
            is_in_memory: false,
            limits: Vec::new(),
        };
        Qualification {
            target,
            started: Timestamp(0),
            ns: 1,
            parts: Vec::new(),
            verdict: Some(verdict),
            written: Vec::new(),
            written_bytes: None,
            meanwhile: None,
            is_interrupted: false,
            unfinished: None,
            notes: Vec::new(),
        }
    }

    fn kept(by: QualifiedBy) -> Qualified {
        Qualified {
            by,
            at: Timestamp(0),
            guaranteed_bytes_per_s: 150,
            mean_bytes_per_s: 200,
            pool_bytes: 1,
            longest_write_ns: 0,
            report: [0; 16],
        }
    }

    #[test]
    fn a_member_that_reads_more_slowly_than_was_guaranteed_has_become_slower() {
        let is_slower = |rate, by| beside(&read_at(rate), Some(&kept(by))).unwrap().is_slower;
        assert!(is_slower(134, QualifiedBy::Writing) && !is_slower(135, QualifiedBy::Writing));
        assert!(is_slower(179, QualifiedBy::Reading) && !is_slower(180, QualifiedBy::Reading));
        let found = beside(&read_at(150), Some(&kept(QualifiedBy::Places))).unwrap();
        assert_eq!((found.permille, found.is_slower), (Some(750), false));
        assert!(!beside(&read_at(1), None).unwrap().is_slower);
    }

    #[test]
    fn a_volume_is_its_slowest_member_as_often_as_it_has_columns() {
        let lost = |members, rate| Lost {
            members,
            guaranteed_bytes_per_s: rate,
            rebuild_ns: Some(u64::from(members)),
        };
        let member = |rate| {
            let mut found = read_at(rate);
            found.verdict.as_mut().unwrap().lost = vec![lost(1, Some(rate / 4)), lost(2, None)];
            found
        };
        let rates = [400, 200, 300];
        let members = MemberId::all().zip(rates.map(member)).collect();
        let mut volume = VolumeQualification {
            path: PathBuf::new(),
            data_columns: 2,
            parity_columns: 1,
            kept: None,
            members,
            absent: Vec::new(),
        };
        let together = volume.together().unwrap();
        assert_eq!(together.guaranteed_bytes_per_s, 200);
        assert_eq!(together.lost, [lost(1, Some(100)), lost(2, None)]);
        volume.members[0].1.verdict = None;
        assert_eq!(volume.together(), None);

        let mix = Mix::named("640").unwrap();
        let ask = Ask { pool_bytes: 4 << 30, mix, bits_per_s: Some(9), array: None };
        let of_member = ask.of_member(4, 2);
        assert_eq!((of_member.pool_bytes, of_member.bits_per_s), (1 << 30, Some(3)));
        assert_eq!(of_member.array, Some(Array { data_disks: 1, parity_disks: 2 }));
    }

    #[test]
    fn one_slow_member_makes_the_volume_slow() {
        let volume = |rates: &[u64]| VolumeQualification {
            path: PathBuf::new(),
            data_columns: 1,
            parity_columns: 0,
            kept: Some(kept(QualifiedBy::Writing)),
            members: MemberId::all().zip(rates.iter().map(|rate| read_at(*rate))).collect(),
            absent: Vec::new(),
        };
        assert_eq!(volume(&[200, 180]).answer(), Answer::Fits);
        // One that a control group holds back is not called slow.
        let mut limited = volume(&[200, 100]);
        let limit = GroupLimit {
            group: "/backup".to_owned(),
            file: String::new(),
            disk: "sda".to_owned(),
            is_write: false,
            of: LimitOf::Bytes,
            per_second: 100,
        };
        let verdict = limited.members[1].1.verdict.as_mut().unwrap();
        verdict.doubts = vec![Doubt::Limited { limit }];
        assert_eq!(limited.answer(), Answer::CannotJudge);
        assert_eq!(volume(&[200, 100]).answer(), Answer::TooSlow);
        assert_eq!(volume(&[]).answer(), Answer::CannotJudge);
    }
}
