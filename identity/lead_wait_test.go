// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// serveLeases answers the requests of a REST client by a client of the server in memory: it lets NewLeader run in a
// bubble.
func serveLeases(leases *identitytest.Client) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		lease, err := requestLease(leases, r)
		var status apierrors.APIStatus
		switch {
		case errors.As(err, &status):
			s := status.Status()
			s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			return jsonAnswer(r, int(s.Code), s)
		case err != nil:
			return nil, err
		case lease == nil: // deleted
			ok := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
			return jsonAnswer(r, http.StatusOK, ok)
		}
		lease = lease.DeepCopy()
		lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
		return jsonAnswer(r, http.StatusOK, lease)
	})
}

// requestLease carries out one request of a REST client.
func requestLease(leases *identitytest.Client, r *http.Request) (*coordinationv1.Lease, error) {
	lease, remove := &coordinationv1.Lease{}, metav1.DeleteOptions{}
	var body any = lease
	if r.Method == http.MethodDelete {
		body = &remove
	}
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(body); err != nil {
			return nil, err
		}
	}
	switch r.Method {
	case http.MethodGet:
		return leases.Get(r.Context(), path.Base(r.URL.Path), metav1.GetOptions{})
	case http.MethodPost:
		return leases.Create(r.Context(), lease, metav1.CreateOptions{})
	case http.MethodPut:
		return leases.Update(r.Context(), lease, metav1.UpdateOptions{})
	case http.MethodDelete:
		return nil, leases.Delete(r.Context(), path.Base(r.URL.Path), remove)
	}
	return nil, fmt.Errorf("%s %s is no request for a Lease", r.Method, r.URL)
}

func jsonAnswer(r *http.Request, code int, object any) (*http.Response, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// leader makes a process that leads by identity.NewLeader.
func (b *bed) leader(host string, liveness time.Duration) *process {
	b.Helper()
	b.started++
	p := &process{bed: b, client: fmt.Sprintf("%s-%d", host, b.started), clock: identitytest.NewClock(0, 1)}
	var err error
	p.member, err = identity.NewLeader(&rest.Config{Host: "http://memory"}, identity.LeadOptions{
		Namespace: namespace, Name: name, PodUID: "pod-" + host, Liveness: liveness,
		HTTP:    &http.Client{Transport: serveLeases(b.server.Client(namespace, p.client, p.clock))},
		Options: identity.Options{Clock: p.clock},
	})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// withDuration gives a Lease its leaseDurationSeconds.
func withDuration(seconds int32) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = &seconds }
}

// renewByAdmin renews the Lease in the name of its holder.
func (b *bed) renewByAdmin() {
	b.Helper()
	b.edit(func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NowMicro()) })
}

// TestLeadWaitsForTheHoldersDuration: a leader election of client-go with a duration of 60 s renews every 26 s. A Lead
// of 15 s does not take its Lease while it lives, says why, and takes it 60 s after the last renewal.
func TestLeadWaitsForTheHoldersDuration(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.store(withDuration(60), func(l *coordinationv1.Lease) { l.Annotations = nil })
		p := b.leader("new", 15*time.Second).start()
		const rule = "silent for 1m0s (the holder's leaseDurationSeconds is 60; the Liveness here is 15s)"
		if err := p.member.Healthy(); err == nil || !strings.HasSuffix(err.Error(), "once its holder was "+rule) {
			b.Errorf("at first, Healthy returns %v, want %q in it", err, rule)
		}
		for range 50 {
			b.passes(26 * time.Second)
			p.waits(identity.Watching)
			b.renewByAdmin()
		}
		b.passes(2 * time.Second)
		err := p.member.Healthy()
		var dup *identity.DuplicateError
		if !errors.As(err, &dup) || dup.Holder != "other_1" {
			b.Fatalf("Healthy returns %v, want a DuplicateError", err)
		}
		if !strings.HasSuffix(err.Error(), "takes the Lease once that was "+rule) {
			b.Errorf("the error is %q, want at its end %q", err, rule)
		}
		b.passes(58*time.Second - 1)
		p.waits(identity.Watching)
		b.passes(2 * time.Second)
		e := p.holds(1)
		if l := b.lease(); *l.Spec.LeaseDurationSeconds != 15 || e.Number == 0 {
			b.Errorf("after the takeover the Lease is %v, the epoch %v", l.Spec, e)
		}
	})
}

// TestWhenLeadTakesALease has when a Lead takes the Lease of a silent holder.
func TestWhenLeadTakesALease(t *testing.T) {
	for what, c := range map[string]struct {
		liveness, after time.Duration
		change          func(*coordinationv1.Lease)
	}{
		"a longer duration":       {15 * time.Second, time.Minute, withDuration(60)},
		"the longest that counts": {15 * time.Second, 10 * time.Minute, withDuration(600)},
		"a typo":                  {15 * time.Second, 10 * time.Minute, withDuration(6000)},
		"the longest":             {15 * time.Second, 10 * time.Minute, withDuration(1<<31 - 1)},
		"a shorter duration":      {15 * time.Second, 15 * time.Second, withDuration(1)},
		"no duration": {15 * time.Second, 15 * time.Second, func(l *coordinationv1.Lease) {
			l.Spec.LeaseDurationSeconds = nil
		}},
		"a longer Liveness":     {20 * time.Minute, 20 * time.Minute, withDuration(3600)},
		"the shortest Liveness": {5 * time.Second, 5 * time.Second, withDuration(4)},
		"an empty holder": {15 * time.Second, 0, func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](3600)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.store(c.change)
				p := b.leader("new", c.liveness).start()
				if c.after > 0 {
					b.passes(c.after - 1)
					p.waits(identity.Watching)
					b.passes(time.Second)
				}
				p.holds(1)
				if got := *b.lease().Spec.LeaseDurationSeconds; got != int32(c.liveness/time.Second) {
					b.Errorf("the Lease has a duration of %d s, want Liveness, %v", got, c.liveness)
				}
			})
		})
	}
}

// TestLeadersOfTwoSettings is a rolling update of Liveness from 60 s to 15 s. The old leader loses its network and
// leads until its hold ends, after 40 s; the new one leads later than that. After an orderly end of the old one it
// leads at once.
func TestLeadersOfTwoSettings(t *testing.T) {
	for what, lost := range map[string]bool{"lost": true, "released": false} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				old := b.leader("old", time.Minute).start()
				b.passes(time.Second)
				before := old.holds(1)
				p := b.leader("new", 15*time.Second).start()
				b.passes(10 * minute)
				p.waits(identity.Watching)
				if !lost {
					if err := old.stop(); err != nil {
						b.Fatal(err)
					}
					b.passes(2 * time.Second)
				} else {
					old.cut()
					b.leadOneAtATime(old, p)
				}
				if e := p.holds(1); e.Number <= before.Number {
					b.Errorf("epoch %d after %d", e.Number, before.Number)
				}
			})
		})
	}
}

// leadOneAtATime lets a minute and a bit pass, in which the old leader ends and the new one begins.
func (b *bed) leadOneAtATime(old, next *process) {
	b.Helper()
	oldLed := 0
	for range 62 {
		b.passes(time.Second)
		_, oldLeads := old.member.Epoch()
		_, nextLeads := next.member.Epoch()
		old.locked(func() { oldLeads = oldLeads || len(old.causes) == 0 })
		if oldLeads && nextLeads {
			b.Fatalf("two lead: %+v and %+v", old.member.Status(), next.member.Status())
		}
		if oldLeads {
			oldLed++
		}
	}
	if oldLed < 30 || oldLed > 41 {
		b.Errorf("the old leader led for %d s without its network, want 40 s less a renewal's interval at least", oldLed)
	}
}

// TestLongWaitIsLogged: a Lead that waits longer than its Liveness for a silent holder logs that once, with the reason;
// one that waits for its Liveness alone logs nothing.
func TestLongWaitIsLogged(t *testing.T) {
	const message = "Waiting for a silent holder of the Lease"
	for seconds, want := range map[int32]int{60: 1, 6000: 1, 15: 0} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.store(withDuration(seconds))
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
				p := b.leader("new", 15*time.Second)
				ctx, cancel := context.WithCancel(klog.NewContext(b.Context(), logger))
				ended := make(chan error, 1)
				go func() { ended <- p.member.Run(ctx, p.work) }()
				b.passes(11 * minute)
				p.holds(1)
				cancel()
				if err := <-ended; err != nil {
					b.Error(err)
				}
				text := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
				if n := strings.Count(text, message); n != want {
					b.Errorf("logged %d times, want %d:\n%s", n, want, text)
				}
				reason := fmt.Sprintf("the holder's leaseDurationSeconds is %d", seconds)
				if n := strings.Count(text, reason); n != want {
					b.Errorf("the reason %q is logged %d times, want %d:\n%s", reason, n, want, text)
				}
			})
		})
	}
}
