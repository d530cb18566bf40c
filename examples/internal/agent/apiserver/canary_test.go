// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/apiserver"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/lkg"
)

// canary begins every value of the configs here.
const canary = "canary7f3a"

// setting is the config of the node here.
type setting struct {
	Value string `json:"value"`
}

// isRefused is a validator that refuses values that end in "refused", and says the value if it is chatty.
type isRefused struct{ chatty bool }

func (v isRefused) Validate(_ context.Context, s setting) error {
	switch {
	case !strings.HasSuffix(s.Value, "refused"):
		return nil
	case v.chatty:
		return fmt.Errorf("value: %s is not good", s.Value)
	}
	return errors.New("value: is not good")
}

// assignments is a Source and a Fetcher: it has the config of the last assignment.
type assignments struct {
	mu      sync.Mutex
	object  configsync.Object
	changed func()
}

// assign assigns a payload, in an object of its own.
func (a *assignments) assign(t *testing.T, n int, payload string) configsync.Object {
	t.Helper()
	name := fmt.Sprintf("cage-%d", n)
	raw, err := json.Marshal(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("u-" + name)},
		Immutable:  ptr.To(true),
		Data: map[string]string{
			"config": payload, "other": canary + "-other",
			configsync.KeyTrialDuration: "20ms", configsync.KeyMinHealthyRun: "10ms",
		},
	})
	must(t, err)
	o, err := configsync.ParseObject(raw)
	must(t, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.object = o
	if a.changed != nil {
		a.changed()
	}
	return o
}

func (a *assignments) Desired(context.Context) (*configsync.Spec, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &configsync.Spec{Namespace: a.object.Namespace, Name: a.object.Name, UID: a.object.UID}, nil
}

func (a *assignments) Watch(ctx context.Context, changed func()) error {
	a.mu.Lock()
	a.changed = changed
	a.mu.Unlock()
	changed()
	<-ctx.Done()
	return ctx.Err()
}

func (a *assignments) Fetch(context.Context, configsync.Spec) (configsync.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.object, nil
}

// tell assigns the payloads to a node one after the other, of which the first is good and no other. It returns what the
// node reports, and what its history and the events of it say.
func tell(t *testing.T, validator isRefused, payloads ...string) (reported, said string) {
	t.Helper()
	c, disk, report := newCluster(t), &configsynctest.Disk{}, &configsynctest.Recorder{}
	journal, err := history.Open(t.Context(), disk, nil)
	must(t, err)
	wanted, child := &assignments{}, &configsynctest.Child[setting]{}
	wanted.assign(t, 0, payloads[0])
	s, err := configsync.New(t.Context(), configsync.Options[setting]{
		Version: "v1.0.0", Key: "config", Codec: configsync.YAML[setting](configsync.YAMLOptions{}),
		Validators: []configsync.Validator[setting]{validator}, Default: func() setting { return setting{} },
		Store: disk, Source: wanted, Fetcher: wanted, Restarter: child, Reporter: configsync.Joined(journal, report),
		Probes: []configsync.Probe{child}, ProbeInterval: 10 * time.Millisecond,
		Bounds: lkg.Bounds{MinTrial: time.Millisecond},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- child.Run(ctx, s) }()
	eventually(t, "the first start", func() error {
		if s.Status().StartedAt.IsZero() {
			return errors.New("not started")
		}
		return nil
	})
	go func() { done <- s.Run(ctx) }()
	for i, payload := range payloads {
		o := wanted.assign(t, i, payload)
		eventually(t, "the word on "+o.Name, func() error {
			last := report.Last()
			isPromoted, isNamed := last.LastKnownGood.UID == o.UID, strings.Contains(last.Condition.Reason, o.UID)
			if i == 0 && !isPromoted || i > 0 && !isNamed {
				return fmt.Errorf("condition %+v, error %q", last.Condition, last.Error)
			}
			return nil
		})
	}
	cancel()
	for range 2 {
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the node ended with %v", err)
		}
	}
	sender, err := apiserver.NewEventSender(c.all, c.node)
	must(t, err)
	for _, e := range journal.Entries() {
		must(t, sender.Send(deadline(t), e))
	}
	return fmt.Sprintf("%+v", report.All()), fmt.Sprintf("%+v %+v", journal.Entries(), c.eventsOf(t))
}

// TestNoCanaryIsHeard: a node with canaries in payloads that are taken, and in payloads that each part refuses, says
// none of them in a line of its history or in an event, not even where a validator says values and so the reports have them.
// S-CS-07.
func TestNoCanaryIsHeard(t *testing.T) {
	for _, chatty := range []bool{false, true} {
		reported, said := tell(t, isRefused{chatty}, "value: "+canary+"-good\n", "value: "+canary+"-a\nother: "+canary+"-b\n",
			"value: ["+canary+"-list]\n", "value: \""+canary+"-open\n", "value: "+canary+"-refused\n")
		if heard := strings.Contains(reported, canary); heard != chatty {
			t.Errorf("a validator that says values (%t) is heard in the reports: %t", chatty, heard)
		}
		if i := strings.Index(said, canary); i >= 0 {
			t.Errorf("S-CS-07: a canary is in …%s…", said[max(0, i-80):min(len(said), i+80)])
		}
		for _, word := range []string{"Reason:ConfigPromoted", "Reason:ConfigRejected", "cage-0", "cage-4"} {
			if !strings.Contains(said, word) {
				t.Errorf("neither history nor events say %q", word)
			}
		}
	}
}
