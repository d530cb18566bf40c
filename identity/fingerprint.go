// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

// A Fingerprint tells two processes apart that have the same name. Each part may be missing, and none is enough alone: machine IDs
// are cloned with disk images, host names are given twice, and a boot ID does not outlive a boot.
type Fingerprint struct {
	// Host is the host name, for people. It does not take part in comparisons.
	Host string `json:"host,omitempty"`
	// NodeUID is the UID of the Node on which the process runs.
	NodeUID string `json:"nodeUID,omitempty"`
	// BootID is what the kernel made up at boot: /proc/sys/kernel/random/boot_id.
	BootID string `json:"bootID,omitempty"`
	// MachineID is a hash of /etc/machine-id, which itself is not for publication (machine-id(5)).
	MachineID string `json:"machineID,omitempty"`
	// PodUID is the UID of the pod in which the process runs.
	PodUID string `json:"podUID,omitempty"`
}

// LocalFingerprint reads the boot ID, the machine ID and the host name of this machine. What cannot be read is left out. root is the root
// directory of the host, "/" or where it is mounted in a container; in a container without it the machine ID is that of the image.
func LocalFingerprint(root string) Fingerprint

// SameBoot reports whether both are of the same boot of the same machine: equal, present boot IDs, and no other part but PodUID
// that is present in both and differs.
func (f Fingerprint) SameBoot(other Fingerprint) bool
