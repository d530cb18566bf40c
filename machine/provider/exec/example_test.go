// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package exec_test

import (
	"context"
	"fmt"
	"os"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/exec"
)

// A provider of a few lines of shell, which has one machine and is always out of others.
func Example() {
	const program = `case "$1" in
abilities) echo '{"protocol":1,"abilities":["create","delete","get"]}';;
get)       echo '{"instance":{"token":"c1-web-1","providerID":"acme:///c1-web-1","state":"Running"}}';;
create)    echo '{"error":{"class":"Stockout","message":"no more hosts","afterSeconds":60}}';;
delete)    echo '{"progress":{"done":false,"message":"is shutting down","afterSeconds":5}}';;
esac`
	ctx := context.Background()
	p, err := exec.New(ctx, exec.Options{Path: "/bin/sh", Args: []string{"-c", program, "acme"}, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	i, err := p.Get(ctx, provider.Ref{Token: "c1-web-1"})
	fmt.Println(i.ProviderID, i.State, err)
	_, err = p.Create(ctx, provider.CreateRequest{Token: "c1-web-2"})
	fmt.Println(err, provider.AfterOf(err))
	progress, err := p.Delete(ctx, provider.DeleteRequest{Ref: i.Ref(), Cluster: "c1", Mode: provider.Destroy})
	fmt.Println(progress.Done, progress.Message, err)
	_, err = p.List(ctx, provider.Scope{Cluster: "c1"})
	fmt.Println(provider.ClassOf(err))
	// Output:
	// acme:///c1-web-1 Running <nil>
	// Stockout: create "c1-web-2": no more hosts 1m0s
	// false is shutting down <nil>
	// NotSupported
}
