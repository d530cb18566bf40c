// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

// The short form of the conformance suite: what it would say first of a provider that is broken.
func TestPromises(t *testing.T) {
	root := newRoot(t)
	p := open(t, local.Options{Root: root})
	c := config(t, shell("echo start >>data/data/boots; echo on; exec sleep 1000000"))
	r := request(1, c)
	died := run(t, order{Root: root, Call: &machinetest.Call{Create: &r}, Point: 1}) // the intent is there: others see that it is pending
	if i := get(t, p, r); !died || i.Token != r.Token || i.Owner != r.Owner {
		t.Errorf("after a crash: got %+v", i)
	}
	create(t, p, r)
	ref := provider.Ref{Token: r.Token}
	for _, want := range []int{2, 2} {
		finish(t, func() (provider.Progress, error) { return p.Abilities().Power.Reboot(t.Context(), ref, "b1") })
		if got, err := bootsOf(root, r.Token); err != nil || got != want {
			t.Errorf("after Reboot: got %d boots, %v, want %d", got, err, want)
		}
	}
	u := provider.UpdateRequest{Ref: ref, Cluster: cluster, Desired: provider.Desired{Config: config(t, shell("exec sleep 2000000"))}}
	u.Digest = u.Desired.Digest()
	_, err := p.Abilities().Updater.Update(t.Context(), u)
	wantClass(t, "Update with another command", err, provider.NotSupported)
	next := request(2, c)
	_, err = p.Abilities().Adopter.Adopt(t.Context(), provider.AdoptRequest{From: ref, As: next})
	wantClass(t, "Adopt of what is alive", err, provider.NotSupported)

	foreign := deletion(r, provider.Destroy)
	foreign.Cluster = "c2"
	_, err = p.Delete(t.Context(), foreign)
	wantClass(t, "Delete by another cluster", err, provider.NotFound)
	wantProcesses(t, root, r, 1)
	remove(t, p, r, "")
	if data, err := os.ReadFile(filepath.Join(dirOf(root, r), "data/data/boots")); err != nil || len(data) == 0 {
		t.Errorf("after Delete without a mode: got %q, %v", data, err)
	}

	away := root + " elsewhere"
	if err := os.Rename(root, away); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{r.Token, next.Token} {
		_, err = p.Get(t.Context(), provider.Ref{Token: token})
		wantClass(t, "Get while the directory is not there", err, provider.Unavailable)
	}
	if err := os.Rename(away, root); err != nil {
		t.Fatal(err)
	}
	remove(t, p, r, provider.Destroy)
	_, err = p.Create(t.Context(), r)
	wantClass(t, "Create with a token that is used up", err, provider.Conflict)
}
