// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/identity"
)

// Of two replicas on a real API server one works, and after its orderly end the other one, with a greater epoch.
func TestLeadIsOneAfterTheOther(t *testing.T) {
	config := shared.Env(t).Config()
	o := identity.LeadOptions{Namespace: "default", Name: "lead-test"}
	type term struct {
		replica string
		epoch   uint64
	}
	terms := make(chan term, 8)
	lead := func(replica string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- identity.Lead(ctx, config, o, func(ctx context.Context, e identity.Epoch) error {
				terms <- term{replica, e.Number}
				<-ctx.Done()
				return nil
			})
		}()
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("replica %s: Lead returned %v at the end of its context, want nil", replica, err)
			}
		}
	}
	next := func() term {
		select {
		case led := <-terms:
			return led
		case <-time.After(time.Minute):
			t.Fatal("nobody leads after a minute")
			return term{}
		}
	}
	stopA := lead("a")
	if led := next(); led.replica != "a" {
		t.Fatalf("%+v leads, want a, which is alone", led)
	}
	stopB := lead("b")
	select {
	case led := <-terms:
		t.Errorf("%+v leads beside a", led)
	case <-time.After(3 * time.Second):
	}
	stopA()
	if led := next(); led.replica != "b" || led.epoch < 2 {
		t.Errorf("%+v leads after a has ended, want b with a later epoch", led)
	}
	stopB()
}

// Missing options are one error that names all of them.
func TestLeadWithoutOptions(t *testing.T) {
	err := identity.Lead(t.Context(), nil, identity.LeadOptions{Liveness: time.Second}, nil)
	for _, want := range []string{"config", "LeadOptions.Namespace", "LeadOptions.Name", "LeadOptions.Liveness is 1s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Lead without options: %v, want an error that names %q", err, want)
		}
	}
	if _, err := identity.NewInformer(nil); err == nil || !strings.Contains(err.Error(), "leases is required") {
		t.Errorf("NewInformer(nil): %v, want an error at once", err)
	}
	elect := identity.Elect(&rest.Config{}, identity.LeadOptions{})
	if err := elect(t.Context(), nil); err == nil {
		t.Error("the election without a name has begun")
	}
}
