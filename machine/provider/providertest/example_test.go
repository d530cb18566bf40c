// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

// A reply is lost, and the token makes one instance all the same.
func Example() {
	if err := lose(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Create: Unavailable
	// Create again: Running fake:///a/5fd924625f6ab16a-1
	// instances: 1, calls of Create: 2
}

func lose(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fake")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cloud, err := providertest.NewServer(providertest.ServerOptions{Dir: dir})
	if err != nil {
		return err
	}
	defer cloud.Close()
	web := httptest.NewServer(cloud)
	defer web.Close()
	p, err := providertest.New(providertest.Options{URL: web.URL})
	if err != nil {
		return err
	}
	admin, err := providertest.NewAdmin(providertest.Options{URL: web.URL})
	if err != nil {
		return err
	}

	if err := admin.Inject(ctx, providertest.Fault{Kind: providertest.LostReply, Method: "Create"}); err != nil {
		return err
	}
	desired := provider.Desired{Config: []byte(`{"apiVersion": "fake.belay.dev/v1", "kind": "FakeConfig"}`)}
	r := provider.CreateRequest{
		Token: "5fd924625f6ab16a-1", Owner: provider.Owner{Cluster: "c1", Name: "m1", UID: "1", Incarnation: 1}, Desired: desired, Digest: desired.Digest(),
	}
	_, err = p.Create(ctx, r)
	fmt.Println("Create:", provider.ClassOf(err))
	i, err := p.Create(ctx, r)
	if err != nil {
		return err
	}
	fmt.Println("Create again:", i.State, i.ProviderID)
	inventory, err := admin.Inventory(ctx)
	fmt.Printf("instances: %d, calls of Create: %d\n", inventory.Instances, inventory.Calls["Create"])
	return err
}
