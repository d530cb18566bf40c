// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// Offers are the versions that the program of a machine can run. What is left out is not looked at: then the program alone knows.
type Offers struct {
	// Kubelets are versions, as "v1.36.3".
	Kubelets []string `json:"kubelets,omitempty"`
	// Runtimes are the versions of each container runtime by its name, as {"containerd": ["2.2.9"]}. No versions are any.
	Runtimes map[string][]string `json:"runtimes,omitempty"`
}

// lacks says what of the versions is not offered; "" if nothing is. A version that is not asked for is the program's choice.
func (o Offers) lacks(v provider.Versions) string {
	if len(o.Kubelets) > 0 && v.Kubelet != "" && !slices.Contains(o.Kubelets, v.Kubelet) {
		return fmt.Sprintf("the kubelet %q is none that the program can run: %s", v.Kubelet, strings.Join(o.Kubelets, ", "))
	}
	if len(o.Runtimes) == 0 || v.Runtime == (provider.Runtime{}) {
		return ""
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(o.Runtimes)) {
		versions := o.Runtimes[name]
		right := v.Runtime.Version == "" || len(versions) == 0 || slices.Contains(versions, v.Runtime.Version)
		if right && (v.Runtime.Name == name || v.Runtime.Name == "") {
			return ""
		}
		all = append(all, strings.TrimSpace(name+" "+strings.Join(versions, ", ")))
	}
	return fmt.Sprintf("the runtime %q is none that the program can run: %s", strings.TrimSpace(v.Runtime.Name+" "+v.Runtime.Version), strings.Join(all, "; "))
}

// check returns an error that names the first field that can't be.
func (o Offers) check() error {
	for i, version := range o.Kubelets {
		if version == "" {
			return fmt.Errorf("offers.kubelets[%d]: it is empty: want a version, as \"v1.36.3\"", i)
		}
	}
	for name, versions := range o.Runtimes {
		if name == "" {
			return fmt.Errorf("offers.runtimes: a name is empty: want that of a runtime, as \"containerd\"")
		}
		if i := slices.Index(versions, ""); i >= 0 {
			return fmt.Errorf("offers.runtimes[%q][%d]: it is empty: want a version, as \"2.2.9\"", name, i)
		}
	}
	return nil
}
