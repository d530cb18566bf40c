// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestMetricsAreFew is R-ID-18: over 1,000 restarts, in which all goes well, requests fail, others write or nobody answers, the hooks get the same few
// operations, codes and reasons, which tell conflicts and errors apart, and no name. Every one of them may be missing.
func TestMetricsAreFew(t *testing.T) {
	inBubble(t, func(b *bed) {
		series := map[string]int{}
		clock := identitytest.NewClock(0, 1)
		leases := b.server.Client(namespace, "h", clock)
		metrics := identity.MemberMetrics{
			Request: func(operation string, code int, took time.Duration) {
				if series[fmt.Sprint(operation, " ", code)]++; took < 0 || took > minute {
					b.Errorf("%s took %s", operation, took)
				}
			},
			Held: func(held bool) { series[fmt.Sprint("Held ", held)]++ },
			Lost: func(reason identity.LossReason) { series["Lost "+string(reason)]++ },
		}
		for i := range 1000 {
			m, err := identity.New(leases, goodSpec("h"), identity.Options{Clock: clock, Metrics: metrics})
			if err != nil {
				b.Fatal(err)
			}
			if err := m.Run(b.Context(), b.disturbed(i)); err != nil {
				b.Fatal(err)
			}
		}
		got := slices.Sorted(maps.Keys(series))
		want := []string{
			"Create 201", "Delete 200", "Delete 409", "Get 200", "Get 404", "Held false", "Held true", "Lost Deleted", "Lost Taken",
			"Update 0", "Update 200", "Update 409", "Update 500",
		}
		if !slices.Equal(got, want) {
			b.Errorf("R-ID-18: series %q, want %q", got, want)
		}
		if series["Held true"] != series["Held false"] || series["Held true"] != 1000+series["Lost Deleted"]+series["Lost Taken"] {
			b.Errorf("R-ID-18: %v, want each hold begun and ended, and one more for each loss", series)
		}
		bare, err := identity.New(leases, goodSpec("h"), identity.Options{Clock: clock})
		if err != nil {
			b.Fatal(err)
		}
		if err := bare.Run(b.Context(), b.disturbed(1)); err != nil {
			b.Errorf("without hooks: %v", err)
		}
	})
}

// disturbed is work in which something goes wrong, or nothing. The first call of a Run ends with its work, or with the loss.
func (b *bed) disturbed(i int) func(context.Context, identity.Epoch) error {
	lost := false
	return func(ctx context.Context, _ identity.Epoch) error {
		if !lost {
			b.passes(5 * time.Second)
			lost = b.disturb(i)
		}
		over := time.NewTimer(15 * time.Second)
		defer over.Stop()
		select {
		case <-ctx.Done():
		case <-over.C:
		}
		return nil
	}
}

// disturb lets one thing happen to the Lease or its renewals, and says whether the hold will be lost by it.
func (b *bed) disturb(i int) bool {
	update := identitytest.Fault{Operation: identitytest.Update}
	switch i % 7 {
	case 1:
		update.Err = apierrors.NewInternalError(errors.New("x"))
		b.server.Faults(update)
	case 2:
		update.Err, update.Committed = errors.New("connection reset"), true
		b.server.Faults(update)
	case 3:
		b.edit(func(l *coordinationv1.Lease) { l.Labels["theirs"] = strconv.Itoa(i) })
	case 4:
		b.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
		return true
	case 5:
		if err := b.admin().Delete(b.Context(), name, metav1.DeleteOptions{}); err != nil {
			b.Error(err)
		}
		return true
	case 6: // the release finds another version
		b.server.Faults(identitytest.Fault{Operation: identitytest.Delete, Do: func() {
			b.edit(func(l *coordinationv1.Lease) { l.Labels["theirs"] = strconv.Itoa(i) })
		}})
	}
	return false
}
