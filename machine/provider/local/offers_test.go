// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

// A version that the program can't run is refused before anything is touched: as no config for a new machine, and as no change of one that runs
// (R-MA-04, R-MA-06).
func TestOffers(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	offers := func(c *local.Config) {
		c.Offers = local.Offers{Kubelets: []string{"v1.35.4", "v1.36.3"}, Runtimes: map[string][]string{"containerd": {"1.7.24", "2.2.9"}, "cri-o": nil}}
	}
	r := request(1, config(t, offers))
	r.Desired.Versions = provider.Versions{Kubelet: "v1.36.3", Runtime: provider.Runtime{Name: "containerd", Version: "2.2.9"}}
	r.Digest = r.Desired.Digest()
	create(t, p, r)
	before := pidOf(t, root, r)
	for _, c := range []struct{ kubelet, name, version, says string }{
		{"v1.35.4", "containerd", "1.7.24", ""},
		{"", "", "", ""},
		{"v1.36.3", "cri-o", "1.36.0", ""},
		{"v1.36.3", "", "2.2.9", ""},
		{"v1.34.0", "containerd", "2.2.9", `the kubelet "v1.34.0" is none that the program can run: v1.35.4, v1.36.3`},
		{"v1.36.3", "containerd", "2.2.8", `the runtime "containerd 2.2.8" is none that the program can run: containerd 1.7.24, 2.2.9; cri-o`},
		{"v1.36.3", "docker", "", `the runtime "docker" is none that the program can run`},
	} {
		u := provider.UpdateRequest{Ref: provider.Ref{Token: r.Token}, Cluster: cluster, Desired: r.Desired}
		u.Desired.Versions = provider.Versions{Kubelet: c.kubelet, Runtime: provider.Runtime{Name: c.name, Version: c.version}}
		u.Digest = u.Desired.Digest()
		plan, err := p.Abilities().Planner.Plan(t.Context(), u)
		if err != nil || c.says == "" && plan.Method != provider.InPlace || c.says != "" && (plan.Method != provider.Unsupported || !strings.Contains(plan.Reason, c.says)) {
			t.Errorf("R-MA-04: plan of %+v: got %+v, %v, want a reason with %q", c, plan, err, c.says)
		}
		// No config is wrong by what it is asked for: that a machine can't be changed to it is for the plan to say.
		wantClass(t, "Validate", p.Abilities().Validator.Validate(t.Context(), u.Desired), "")
		if c.says == "" {
			continue
		}
		_, err = p.Abilities().Updater.Update(t.Context(), u)
		wantClass(t, "Update to what is not offered", err, provider.NotSupported)
		other := r
		other.Token, other.Desired, other.Digest = request(2, nil).Token, u.Desired, u.Digest
		_, err = p.Create(t.Context(), other)
		wantClass(t, "Create of what is not offered", err, provider.InvalidConfig)
	}
	if after := pidOf(t, root, r); after != before || len(census(t, root)) != 1 {
		t.Errorf("R-MA-04: refused changes have touched the machine: process %d was %d, %d machines", after, before, len(census(t, root)))
	}
}
