// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

// A machine is made, deleted with its disk kept, and that disk given to the next incarnation.
func Example() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "lab")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(root) }() // the machines are gone by then
	p, err := local.New(ctx, local.Options{Root: root, Zone: "lab"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = p.Close() }() // it returns nil

	want := provider.Desired{Config: []byte(`{
		"apiVersion": "local.belay.dev/v1", "kind": "LocalConfig",
		"command": ["sleep", "1000"], "disks": ["var"], "namespaces": "None"
	}`)}
	first := provider.CreateRequest{Token: "c1-web-1", Owner: provider.Owner{Cluster: "c1", Name: "web", UID: "u", Incarnation: 1}, Desired: want, Digest: want.Digest()}
	i, err := p.Create(ctx, first)
	fmt.Println(i.ProviderID, i.State, i.Disks, err)

	kept := deleteIt(ctx, p, provider.DeleteRequest{Ref: i.Ref(), Cluster: "c1", Mode: provider.Retain})
	fmt.Println("stopped:", kept.Stopped, "kept:", kept.Retained)

	second := first
	second.Token, second.Owner.Incarnation = "c1-web-2", 2
	i, err = p.Abilities().Adopter.Adopt(ctx, provider.AdoptRequest{From: i.Ref(), As: second})
	fmt.Println(i.ProviderID, i.State, i.Disks, err)
	deleteIt(ctx, p, provider.DeleteRequest{Ref: i.Ref(), Cluster: "c1", Mode: provider.Destroy})
	// Output:
	// local:///lab/c1-web-1 Running [{c1-web-1/var 0}] <nil>
	// stopped: true kept: [{c1-web-1/var 0}]
	// local:///lab/c1-web-2 Running [{c1-web-1/var 0}] <nil>
}

// deleteIt asks until it is done.
func deleteIt(ctx context.Context, p provider.Provider, r provider.DeleteRequest) provider.Progress {
	for {
		progress, err := p.Delete(ctx, r)
		if progress.Done || err != nil {
			return progress
		}
		<-time.After(100 * time.Millisecond)
	}
}
