// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/apiserver"
	"github.com/belayproject/belay/examples/internal/agent/history"
)

// eventsOf are the events about the cluster's node.
func (c *cluster) eventsOf(t *testing.T) []eventsv1.Event {
	t.Helper()
	list, err := c.admin.EventsV1().Events(apiserver.EventNamespace).List(deadline(t), metav1.ListOptions{})
	must(t, err)
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name != c.node })
}

// TestEntriesAreEvents covers R-CS-30, L-CS-17: with the rights that are named and no others, each entry of a journal that is an edge
// becomes one event, however often it is sent, by whichever process, and until it has landed.
func TestEntriesAreEvents(t *testing.T) {
	c := newCluster(t)
	user := "teller-" + c.node
	sender, err := apiserver.NewEventSender(clientFor(t, c.env.User(t, user)), c.node)
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
	c.bindIn(t, apiserver.EventNamespace, user, apiserver.EventRules()...)
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

// TestKubeletIdentitySendsEvents: an agent on a host, with a kubelet's identity, has its events on every supported
// release. Before Kubernetes 1.35 that identity may create events of the core group alone.
func TestKubeletIdentitySendsEvents(t *testing.T) {
	c := newCluster(t)
	kubelet := c.env.User(t, "system:node:"+c.node, "system:nodes")
	sender, err := apiserver.NewEventSender(clientFor(t, kubelet), c.node)
	must(t, err)
	config := history.Config{Namespace: "ns", Name: "v2", UID: "u2"}
	entry := history.Entry{N: 1, At: time.Unix(1, 0), Kind: history.Rejected, Why: "bad", Config: config}
	must(t, sender.Send(deadline(t), entry))
	must(t, sender.Send(deadline(t), entry)) // it is there
	got := c.eventsOf(t)
	if len(got) != 1 {
		t.Fatalf("there are %d events, want the one that was sent twice", len(got))
	}
	e := got[0]
	told := e.Type == "Warning" && e.Reason == "ConfigRejected" && e.Note == "ns/v2 (UID: u2): bad" &&
		e.Action == apiserver.EventAction
	about := e.Related != nil && e.Related.Name == "v2" && e.EventTime.Time.Equal(time.Unix(1, 0))
	by := e.ReportingController == apiserver.EventController && e.ReportingInstance == c.node
	if !told || !about || !by {
		t.Errorf("the event is %+v, want it whole, whichever group it was made in", e)
	}
	direct := eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "direct-" + c.node}, EventTime: metav1.NowMicro(),
		ReportingController: apiserver.EventController, ReportingInstance: c.node, Action: apiserver.EventAction,
		Reason: "Direct", Type: "Normal", Regarding: e.Regarding,
	}
	client := kubernetes.NewForConfigOrDie(kubelet).EventsV1().Events(apiserver.EventNamespace)
	_, err = client.Create(deadline(t), &direct, metav1.CreateOptions{})
	if c.env.Minor(t) < 35 {
		if !apierrors.IsForbidden(err) {
			t.Errorf("a kubelet creates an event of events.k8s.io: %v, want 403 before 1.35", err)
		}
		return
	}
	must(t, err)
}

// TestCoreEventsWhereOthersAreForbidden: with a right to create events of the core group alone, the sender makes
// those. Without either right it says which one an administrator gives.
func TestCoreEventsWhereOthersAreForbidden(t *testing.T) {
	c := newCluster(t)
	user := "core-teller-" + c.node
	sender, err := apiserver.NewEventSender(clientFor(t, c.env.User(t, user)), c.node)
	must(t, err)
	entry := history.Entry{N: 1, At: time.Unix(1, 0), Kind: history.Adopted}
	err = sender.Send(deadline(t), entry)
	if !errors.Is(err, configsync.ErrForbidden) || !strings.Contains(err.Error(), "events.k8s.io") {
		t.Fatalf("without rights it gave %v, want that the right to create events of events.k8s.io is missing", err)
	}
	right := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}}
	c.bindIn(t, apiserver.EventNamespace, user, right)
	eventually(t, "the event", func() error { return sender.Send(deadline(t), entry) })
	must(t, sender.Send(deadline(t), entry)) // it is there
	if got := c.eventsOf(t); len(got) != 1 || got[0].Reason != "ConfigAdopted" {
		t.Errorf("the events are %+v, want the adoption alone", got)
	}
}
