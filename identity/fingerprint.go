// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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
func LocalFingerprint(root string) Fingerprint {
	f := Fingerprint{BootID: firstLine(root, "proc/sys/kernel/random/boot_id")}
	if f.BootID == "" { // /proc is often not part of what is mounted; there is one kernel, so that any /proc will do
		f.BootID = firstLine("/", "proc/sys/kernel/random/boot_id")
	}
	// systemd writes "uninitialized" while an image boots for the first time.
	if id := firstLine(root, "etc/machine-id"); id != "" && id != "uninitialized" {
		sum := sha256.Sum256([]byte("belay identity " + id))
		f.MachineID = hex.EncodeToString(sum[:16])
	}
	f.Host = firstLine(root, "etc/hostname")
	if root == "/" || f.Host == "" {
		if host, err := os.Hostname(); err == nil {
			f.Host = host
		}
	}
	return f
}

// firstLine reads the first line of a small file, "" if there is none.
func firstLine(root, name string) string {
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// SameBoot reports whether both are of the same boot of the same machine: equal, present boot IDs, and no other part but PodUID
// that is present in both and differs.
func (f Fingerprint) SameBoot(other Fingerprint) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return f.BootID != "" && f.BootID == other.BootID &&
		!differ(f.NodeUID, other.NodeUID) && !differ(f.MachineID, other.MachineID)
}

// describe is for error texts. A boot ID is shown in part: enough to tell two apart.
func (f Fingerprint) describe() string {
	if f == (Fingerprint{}) {
		return "an unknown host"
	}
	return fmt.Sprintf("host %q (boot %.8q, pod %q)", f.Host, f.BootID, f.PodUID)
}
