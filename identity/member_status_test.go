// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// TestHealth is R-ID-17: Healthy fails once two intervals have gone by without a renewal, and before the Lease is held.
func TestHealth(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h")
		if err := p.member.Healthy(); err == nil || !strings.Contains(err.Error(), "Stopped") {
			b.Errorf("R-ID-17: before Run: %v", err)
		}
		p.start()
		b.passes(time.Second)
		at := b.renewal(p)
		b.server.Stop()
		b.passes(20*time.Second - time.Since(at))
		if err := p.member.Healthy(); err != nil {
			b.Errorf("R-ID-17: after 20 s: %v", err)
		}
		b.passes(time.Second)
		if err := p.member.Healthy(); err == nil || !strings.Contains(err.Error(), "renewed") || !strings.Contains(err.Error(), "refused") {
			b.Errorf("R-ID-17: after 21 s: %v, want why", err)
		}
		if s := p.member.Status(); s.Err == nil || s.Renewed < 20*time.Second || s.Renewed+s.Remaining != 30*time.Second {
			b.Errorf("status %+v", s)
		}
		b.server.Start()
		b.passes(8 * time.Second)
		if err := p.member.Healthy(); err != nil || p.member.Status().Err != nil {
			b.Errorf("R-ID-17: after the return: %v", err)
		}
	})
}

// TestWritten: a member knows its last 16 versions, and how long ago each was sent.
func TestWritten(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h").start()
		b.passes(time.Second)
		first := b.lease()
		b.passes(100 * time.Second)
		if ago, ok := p.member.Written(first.ResourceVersion); !ok || ago != 101*time.Second {
			b.Errorf("the first version was written %s ago, %v; want 101s", ago, ok)
		}
		if _, ok := p.member.Written(""); ok {
			b.Error("no version is known")
		}
		b.passes(100 * time.Second)
		if _, ok := p.member.Written(first.ResourceVersion); ok {
			b.Error("the first of more than 16 is known")
		}
		if ago, ok := p.member.Written(b.lease().ResourceVersion); !ok || ago > 11*time.Second {
			b.Errorf("the last version was written %s ago, %v", ago, ok)
		}
		if p.member.Key() != goodSpec("h").Key() {
			b.Errorf("the key is %v", p.member.Key())
		}
	})
}

// TestMetricsAreFew is R-ID-18: hooks get operations, codes and reasons, a fixed number of each, and may all be missing.
func TestMetricsAreFew(t *testing.T) {
	inBubble(t, func(b *bed) {
		series := map[string]bool{}
		clock := identitytest.NewClock(0, 1)
		for range 1000 {
			m, err := identity.New(b.server.Client(namespace, "h", clock), goodSpec("h"), identity.Options{Clock: clock, Metrics: identity.MemberMetrics{
				Request: func(operation string, code int, _ time.Duration) { series[operation+http.StatusText(code)] = true },
			}})
			if err != nil {
				b.Fatal(err)
			}
			if err := m.Run(b.Context(), func(context.Context, identity.Epoch) error { b.passes(15 * time.Second); return nil }); err != nil {
				b.Fatal(err)
			}
		}
		for _, want := range []string{"GetNot Found", "CreateCreated", "UpdateOK", "DeleteOK"} {
			if !series[want] || len(series) != 4 {
				b.Errorf("R-ID-18: series %v, want %q among 4", series, want)
			}
		}
		p := b.process("h").start()
		b.passes(time.Minute)
		_ = p.stop()
		if !slices.Equal(p.held, []bool{true, false}) {
			b.Errorf("Held was told %v", p.held)
		}
	})
}
