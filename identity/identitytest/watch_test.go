// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity/identitytest"
)

func newLease(name string, labels ...string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		l.Labels[label] = ""
	}
	return l
}

// wantEvents demands that these have happened since the last call, and no others. It waits for whatever is under way.
func wantEvents(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	var got []string
	for {
		synctest.Wait()
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				got = append(got, "closed")
				break
			}
			got = append(got, fmt.Sprint(e.Type, " ", e.Object.(*coordinationv1.Lease).Name))
			continue
		default:
		}
		break
	}
	if !slices.Equal(got, want) {
		t.Errorf("the watch brought %q, want %q", got, want)
	}
}

// A table is a server with a client, in a bubble.
type table struct {
	*testing.T
	server *identitytest.Server
	client *identitytest.Client
}

func onTable(t *testing.T, test func(b *table)) {
	synctest.Test(t, func(t *testing.T) {
		server := identitytest.NewServer()
		test(&table{T: t, server: server, client: server.Client("default", "test", nil)})
	})
}

func (b *table) create(name string, labels ...string) *coordinationv1.Lease {
	b.Helper()
	l, err := b.client.Create(b.Context(), newLease(name, labels...), metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func (b *table) update(l *coordinationv1.Lease, change func(*coordinationv1.Lease)) *coordinationv1.Lease {
	b.Helper()
	change(l)
	l, err := b.client.Update(b.Context(), l, metav1.UpdateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func (b *table) watch(selector, version string) watch.Interface {
	b.Helper()
	w, err := b.client.Watch(b.Context(), metav1.ListOptions{LabelSelector: selector, ResourceVersion: version})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Stop)
	return w
}

// list returns the names that are listed, and the version of the list.
func (b *table) list(selector string) (names, version string) {
	b.Helper()
	list, err := b.client.List(b.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		b.Fatal(err)
	}
	var found []string
	for _, l := range list.Items {
		found = append(found, l.Name)
	}
	slices.Sort(found)
	return strings.Join(found, " "), list.ResourceVersion
}

// TestWatchFollowsTheSelector: who comes to match is added, who ceases to is deleted, and others are unknown.
func TestWatchFollowsTheSelector(t *testing.T) {
	onTable(t, func(b *table) {
		a := b.create("a", "ours")
		b.create("b")
		names, version := b.list("ours")
		if names != "a" {
			b.Errorf("listed %q, want a", names)
		}
		w := b.watch("ours", version)
		wantEvents(b.T, w)
		a = b.update(a, func(l *coordinationv1.Lease) { l.Labels = nil })
		a = b.update(a, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("x") })
		wantEvents(b.T, w, "DELETED a")
		a = b.update(a, func(l *coordinationv1.Lease) { l.Labels = map[string]string{"ours": ""} })
		b.update(a, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("y") })
		if _, err := b.server.Client("abroad", "test", nil).Create(b.Context(), newLease("c", "ours"), metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		if err := b.client.Delete(b.Context(), "a", metav1.DeleteOptions{}); err != nil {
			b.Fatal(err)
		}
		wantEvents(b.T, w, "ADDED a", "MODIFIED a", "DELETED a")
		wantEvents(b.T, b.watch("ours", version), "DELETED a", "ADDED a", "MODIFIED a", "DELETED a")
	})
}

// TestDroppedWatchGoesOnUnlessCompacted: then a client has to list again.
func TestDroppedWatchGoesOnUnlessCompacted(t *testing.T) {
	onTable(t, func(b *table) {
		a := b.create("a")
		w := b.watch("", a.ResourceVersion)
		b.server.DropWatches(false)
		wantEvents(b.T, w, "closed")
		b.create("b")
		wantEvents(b.T, b.watch("", a.ResourceVersion), "ADDED b")
		b.server.DropWatches(true)
		if _, err := b.client.Watch(b.Context(), metav1.ListOptions{ResourceVersion: a.ResourceVersion}); !apierrors.IsResourceExpired(err) {
			b.Errorf("a watch of a compacted version: %v, want 410 Expired", err)
		}
		names, version := b.list("")
		w = b.watch("", version)
		if wantEvents(b.T, w); names != "a b" {
			b.Errorf("listed %q, want all", names)
		}
		b.create("c")
		wantEvents(b.T, w, "ADDED c")
	})
}

// TestServerThatIsDownAnswersNobody, and is as before afterwards.
func TestServerThatIsDownAnswersNobody(t *testing.T) {
	onTable(t, func(b *table) {
		a := b.create("a")
		w := b.watch("", a.ResourceVersion)
		b.server.Stop()
		wantEvents(b.T, w, "closed")
		_, err1 := b.client.Get(b.Context(), "a", metav1.GetOptions{})
		_, err2 := b.client.List(b.Context(), metav1.ListOptions{})
		_, err3 := b.client.Watch(b.Context(), metav1.ListOptions{ResourceVersion: a.ResourceVersion})
		for _, err := range []error{err1, err2, err3} {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				b.Errorf("a server that is down answers %v, want the connection refused", err)
			}
		}
		b.server.Start()
		if names, version := b.list(""); names != "a" || version != a.ResourceVersion {
			b.Errorf("afterwards there is %q at version %s, want a at %s", names, version, a.ResourceVersion)
		}
	})
}

// TestRestoreBeginsVersionsAnew: what was written after the snapshot is gone, and watches of before have to list.
func TestRestoreBeginsVersionsAnew(t *testing.T) {
	onTable(t, func(b *table) {
		a := b.create("a")
		snapshot := b.server.Leases()
		for range 10 {
			a = b.update(a, func(l *coordinationv1.Lease) { l.Labels = map[string]string{"n": l.ResourceVersion} })
		}
		b.create("b")
		w := b.watch("", a.ResourceVersion)
		wantEvents(b.T, w, "ADDED b")
		b.server.Restore(snapshot)
		wantEvents(b.T, w, "closed")
		if _, err := b.client.Watch(b.Context(), metav1.ListOptions{ResourceVersion: a.ResourceVersion}); !apierrors.IsResourceExpired(err) {
			b.Errorf("a watch of a version that is yet to come: %v, want 410 Expired", err)
		}
		names, version := b.list("")
		if names != "a" || version != "2" {
			b.Errorf("restored %q at version %s, want a at 2", names, version)
		}
		restored := b.server.Leases()[0]
		if restored.UID != a.UID || len(restored.Labels) != 0 {
			b.Errorf("restored %v, want a as it was in the snapshot", restored)
		}
		b.update(restored, func(l *coordinationv1.Lease) { l.Labels = map[string]string{"x": ""} })
		wantEvents(b.T, b.watch("", version), "MODIFIED a")
	})
}

// TestFaultsSpoilRequests: answers are lost or slow, and requests hang.
func TestFaultsSpoilRequests(t *testing.T) {
	onTable(t, func(b *table) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		broken := errors.New("broken")
		did := false
		b.server.Faults(
			identitytest.Fault{Operation: identitytest.Create, Name: "lost", Err: broken, Committed: true},
			identitytest.Fault{Operation: identitytest.Create, Name: "slow", Delay: 3 * time.Second, Do: func() { did = true }},
			identitytest.Fault{Client: "test", Name: "hangs", Times: -1, Hang: true},
			identitytest.Fault{Client: "other", Times: -1, Err: broken})
		_, err := b.client.Create(ctx, newLease("lost"), metav1.CreateOptions{})
		if !errors.Is(err, broken) {
			b.Errorf("the lost answer is %v", err)
		}
		began := time.Now()
		if b.create("slow"); time.Since(began) != 3*time.Second || !did {
			b.Errorf("the slow answer took %v, want 3 s; Do was called: %t", time.Since(began), did)
		}
		_, err = b.client.Create(ctx, newLease("hangs"), metav1.CreateOptions{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			b.Errorf("the request that hangs ended after %v with %v", time.Since(began), err)
		}
		b.server.ClearFaults()
		if names, _ := b.list(""); names != "lost slow" {
			b.Errorf("there are %q, want what was carried out", names)
		}
		b.create("hangs")
		wantRequests(b, "Create lost 2", "Create slow 3", "Create hangs ", "Create hangs 4")
	})
}

func wantRequests(b *table, want ...string) {
	b.Helper()
	var got []string
	for _, q := range b.server.Requests() {
		got = append(got, fmt.Sprint(q.Operation, " ", q.Name, " ", q.Version))
	}
	if !slices.Equal(got, want) {
		b.Errorf("the requests are %q, want %q", got, want)
	}
	b.server.ForgetRequests()
	if n := len(b.server.Requests()); n != 0 {
		b.Errorf("%d requests are left", n)
	}
}
