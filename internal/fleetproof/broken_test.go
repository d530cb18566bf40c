// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// The auditor finds each kind of what it looks for, and nothing in a history that is sound.
func TestAuditorFindsWhatIsWrong(t *testing.T) {
	encoded := func(object any) []byte {
		t.Helper()
		text, err := json.Marshal(object)
		must(t, err)
		return text
	}
	ledger := func(epoch protocol.Attempt, slots ...string) version {
		l := protocol.Ledger{Epoch: epoch}
		for _, n := range slots {
			l.Slots = append(l.Slots, protocol.Slot{Node: n, UID: n})
		}
		return version{Key: ledgersIn + "fleet", Value: encoded(v1alpha1.DisruptionLedger{Spec: v1alpha1.LedgerSpecOf(l)})}
	}
	node := func(name string, cordoned bool) version {
		n := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Spec.Unschedulable = cordoned
		return version{Key: nodesIn + name, Value: encoded(n)}
	}
	shadow := func(attempt int64, phase v1alpha1.Phase, revision string) version {
		sh := v1alpha1.NodeShadow{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.NodeShadowSpec{NodeUID: "u"}}
		sh.Status = v1alpha1.NodeShadowStatus{Known: true, Attempt: attempt, Phase: phase, Revision: &v1alpha1.RevisionRef{Name: revision}}
		return version{Key: shadowsIn + "a", Value: encoded(sh)}
	}
	for _, c := range []struct {
		name    string
		history []version
		want    string // "" for nothing
	}{
		{"sound", []version{ledger(1, "a"), node("a", true), shadow(1, "Committed", "v2"), shadow(1, "Done", "v2"), node("a", false), ledger(2, "b", "c"), shadow(3, "Committed", "v3")}, ""},
		{"too many slots", []version{ledger(3, "a", "b", "c")}, "E21: the ledger at 0 has 3 slots"},
		{"too many cordoned", []version{node("a", true), node("b", true), node("c", true)}, "E21: 3 nodes are cordoned"},
		{"one of them gone", []version{node("a", true), node("b", true), {Key: nodesIn + "a"}, node("c", true)}, ""},
		{"ledger goes back", []version{ledger(2), ledger(1)}, "I3: the ledger at 0 goes back"},
		{"ledger gone", []version{ledger(2), {Key: ledgersIn + "fleet"}}, "the ledger was deleted"},
		{"attempt goes back", []version{shadow(2, "Done", "v2"), shadow(1, "Done", "v1")}, "I3: the shadow of a"},
		{"begun again", []version{shadow(1, "Committed", "v2"), shadow(1, "Done", "v2"), shadow(2, "Committed", "v2")}, "E25: node a begins v2"},
		{"undone before", []version{shadow(1, "Committed", "v2"), shadow(1, "Undone", "v2"), shadow(2, "Committed", "v2")}, ""},
		{"refused before", []version{shadow(1, "Refused", "v2"), shadow(2, "Committed", "v2")}, ""},
		{"unreadable", []version{{Key: ledgersIn + "fleet", Value: []byte("{")}}, "can't be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAuditor(2)
			for _, v := range c.history {
				a.see(v)
			}
			wrong, versions, _, _, _ := a.report()
			if len(wrong) > 1 || (c.want == "") != (len(wrong) == 0) || !strings.Contains(strings.Join(wrong, ""), c.want) || versions != len(c.history) {
				t.Errorf("got %q after %d versions, want %q alone", wrong, versions, c.want)
			}
		})
	}
}

// What costs the API server a list counts as one.
func TestListsAreTold(t *testing.T) {
	for target, want := range map[string]string{
		"/apis/belay.dev/v1alpha1/nodeshadows?fieldSelector=metadata.name%3Da":   "list",
		"/apis/belay.dev/v1alpha1/nodeshadows?limit=500&resourceVersion=0":       "list",
		"/apis/belay.dev/v1alpha1/nodeshadows?watch=true&sendInitialEvents=true": "list",
		"/apis/belay.dev/v1alpha1/nodeshadows?watch=true&resourceVersion=7":      "watch",
		"/apis/belay.dev/v1alpha1/nodeshadows/a":                                 "",
		"/api/v1/nodes":                                                          "list",
		"/api/v1/nodes/a":                                                        "",
		"/api/v1/namespaces/belay-system/pods":                                   "list",
		"/api/v1/namespaces/belay-system/pods/a":                                 "",
		"/api/v1/namespaces":                                                     "list",
		"/readyz":                                                                "",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x"+target, nil)
		must(t, err)
		if got := whatIs(r); got != want {
			t.Errorf("GET %s: got %q, want %q", target, got, want)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://x/api/v1/nodes", nil)
	must(t, err)
	if got := whatIs(r); got != "" {
		t.Errorf("POST: got %q, want nothing", got)
	}
}
