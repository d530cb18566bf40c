// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/testenv"
)

// A controller that ends by itself is told from one that is killed: here its time is over, as it has lost its parent.
func TestControllerThatOutlivesItsTimeFails(t *testing.T) {
	t.Parallel()
	env, err := testenv.New(t.Context(), testenv.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, env.Close()) })
	for life, want := range map[time.Duration]string{time.Millisecond: "its parent is lost: it has lived for 1ms", lifetime: ""} {
		p, err := (&rolloutstage.Fleet{Env: env}).Spawn(rolloutstage.Task{Life: life})
		must(t, err)
		t.Cleanup(p.Kill)
		l := &leader{process: p, gone: make(chan struct{})}
		go l.listen()
		if want != "" {
			within(t, l.gone, "a controller whose time is over ends")
		}
		p.Kill()
		<-l.gone
		is := p.End()
		if got := strings.Join(l.failed, ""); got != want || is.Itself != (want != "") || is.Itself && is.Code != 1 {
			t.Errorf("with a life of %s: got %q, %+v, want %q", life, got, is, want)
		}
	}
}

// Who leads is what the Lease says: nobody where it is free, or somebody unknown has it.
func TestLeaderOfALease(t *testing.T) {
	mark, err := json.Marshal(identity.Fingerprint{PodUID: "controller-1"})
	must(t, err)
	lease := func(holder, text string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{identity.FingerprintAnnotation: text}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}
	}
	for _, c := range []struct {
		lease *coordinationv1.Lease
		want  string
	}{
		{lease("x", string(mark)), "controller-1"}, {lease("", string(mark)), ""}, {lease("x", "{"), ""}, {&coordinationv1.Lease{}, ""},
	} {
		if got := rolloutstage.LeaderOf(c.lease); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.lease, got, c.want)
		}
	}
}
