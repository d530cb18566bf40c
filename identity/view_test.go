// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/identity"
)

// TestLeaseThatWasThereIsUnconfirmed shows that a view guesses nothing of what was there before it: whoever renews joins, and whoever does
// not was never alive. R-ID-12, R-ID-13.
func TestLeaseThatWasThereIsUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []string{"dead", "quick", "emptied"})
		defer w.stop()
		w.wantState("dead", identity.Unconfirmed)
		w.wantTold("nobody has renewed")
		w.after(5 * time.Second)
		w.renew("quick")
		w.write("emptied", "")
		w.write("new", "new")
		w.after(time.Second)
		w.wantTold("a change is a sign of life, and a new Lease is one", "5s Joined quick", "5s Joined new")
		w.wantState("emptied", identity.Lost)
		w.after(43 * time.Second)
		w.wantState("dead", identity.Unconfirmed)
		w.after(2 * time.Second)
		w.wantState("dead", identity.Lost)
		if got := names(w.view.Peers(identity.Alive, identity.Suspect)); got != "me new quick" {
			t.Errorf("alive are %q, want those that renewed", got)
		}
		w.wantTold("who never joined does not leave", "25s Suspected quick", "25s Suspected new")
	})
}

// TestEmptyLeaseIsNoMember shows that nobody is waited for who had no holder at the start.
func TestEmptyLeaseIsNoMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []string{"empty=", "a"})
		defer w.stop()
		w.wantState("empty", identity.Lost)
		w.wantState("a", identity.Unconfirmed)
	})
}

// TestQuietPeerIsLostInTime walks one peer through all of its states. R-ID-13.
func TestQuietPeerIsLostInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []string{"other"})
		defer w.stop()
		w.live(w.ctx, "other", 0, beat)
		w.write("a", "a")
		w.after(19 * time.Second)
		w.wantState("a", identity.Alive)
		w.after(2 * time.Second)
		w.wantState("a", identity.Suspect)
		w.after(4 * time.Second)
		w.renew("a")
		w.after(time.Second)
		w.wantTold("a change is life", "0s Joined a", "0s Joined other", "20s Suspected a", "25s Recovered a")
		w.after(53 * time.Second)
		w.wantState("a", identity.Suspect)
		w.after(2 * time.Second)
		w.wantState("a", identity.Lost)
		if got := names(w.view.Peers(identity.Alive)); got != "me other" {
			t.Errorf("alive are %q before anything is collected, want no lost one", got)
		}
		w.renew("a")
		w.after(time.Second)
		w.wantTold("quiet for Liveness is lost, and may come back", "45s Suspected a", "80s Left a Quiet", "81s Joined a")
	})
}

// TestHolderThatChangesIsAnotherMember shows what the view says of take-overs, deletions and what was missed in between. R-ID-06, I5.
func TestHolderThatChangesIsAnotherMember(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(w *world)
		want []string
		end  identity.State // empty: there is no Lease
	}{
		{"taken over", func(w *world) { w.write("a", "a2") }, []string{"1s Left a Replaced", "1s Joined a"}, identity.Alive},
		{"deleted", func(w *world) { w.remove("a") }, []string{"1s Left a Released"}, ""},
		{"emptied", func(w *world) { w.write("a", "") }, []string{"1s Left a Released"}, identity.Lost},
		{"emptied, written and taken", func(w *world) { w.write("a", ""); w.write("a", ""); w.write("a", "a2") },
			[]string{"1s Left a Released", "1s Joined a"}, identity.Alive},
		{"deleted and made anew", func(w *world) { w.remove("a"); w.write("a", "a") }, []string{"1s Left a Released", "1s Joined a"}, identity.Alive},
		{"the same, unseen", func(w *world) { w.set(cutWatch); w.remove("a"); w.write("a", "a2"); w.relist() },
			[]string{"1s Left a Released", "1s Joined a"}, identity.Alive},
		{"made anew by the same holder, unseen", func(w *world) { w.set(cutWatch); w.remove("a"); w.write("a", "a"); w.relist() },
			[]string{"1s Left a Released", "1s Joined a"}, identity.Alive},
		{"made anew and emptied, unseen", func(w *world) { w.set(cutWatch); w.remove("a"); w.write("a", ""); w.relist() },
			[]string{"1s Left a Released"}, identity.Lost},
		{"taken over, unseen", func(w *world) { w.set(cutWatch); w.write("a", "a2"); w.relist() }, []string{"1s Left a Replaced", "1s Joined a"}, identity.Alive},
		{"deleted, unseen", func(w *world) { w.set(cutWatch); w.remove("a"); w.relist() }, []string{"1s Left a Released"}, ""},
		{"listed again", func(w *world) { w.relist() }, nil, identity.Alive},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				defer w.stop()
				w.write("a", "a1")
				w.after(time.Second)
				w.wantTold("a Lease was made", "0s Joined a")
				c.do(w)
				w.after(time.Second)
				w.wantTold(c.name, c.want...)
				if peer, ok := w.view.Get(keyTo("a")); ok != (c.end != "") || peer.State != c.end {
					t.Errorf("it is %q, want %q", peer.State, c.end)
				}
			})
		})
	}
}

func cutWatch(h *hub) { h.cut = true }

// TestNewHolderOfASuspectOne shows that neither a suspect nor a lost peer passes its state on.
func TestNewHolderOfASuspectOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.write("a", "a1")
		w.after(25 * time.Second)
		w.write("a", "a2")
		w.after(60 * time.Second)
		w.write("a", "a3")
		w.remove("gone")
		w.after(25 * time.Second)
		w.remove("a")
		w.after(time.Second)
		w.wantTold("each holder joins and leaves once", "0s Joined a", "20s Suspected a", "25s Left a Replaced", "25s Joined a",
			"45s Suspected a", "80s Left a Quiet", "85s Joined a", "105s Suspected a", "110s Left a Released")
	})
}

// TestClocksOfMembersDoNotMatter shows that neither the renew time in a Lease nor its duration is compared with a clock: a member whose clock is a
// day off, goes back or stands still is alive while it writes, and one that promises years is lost like any other. R-ID-10.
func TestClocksOfMembersDoNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		day := 24 * time.Hour
		stamp := func(name string, off time.Duration, seconds int32) {
			w.write(name, name, func(l *coordinationv1.Lease) {
				l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &metav1.MicroTime{Time: time.Now().Add(off)}, &seconds
			})
		}
		stamp("dead", 1000*day, 1<<30)
		for i := range 20 {
			stamp("late", -day, 1)
			stamp("back", -time.Duration(i)*day, 1)
			w.write("bare", "bare", func(l *coordinationv1.Lease) { l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = nil, ptr.To(int32(-1)) })
			w.after(beat)
		}
		if got := names(w.view.Peers(identity.Alive)); got != "back bare late me" {
			t.Errorf("alive are %q, want all that write", got)
		}
		w.wantState("dead", identity.Lost)
		w.wantTold("only writes count", "0s Joined dead", "0s Joined late", "0s Joined back", "0s Joined bare", "20s Suspected dead", "50s Left dead Quiet")
	})
}

// TestPeerSaysWhatTheHolderWrote reads the annotations, and bad ones.
func TestPeerSaysWhatTheHolderWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		write := func(name string, annotations map[string]string) {
			w.write(name, "h1", func(l *coordinationv1.Lease) {
				l.UID, l.Annotations, l.Labels = "u1", annotations, map[string]string{identity.HostLabel: "label"}
			})
		}
		write("full", map[string]string{identity.HostAnnotation: "Host_1", identity.EpochAnnotation: "17", identity.FingerprintAnnotation: `{"bootID":"b"}`})
		write("bad", map[string]string{identity.EpochAnnotation: "-1", identity.FingerprintAnnotation: `{"bootID":"b"`})
		w.after(3 * time.Second)
		full, _ := w.view.Get(keyTo("full"))
		want := identity.Epoch{Number: 17, Holder: "h1", UID: "u1"}
		if full.Host != "Host_1" || full.Epoch != want || full.Fingerprint.BootID != "b" || full.Holder != "h1" || full.Quiet != 3*time.Second {
			t.Errorf("got %+v, want what its annotations say", full)
		}
		bad, _ := w.view.Get(keyTo("bad"))
		if bad.Host != "label" || bad.Epoch != (identity.Epoch{}) || bad.Fingerprint != (identity.Fingerprint{}) || bad.Lease.Name != "bad" {
			t.Errorf("got %+v, want the label, and nothing from what can't be read", bad)
		}
	})
}

// TestIndexFollowsTheLeases finds peers by a value that changes.
func TestIndexFollowsTheLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zones := func(l *coordinationv1.Lease) []string { return strings.Fields(l.Annotations["zones"]) }
		w := newWorld(t, []string{"a"}, func(c *identity.ViewConfig) {
			c.IndexBy = map[string]func(*coordinationv1.Lease) []string{"zone": zones}
		})
		defer w.stop()
		in := func(name, zones string) {
			w.write(name, name, func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"zones": zones} })
		}
		want := func(zone, want string, states ...identity.State) {
			t.Helper()
			if got := names(w.view.Indexed("zone", zone, states...)); got != want {
				t.Errorf("in zone %q are %q, want %q", zone, got, want)
			}
		}
		in("b", "east")
		in("a", "east west")
		want("east", "a b")
		want("west", "a")
		in("a", "west west")
		want("east", "b")
		want("west", "a")
		w.after(25 * time.Second)
		want("east", "", identity.Alive)
		want("east", "b", identity.Alive, identity.Suspect)
		w.remove("b")
		want("east", "")
		if got := w.view.Indexed("host", "east"); len(got) > 0 {
			t.Errorf("an index that there is not has %v", got)
		}
	})
}

// TestViewConfigIsChecked names each wrong field.
func TestViewConfigIsChecked(t *testing.T) {
	for want, change := range map[string]func(*identity.ViewConfig){
		"ViewConfig.Source is required":      func(c *identity.ViewConfig) { c.Source = nil },
		"ViewConfig.Canary is required":      func(c *identity.ViewConfig) { c.Canary = nil },
		"Canary has the Lease \"/\"":         func(c *identity.ViewConfig) { c.Canary = nobody{} },
		"Liveness is -1s":                    func(c *identity.ViewConfig) { c.Liveness = -time.Second },
		"Suspect is 41s, want at most":       func(c *identity.ViewConfig) { c.Suspect = 41 * time.Second },
		"FreshFor is 21s, want at most half": func(c *identity.ViewConfig) { c.FreshFor = 21 * time.Second },
		"FreshFor is -1s":                    func(c *identity.ViewConfig) { c.FreshFor = -time.Second },
		"MassLoss is 1.1":                    func(c *identity.ViewConfig) { c.MassLoss = 1.1 },
		"MassLoss is -0.1":                   func(c *identity.ViewConfig) { c.MassLoss = -0.1 },
		"MassLossHold is -1s":                func(c *identity.ViewConfig) { c.MassLossHold = -time.Second },
		"IndexBy has no function under \"nothing\"": func(c *identity.ViewConfig) {
			c.IndexBy = map[string]func(*coordinationv1.Lease) []string{"nothing": nil}
		},
	} {
		h := newHub()
		c := identity.ViewConfig{Source: h, Canary: h}
		if _, err := identity.NewView(c); err != nil {
			t.Fatalf("what is required alone is refused: %v", err)
		}
		change(&c)
		if _, err := identity.NewView(c); err == nil || !strings.Contains(err.Error(), "identity.NewView: "+want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

type nobody struct{ identity.Canary }

func (nobody) Key() types.NamespacedName { return types.NamespacedName{} }
