// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// quota refuses machines beyond a number, as an admission does, and keeps how many were asked for at once.
type quota struct {
	*groups
	left  int
	asked []int
}

var errQuota = errors.New("exceeded quota")

func (q *quota) CreateMachines(ctx context.Context, machines []machine.Machine) []error {
	q.asked = append(q.asked, len(machines))
	n := min(q.left, len(machines))
	q.left -= n
	errs := q.groups.CreateMachines(ctx, machines[:n])
	for range machines[n:] {
		errs = append(errs, errQuota)
	}
	return errs
}

// R-MA-30: a set asks for its machines in crowds that grow, up to a bound; those that are refused end it, so that a quota costs few calls a pass, and nothing is made twice.
func TestSetsAskInCrowds(t *testing.T) {
	for _, c := range []struct {
		name        string
		quota, made int
		asked       []int
	}{
		{"all may be made", 100, 60, []int{1, 2, 4, 8, 16, 16, 13}},
		{"a quota is in the way", 5, 5, []int{1, 2, 4}},
		{"none may be made", 0, 0, []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				g := grouped(w)
				q := &quota{groups: g, left: c.quota}
				s := machine.Set{Key: machine.Key{Namespace: "fleet", Name: "crowd"}, UID: "uid-crowd", Generation: 1, Created: time.Now()}
				s.Spec = machine.SetSpec{Replicas: 60, Selector: map[string]string{"pool": "a"}, Template: template("s")}
				g.put(s)
				ctl, err := controller.NewGroups(controller.GroupOptions{Cluster: clusterID, Groups: q, Doctor: g, Provider: w.options.Provider})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := ctl.Reconcile(t.Context(), "fleet"); errors.Is(err, errQuota) != (c.made < 60) {
					t.Errorf("R-MA-30: a quota of %d: got error %v", c.quota, err)
				}
				if made := len(w.keys()); made != c.made || !slices.Equal(q.asked, c.asked) {
					t.Errorf("R-MA-30: a quota of %d: %d machines were made in crowds of %v, want %d in %v", c.quota, made, q.asked, c.made, c.asked)
				}
			})
		})
	}
}

// R-MA-02: a status that was decided on an old version is not stored; the machine is read past the cache, and decided on again at once, also while the cache stands still.
func TestAnOldCacheCostsOneRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		store := &lives{Store: w.store}
		w.options.Machines = store
		w.start()
		m := worker("a")
		m.Finalizer = true // as a set makes it
		m = w.store.Put(m)
		w.freeze()
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Labels = map[string]string{"changed": "meanwhile"} })
		w.pass(m.Key)
		if at := w.live(m.Key); at.Token == "" || at.Labels["changed"] == "" || store.n != 1 || w.cloud.Calls()["Create"] != 1 {
			t.Errorf("R-MA-02: after a pass with an old cache the machine has token %q and labels %v, after %d reads past it and %d calls for an instance; want a token and one of each",
				at.Token, at.Labels, store.n, w.cloud.Calls()["Create"])
		}
	})
}
