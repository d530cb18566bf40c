// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/history"
	"github.com/belayproject/belay/configsync/kube"
)

// eventsOf are the events about the cluster's node.
func (c *cluster) eventsOf(t *testing.T) []eventsv1.Event {
	t.Helper()
	list, err := c.admin.EventsV1().Events(kube.EventNamespace).List(deadline(t), metav1.ListOptions{})
	must(t, err)
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name != c.node })
}

// TestEntriesAreEvents covers R-CS-30, L-CS-17: with the rights that are named and no others, each entry of a journal that is an edge
// becomes one event, however often it is sent, by whichever process, and until it has landed.
func TestEntriesAreEvents(t *testing.T) {
	c := newCluster(t)
	user := "teller-" + c.node
	sender, err := kube.NewEventSender(clientFor(t, c.env.User(t, user)), c.node, kube.Options{})
	must(t, err)
	disk := &configsynctest.Disk{}
	journal, err := history.Open(t.Context(), disk, nil)
	must(t, err)
	config := history.Config{Namespace: "ns", Name: "v2", UID: "u2", Key: "k", Digest: "sha256:2"}
	long := strings.Repeat("why ", 200)
	for _, kind := range []history.Kind{history.Started, history.Adopted, history.Stuck, history.Freed, history.Rejected, history.RolledBack, history.Overdue} {
		must(t, journal.Add(t.Context(), history.Entry{Kind: kind, Config: config, Why: long}))
	}
	if err := history.NewTeller(journal, sender.Send).Flush(deadline(t)); !errors.Is(err, configsync.ErrForbidden) || len(c.eventsOf(t)) > 0 {
		t.Fatalf("without rights it gave %v and made events", err)
	}
	c.bindIn(t, kube.EventNamespace, user, kube.EventRules()...)
	eventually(t, "the events", func() error { return history.NewTeller(journal, sender.Send).Flush(deadline(t)) })
	for _, e := range journal.Entries() { // as a process does that died before it could note what it had sent
		must(t, sender.Send(deadline(t), e))
	}
	must(t, sender.Send(deadline(t), history.Entry{N: 1, At: time.Unix(1, 0), Kind: history.Promoted})) // of a journal that was begun anew
	var got []string
	for _, e := range c.eventsOf(t) {
		got = append(got, e.Type+" "+e.Reason)
		if e.Reason == "ConfigRejected" && (e.Related == nil || e.Related.Name != "v2" || !strings.HasPrefix(e.Note, "ns/v2 (UID: u2): why ") || e.Regarding.Kind != "Node") {
			t.Errorf("the event is %+v, want it about the node, with the config and the reason", e)
		}
	}
	slices.Sort(got)
	want := []string{"Normal ConfigAdopted", "Normal ConfigPromoted", "Warning ConfigOverdue", "Warning ConfigRejected", "Warning ConfigRolledBack", "Warning ConfigStuck"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	// What no server would take stands in nobody's way.
	must(t, sender.Send(deadline(t), history.Entry{N: 9, Kind: history.Alarm}))
}
