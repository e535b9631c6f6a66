//! Needs that a machine or a container does not meet, as an option of `docker run` that meets them.

use crate::quality::{IDLE_NOT_HELD, MEMORY_NOT_LOCKED, POLICY_REFUSED, Quality, QualityLevel, Reason};

/// Permission, mount or device that some rows require.
#[derive(Debug, PartialEq, Eq)]
pub struct ContainerRequirement {
    /// Options of `docker run` that give it.
    pub option: &'static str,
    /// Ids of the reasons that it is missing.
    reasons: &'static [&'static str],
    /// Part of the remedy of other reasons that it is missing.
    remedy: &'static str,
}

const fn need(
    option: &'static str,
    reasons: &'static [&'static str],
    remedy: &'static str,
) -> ContainerRequirement {
    ContainerRequirement { option, reasons, remedy }
}

/// The begin of remedies of what is in use by others, and changes by itself.
const WAIT: &str = "wait until";

/// Returns true if a point could not be measured because another process has the device, the tracer or the lock.
pub fn is_in_use(quality: &Quality) -> bool {
    let waits = |reason: &Reason| reason.remedy.as_ref().is_some_and(|remedy| remedy.starts_with(WAIT));
    quality.reasons.iter().any(|reason| reason.level == QualityLevel::Unsupported && waits(reason))
}

/// Every need. The remedies that latscope gives contain its part.
pub const NEEDS: [ContainerRequirement; 7] = [
    need("--cap-add SYS_NICE (without root: --ulimit rtprio=99)", &[POLICY_REFUSED], "rtprio=99"),
    need("--ulimit memlock=-1", &[MEMORY_NOT_LOCKED], "memlock=-1"),
    need("--user 0 --device /dev/cpu_dma_latency", &[IDLE_NOT_HELD], "--device /dev/cpu_dma_latency"),
    need("--user 0 --privileged -v /sys/kernel/tracing:/sys/kernel/tracing", &[], "-v /sys/kernel/tracing"),
    need("--security-opt seccomp=unconfined", &[], "seccomp"),
    need("--tmpfs /tmp:exec", &[], "--tmpfs /tmp:exec"),
    need("-v DIR:/data, --dir /data, where DIR is on a disk", &[], "on a disk (--dir)"),
];

/// The need of rows of files that a directory in memory cannot have.
pub const DISK: &ContainerRequirement = &NEEDS[NEEDS.len() - 1];

impl ContainerRequirement {
    fn is_lacking_by(&self, reason: &Reason) -> bool {
        let remedy = reason.remedy.as_deref().unwrap_or_default();
        self.reasons.contains(&reason.id.as_str()) || remedy.contains(self.remedy)
    }

    /// Returns what a row lacks, in the order of [`NEEDS`].
    pub fn for_quality(quality: &Quality) -> Vec<&'static ContainerRequirement> {
        let reasons = || quality.reasons.iter().filter(|reason| reason.level >= QualityLevel::Degraded);
        NEEDS.iter().filter(|need| reasons().any(|reason| need.is_lacking_by(reason))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_use_is_no_lack_of_the_machine() {
        let refused = |remedy: &str| {
            let mut quality = Quality::default();
            quality.add_reason(Reason::new(
                QualityLevel::Unsupported,
                "not-possible-here",
                "refused",
                remedy,
            ));
            quality
        };
        let busy = refused("wait until its present user is done, or end it");
        assert!(is_in_use(&busy) && ContainerRequirement::for_quality(&busy).is_empty());
        assert!(!is_in_use(&refused("use a kernel with binder")) && !is_in_use(&Quality::default()));
    }

    #[test]
    fn a_row_lacks_what_its_reasons_say() {
        let mut quality = Quality::default();
        assert!(ContainerRequirement::for_quality(&quality).is_empty());
        quality.add_reason(Reason::new(
            QualityLevel::Degraded,
            "waited-for-a-cpu",
            "busy",
            "measure on a quieter machine",
        ));
        assert!(ContainerRequirement::for_quality(&quality).is_empty(), "that changes by itself");
        quality.add_reason(Reason::new(
            QualityLevel::Degraded,
            MEMORY_NOT_LOCKED,
            "memory is not locked",
            "",
        ));
        let remedy = "allow the system call (in a container --security-opt seccomp=FILE)";
        quality.add_reason(Reason::new(
            QualityLevel::Unsupported,
            "not-possible-here",
            "mbind: EPERM",
            remedy,
        ));
        let options: Vec<&str> =
            ContainerRequirement::for_quality(&quality).iter().map(|need| need.option).collect();
        assert_eq!(options, ["--ulimit memlock=-1", "--security-opt seccomp=unconfined"]);
    }
}
