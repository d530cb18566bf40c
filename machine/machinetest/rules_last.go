// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"fmt"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

func manyRules() []rule {
	return []rule{
		promise("ListReturnsMany", "List returns each of many instances once", listMany, needList, needMany),
	}
}

// lastRules are about what was seen in all others.
func lastRules() []rule {
	return []rule{
		promise("SecretsStaySecret", "what is in Bootstrap and Credentials is in no error, no message and no instance", secretsStay),
		promise("NothingIsLeft", "when everything is deleted with Destroy, the backend holds what it held before", nothingLeft),
	}
}

func listMany(k *checker) {
	const atATime = 16
	want := k.h.Many
	if want == 0 {
		want = 1000
	}
	p := k.client()
	var all []provider.CreateRequest
	for range want {
		all = append(all, k.machineOf("many"))
	}
	k.none("Create", each(atATime, all, func(r provider.CreateRequest) error {
		_, err := k.done("Create", func() (provider.Progress, error) {
			_, err := k.create(p, r)
			return provider.Progress{Done: err == nil}, err
		})
		return err
	}))
	cluster := k.cluster("many")
	var listed []provider.Instance
	if !k.poll(func() bool { listed = k.mustList(p, cluster); return len(listed) >= want }) {
		k.failf("List: got %d instances, want %d", len(listed), want)
	}
	once := map[string]bool{}
	for _, i := range listed {
		if once[i.Token] {
			k.failf("List: got instance %q twice", i.Token)
		}
		once[i.Token] = true
	}
	for _, r := range all {
		if !once[r.Token] {
			k.failf("List: got %d instances without %q", len(listed), r.Token)
		}
	}
	k.wantInstances(want, "after Create of many")
	k.none("Delete", each(atATime, all, func(r provider.CreateRequest) error {
		_, err := k.deleted(p, k.deletion(r, provider.Ref{Token: r.Token}, provider.Destroy))
		return err
	}))
	k.wantCount(Inventory{}, "after Delete of many")
}

func (k *checker) none(call string, errs []error) {
	if len(errs) > 0 {
		k.failf("%s failed %d times, as with: %v", call, len(errs), errs[0])
	}
}

// secretsStay provokes errors that may hold what was sent, and looks at what all other rules have seen.
func secretsStay(k *checker) {
	p, r := k.client(), k.machine()
	i := k.running(p, r)
	bad := k.with(k.machine(), k.undecodable())
	_, _ = k.create(p, bad)
	bad.Token = "NO TOKEN"
	_, _ = k.create(p, bad)
	_, _ = k.create(p, k.with(r, k.undecodable()))
	foreign := k.deletion(r, i.Ref(), provider.Destroy)
	foreign.Cluster = k.cluster("b")
	_, _ = k.delete(p, foreign)
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	_, _ = k.createIn(ctx, p, k.machine())
	if k.has(needUpdater) {
		_, _ = k.update(k.updating(r, i, bad.Desired))
	}
	if k.has(needAdopter) {
		_, _ = k.adopt(provider.AdoptRequest{From: provider.Ref{Token: bad.Token}, As: k.machine()})
	}
	if k.has(needList) {
		_, _ = k.list(p, r.Owner.Cluster)
	}
	if k.has(needConsole) {
		out, err := k.can.Console.Console(k.ctx, i.Ref(), 1<<20)
		k.see("Console", string(out), err)
	}
	if len(k.leaks) > 0 {
		k.failf("%s", some(k.leaks))
	}
}

func nothingLeft(k *checker) {
	if len(k.left) > 0 {
		k.failf("%s", some(k.left))
	}
}

// some returns the first of many.
func some(all []string) string {
	const enough = 5
	text := strings.Join(all[:min(len(all), enough)], "; ")
	if len(all) > enough {
		text += fmt.Sprintf("; and %d more", len(all)-enough)
	}
	return text
}
