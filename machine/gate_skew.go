// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// maxMinors is how many minor versions a kubelet may be behind its control plane.
const maxMinors = 3

// Skew says why a kubelet of this version can't run beside a control plane of that one, or returns nothing if it can. A kubelet is of the same major
// version, not of a newer minor one, and at most three minor ones older; patches don't matter. A version that is not given is not compared: the provider
// chooses then, or there is no control plane yet.
func Skew(controlPlane, kubelet string) string {
	if controlPlane == "" || kubelet == "" {
		return ""
	}
	c, err := parseVersion(controlPlane)
	if err != nil {
		return "control plane: " + err.Error()
	}
	k, err := parseVersion(kubelet)
	if err != nil {
		return "kubelet: " + err.Error()
	}
	switch {
	case c.major != k.major:
		return fmt.Sprintf("kubelet %s and control plane %s are of different major versions", kubelet, controlPlane)
	case k.minor > c.minor:
		return fmt.Sprintf("kubelet %s is newer than the control plane, which has %s: bring that to v%d.%d first", kubelet, controlPlane, k.major, k.minor)
	case c.minor-k.minor > maxMinors:
		return fmt.Sprintf("kubelet %s is %d minor versions older than the control plane, which has %s: want at most %d",
			kubelet, c.minor-k.minor, controlPlane, maxMinors)
	}
	return ""
}

// A version is that of a kubelet or an API server.
type version struct{ major, minor, patch int }

// parseVersion reads vMAJOR.MINOR.PATCH, as Kubernetes versions are written, with what distributions append after - or +. It is strict: no other
// form is guessed at.
func parseVersion(s string) (v version, err error) {
	core, _, _ := strings.Cut(s, "+")
	core, _, _ = strings.Cut(core, "-")
	digits, ok := strings.CutPrefix(core, "v")
	parts := strings.Split(digits, ".")
	if !ok || len(parts) != 3 || strings.HasSuffix(s, "-") || strings.HasSuffix(s, "+") {
		return version{}, fmt.Errorf("version %.80q: want one like v1.36.3", s)
	}
	for i, to := range []*int{&v.major, &v.minor, &v.patch} {
		*to, err = strconv.Atoi(parts[i])
		if err != nil || strconv.Itoa(*to) != parts[i] || *to < 0 {
			return version{}, fmt.Errorf("version %.80q: %.20q is no number: want one like v1.36.3", s, parts[i])
		}
	}
	return v, nil
}
