// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/nodeauth"
)

var refused = denied(403, "ValidatingAdmissionPolicy 'guard' denied request: no")

// scripted is a probe that gets the answers one after the other, and the last one for ever.
func scripted(answers ...error) nodeauth.Probe {
	n := 0
	return nodeauth.Probe{Policy: "guard", Every: time.Hour, Try: func(context.Context) error {
		answer := answers[min(n, len(answers)-1)]
		n++
		return answer
	}}
}

// TestWorkWaitsForTheGuard covers R-AU-10: work begins once, after the first answer of the policy, and not where nothing is known.
func TestWorkWaitsForTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		start := time.Now()
		var began []time.Duration
		away := errors.New("away")
		err := scripted(away, away, away, refused, away, refused).Run(ctx, func(ctx context.Context) error {
			began = append(began, time.Since(start))
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("got %v, want nil: the work ended as it was told to", err)
		}
		if least := 7 * time.Second; len(began) != 1 || began[0] < least || began[0] > least+least/10 {
			t.Errorf("work began after %v, want once, after 1 + 2 + 4 s or a tenth more", began)
		}
		missing := scripted(nil).Run(t.Context(), func(context.Context) error {
			t.Error("work began without a guard")
			return nil
		})
		if !errors.Is(missing, nodeauth.ErrUnguarded) {
			t.Errorf("got %v, want %v", missing, nodeauth.ErrUnguarded)
		}
	})
}

// TestWorkEndsWithTheGuard covers R-AU-10: the context of work says why it ends, and Run waits for work and keeps its error.
func TestWorkEndsWithTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("cannot clean up")
		for _, row := range []struct{ says, more error }{{nil, nil}, {context.Canceled, nil}, {broken, broken}} {
			var cause error
			err := scripted(refused, refused, nil).Run(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				<-time.After(time.Minute) // to clean up
				cause = context.Cause(ctx)
				return row.says
			})
			if !errors.Is(err, nodeauth.ErrUnguarded) || errors.Is(err, context.Canceled) || !errors.Is(err, cmp.Or(row.more, nodeauth.ErrUnguarded)) {
				t.Errorf("work says %v: got %v, want %v with what is wrong with the work", row.says, err, nodeauth.ErrUnguarded)
			}
			if !errors.Is(cause, nodeauth.ErrUnguarded) {
				t.Errorf("work says %v: the cause was %v, want %v, before Run returns", row.says, cause, nodeauth.ErrUnguarded)
			}
		}
	})
}

// TestWorkEndsByItself: with its error, and at once.
func TestWorkEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, broken := time.Now(), errors.New("broken")
		err := scripted(refused).Run(t.Context(), func(context.Context) error {
			<-time.After(time.Minute)
			return fmt.Errorf("working: %w", broken)
		})
		if took := time.Since(start); !errors.Is(err, broken) || took != time.Minute {
			t.Errorf("got %v after %s, want %v after a minute", err, took, broken)
		}
	})
}

// TestMemberIsHeldToTheGuard covers R-AU-10 on the real server: an agent behind the probe takes its Lease only where the policy is, and gives it back when
// somebody has taken the policy's binding away.
func TestMemberIsHeldToTheGuard(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	client, err := kubernetes.NewForConfig(c.config(a.token))
	must(t, err)
	own := client.CoordinationV1().Leases(c.namespace)
	run := func() chan error {
		m, err := identity.New(own, identity.Spec{
			Namespace: c.namespace, Name: "agent-" + a.node.Name, Component: "test-agent", Host: a.node.Name, Fingerprint: identity.Fingerprint{BootID: "boot-1"},
		}, identity.Options{})
		must(t, err)
		p := nodeauth.Probe{Policy: c.options.Name, Try: nodeauth.TryLease(own, "agent-nobody"), Every: 200 * time.Millisecond}
		ended := make(chan error, 1)
		go func() { ended <- p.Run(t.Context(), func(ctx context.Context) error { return m.Run(ctx, nil) }) }()
		return ended
	}
	held := func() bool {
		_, err := c.admin.CoordinationV1().Leases(c.namespace).Get(t.Context(), "agent-"+a.node.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	if err := <-run(); !errors.Is(err, nodeauth.ErrUnguarded) || held() {
		t.Fatalf("without a policy: got %v, the Lease held: %t; want %v and no Lease", err, held(), nodeauth.ErrUnguarded)
	}
	c.guard(t)
	ended := run()
	eventually(t, func() string {
		select {
		case err := <-ended:
			t.Fatalf("the agent has ended: %v", err)
		default:
		}
		if !held() {
			return "the agent does not hold its Lease"
		}
		return ""
	})
	must(t, c.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), c.options.Name, metav1.DeleteOptions{}))
	select {
	case err := <-ended:
		if !errors.Is(err, nodeauth.ErrUnguarded) {
			t.Errorf("got %v, want %v", err, nodeauth.ErrUnguarded)
		}
	case <-time.After(patience()):
		t.Fatal("the agent goes on without a guard")
	}
	if held() {
		t.Error("the agent left its Lease behind")
	}
}
