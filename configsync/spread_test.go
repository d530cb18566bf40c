// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// R-CS-62: each start is on record before anything else can fail: before a config is decoded, also at a start that is
// refused.
func TestStartIsOnRecordBeforeAnythingIsDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		onRecord := func() int {
			st, err := lkg.Load(t.Context(), n.disk, "v1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			return len(st.Starts)
		}
		for i, init := range []string{"good-init", "invalid-init", "no word", "panic", "good-init"} {
			n.init = init
			o := n.options2()
			decoded := false
			o.Codec = seen{func() {
				decoded = true
				if got := onRecord(); got != i+1 {
					t.Errorf("start %d, on %q: %d starts are on record when a config is decoded, want %d", i+1, init, got, i+1)
				}
			}}
			s, err := configsync.New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Bootstrap(t.Context(), lkg.Exit{})
			if refused := init != "good-init"; (err != nil) != refused || !decoded {
				t.Errorf("Bootstrap on %q = %v, decoded: %t; want an error: %t", init, err, decoded, refused)
			}
			if got := onRecord(); got != i+1 {
				t.Errorf("after the start on %q %d are on record, want %d", init, got, i+1)
			}
		}
	})
}

// seen is a codec that tells before it decodes.
type seen struct{ tell func() }

func (s seen) Decode(key string, o configsync.Object) (string, lkg.Limits, error) {
	s.tell()
	return words{}.Decode(key, o)
}

// C-18: an edit in place does not restart every node at once. Each takes its own time, and none longer than the jitter.
func TestEditIsFollowedAtManyTimes(t *testing.T) {
	const nodes, jitter = 24, 5 * time.Minute
	inMinute := map[time.Duration]int{}
	for range nodes / 3 { // for each of three drivers
		onNode(t, func(n *node) {
			o := n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-1"}, false)
			n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, Policy: configsync.Follow})
			n.wait(jitter + time.Minute)
			n.runs(o, "an object that is followed is adopted")
			edited := n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-2"}, false)
			start := time.Now()
			for n.syncer.Status().Active.Digest != edited.Digest() && time.Since(start) <= jitter+10*time.Second {
				n.wait(5 * time.Second)
			}
			took := time.Since(start)
			if took > jitter+10*time.Second {
				t.Fatalf("an edit is not followed after %s, want %s at most", took, jitter)
			}
			inMinute[took.Truncate(time.Minute)]++
		})
	}
	for minute, n := range inMinute {
		if n > nodes*2/3 { // a minute has a fifth of them: with that many it is no chance
			t.Errorf("%d of %d nodes follow the edit in the minute from %s on, want them spread over %s", n, nodes, minute, jitter)
		}
	}
}

// R-CS-02, R-CS-03: of nodes on one server each uses what its own source names, also where two of them name the same.
func TestEachNodeUsesItsOwnSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newNode(t)
		objects := map[string]configsync.Object{}
		for _, name := range []string{"a", "b"} {
			objects[name] = first.server.Put("kube-system", name, map[string]string{"kubelet": "good-" + name}, true)
		}
		var uses []string
		for _, name := range []string{"a", "b", "b"} {
			n := newNode(t)
			n.server = first.server
			n.source = naming{configsync.Spec{Namespace: "kube-system", Name: name, UID: objects[name].UID}}
			n.start()
			n.wait(time.Minute)
			n.runs(objects[name], "a node uses what its own source names")
			uses = append(uses, n.syncer.Status().Active.UID)
			n.stop()
		}
		if uses[0] == uses[1] || uses[1] != uses[2] {
			t.Errorf("the nodes use %q, want the first another one than the others", uses)
		}
		for name, o := range objects {
			if now := first.server.Object("kube-system", name); now.Digest() != o.Digest() || now.ResourceVersion != o.ResourceVersion {
				t.Errorf("the nodes have changed %q", name)
			}
		}
	})
}

// naming is a source that always names the same.
type naming struct{ spec configsync.Spec }

func (s naming) Desired(context.Context) (*configsync.Spec, error) { return &s.spec, nil }

func (naming) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// L-CS-36: an edit that waits for its turn is in the status, with the time of its turn, and gone from there once it is
// adopted.
func TestAnEditThatWaitsIsInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.start()
		defer func() { n.stop() }()
		o := n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-1"}, false)
		n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, Policy: configsync.Follow})
		n.wait(time.Minute)
		if p := n.rec.Last().Pending; p != nil {
			t.Errorf("before the edit there is pending %+v", p)
		}
		edit := n.server.Put("kube-system", "cm", map[string]string{"kubelet": "good-2"}, false)
		n.wait(0)
		p := n.rec.Last().Pending
		if p == nil || p.To.Digest != edit.Digest() || p.From.Digest != o.Digest() {
			t.Fatalf("after the edit there is pending %+v, want the way from %s to %s", p, o.Digest(), edit.Digest())
		}
		_, at, _ := strings.Cut(p.Why, "this one at ")
		due, err := time.Parse(time.RFC3339, at)
		if wait := time.Until(due); err != nil || wait < -time.Second || wait > 5*time.Minute {
			t.Errorf("it waits until %q (%v), want a time in the next 5 minutes", p.Why, err)
		}
		if got := n.rec.Last().Condition.Status; got != lkg.StatusTrue {
			t.Errorf("while an edit waits the condition is %s, want True", got)
		}
		n.wait(6 * time.Minute)
		if st := n.rec.Last(); st.Pending != nil || st.Active.Digest != edit.Digest() {
			t.Errorf("after its turn there is pending %+v, and %s is used, want %s", st.Pending, st.Active.Digest, edit.Digest())
		}
	})
}
