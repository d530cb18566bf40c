// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/ssh"
)

// A machine on a host of a pool. What stands in for ssh here runs the scripts on this machine.
func Example() {
	dir, err := os.MkdirTemp("", "pool")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	command := filepath.Join(dir, "ssh")
	if err := os.WriteFile(command, []byte("#!/bin/sh\nexec sh -s\n"), 0o755); err != nil {
		fmt.Println(err)
		return
	}
	p, err := ssh.New(ssh.Options{
		Hosts:   []ssh.Host{{Name: "rack1-07", Address: "10.0.0.7", User: "root", Labels: map[string]string{"zone": "rack1"}, Directory: filepath.Join(dir, "host")}},
		Command: command,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	d := provider.Desired{Config: []byte(`{
		"apiVersion": "ssh.belay.dev/v1", "kind": "SSHConfig",
		"selector": {"zone": "rack1"},
		"bootstrap": "date > $BELAY_DATA/since",
		"stop": "true"
	}`)}
	o := provider.Owner{Cluster: "prod", Name: "worker-1", UID: "6ba7b810", Incarnation: 1}
	r := provider.CreateRequest{Token: provider.Token(o.Cluster, o.UID, o.Incarnation), Owner: o, Digest: d.Digest(), Desired: d}
	show := func() {
		hosts, err := p.Hosts(ctx)
		fmt.Println(hosts[0].Name, hosts[0].State, err)
	}
	show()
	i, err := p.Create(ctx, r)
	for err == nil && i.State == provider.Pending {
		<-time.After(10 * time.Millisecond)
		i, err = p.Get(ctx, i.Ref())
	}
	fmt.Println(i.State, i.ProviderID, err)
	for _, mode := range []provider.Mode{provider.Retain, provider.Destroy} {
		var done provider.Progress
		for err == nil && !done.Done {
			done, err = p.Delete(ctx, provider.DeleteRequest{Ref: i.Ref(), Mode: mode, Cluster: o.Cluster})
		}
		show()
	}
	// Output:
	// rack1-07 Free <nil>
	// Running ssh:///rack1-07/6754af96-edf428dfa71079cf-1 <nil>
	// rack1-07 Retained <nil>
	// rack1-07 Free <nil>
}
