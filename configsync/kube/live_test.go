// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/internal/tier"
	"github.com/belayproject/belay/lkg"
)

// entry is the config of a live node.
type entry struct {
	Payload matrix.Payload `json:"payload"`
}

// entries decodes the payloads of the matrix: one of them can't be decoded, one is not valid.
type entries struct{ configsync.Codec[entry] }

func (e entries) Decode(key string, o configsync.Object) (entry, lkg.Limits, error) {
	cfg, limits, err := e.Codec.Decode(key, o)
	if err == nil && cfg.Payload == matrix.Undecodable {
		err = &configsync.DecodeError{Key: key, Err: errors.New("is the payload that can't be decoded")}
	}
	return cfg, limits, err
}

func (entries) Validate(_ context.Context, cfg entry) error {
	if cfg.Payload == matrix.Invalid {
		return errors.New("payload: must not be the one that is invalid")
	}
	return nil
}

// liveNode is a Syncer on the real API server with a child in memory.
type liveNode struct {
	syncer *configsync.Syncer[entry]
	child  *configsynctest.Child[entry]
	disk   *configsynctest.Disk
	report *configsynctest.Recorder
	base   context.Context // of what it runs in; nil means the test's
}

// brief are the entries of a config that is promoted within a few probes.
func brief() map[string]string {
	return map[string]string{configsync.KeyTrialDuration: "200ms", configsync.KeyMinHealthyRun: "100ms"}
}

// conduct is how the child takes a config.
func conduct(cfg entry) configsynctest.Conduct {
	if cfg.Payload == matrix.Crashing {
		return configsynctest.Conduct{CrashAfter: 10 * time.Millisecond}
	}
	return configsynctest.Conduct{}
}

// live starts a node that takes its source from source and everything else from the API server.
func (c *cluster) live(t *testing.T, source configsync.Source, reporters ...configsync.Reporter) *liveNode {
	t.Helper()
	return c.liveWith(t, source, func(*liveNode, *configsync.Options[entry]) {}, reporters...)
}

// liveWith is live with changes to the node's parts before it starts.
func (c *cluster) liveWith(
	t *testing.T, source configsync.Source, change func(*liveNode, *configsync.Options[entry]), reporters ...configsync.Reporter,
) *liveNode {
	t.Helper()
	fetcher, err := kube.NewConfigMapFetcher(c.client, kube.Options{})
	must(t, err)
	n := &liveNode{
		child: &configsynctest.Child[entry]{Delay: 10 * time.Millisecond, Conduct: conduct},
		disk:  &configsynctest.Disk{}, report: &configsynctest.Recorder{},
	}
	codec := entries{configsync.YAML[entry](configsync.YAMLOptions{})}
	o := configsync.Options[entry]{
		Version: "v1.0.0", Key: matrix.Key, Codec: codec, Validators: []configsync.Validator[entry]{codec},
		Default: func() entry { return entry{matrix.Local} },
		Store:   n.disk, Source: source, Fetcher: fetcher, Restarter: n.child,
		Reporter: configsync.Joined(append(reporters, n.report)...),
		Probes:   []configsync.Probe{n.child}, ProbeInterval: 50 * time.Millisecond,
		RetryMin: 20 * time.Millisecond, RetryMax: 200 * time.Millisecond, FollowJitter: 50 * time.Millisecond,
		Bounds: lkg.Bounds{MinTrial: time.Millisecond},
	}
	change(n, &o)
	n.syncer, err = configsync.New(t.Context(), o)
	must(t, err)
	n.run(t)
	return n
}

// run keeps the node running until the test ends.
func (n *liveNode) run(t *testing.T) {
	t.Helper()
	base := n.base
	if base == nil {
		base = t.Context()
	}
	ctx, cancel := context.WithCancel(base)
	done := make(chan error, 2)
	go func() { done <- n.child.Run(ctx, n.syncer) }()
	eventually(t, "the first start", func() error {
		if n.syncer.Status().StartedAt.IsZero() {
			return errors.New("not started")
		}
		return nil
	})
	go func() { done <- n.syncer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the node ended with %v", err)
			}
		}
	})
}

// is waits until the node reports what the step wants.
func (n *liveNode) is(t *testing.T, c *cluster, step matrix.Step) {
	t.Helper()
	eventually(t, "the node after step "+step.Name, func() error {
		s := n.report.Last()
		got := matrix.Node{Active: c.using(s.Active), Status: s.Condition.Status, Error: s.Error != ""}
		if step.Node.Good != "" {
			got.Good = c.using(s.LastKnownGood)
		}
		if got != step.Node {
			return fmt.Errorf("the node reports %+v, want %+v; condition %+v, error %q", got, step.Node, s.Condition, s.Error)
		}
		return nil
	})
}

// TestMatrixOnLiveNodes tells every story of the matrix to a live node on a real API server, by annotation and by NodeConfig, each
// written by a plain client as anybody may (R-CS-05):
// R-CS-21, R-CS-22..31, R-CS-33, R-CS-37, R-CS-40, R-CS-41, R-CS-56, R-CS-58, R-CS-75, R-CS-82.
// L-CS-10, L-CS-40.
func TestMatrixOnLiveNodes(t *testing.T) {
	for i, row := range matrix.Rows() {
		t.Run("annotation/"+row.Name, func(t *testing.T) {
			t.Parallel()
			row := matrix.Rows()[i] // rows hold state: each story has its own
			c := newCluster(t)
			source, err := kube.NewAnnotationSource(c.client, c.node, kube.Options{})
			must(t, err)
			n := c.live(t, source)
			for _, step := range row.Steps {
				must(t, step.Do(deadline(t), assigned{c, c.annotate}))
				n.is(t, c, step)
			}
		})
		if row.Steps[0].Unchecked {
			continue // the schema drops it
		}
		t.Run("NodeConfig/"+row.Name, func(t *testing.T) {
			t.Parallel()
			row := matrix.Rows()[i]
			c := newCluster(t)
			must(t, c.assignNodeConfig(deadline(t), ""))
			source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
			must(t, err)
			n := c.live(t, source)
			for _, step := range row.Steps {
				err := step.Do(deadline(t), assigned{c, c.assignNodeConfig})
				if errors.Is(step.Err, matrix.ErrInvalid) {
					if err == nil {
						t.Errorf("%s: the API server took an invalid source", step.Name)
					}
					continue
				}
				must(t, err)
				n.is(t, c, step)
			}
		})
	}
}

// TestHundredFlipsLeakNothing moves a node between two configs a hundred times: R-CS-02, R-CS-17.
func TestHundredFlipsLeakNothing(t *testing.T) {
	flips := 30
	if tier.RunsWhole(t) {
		flips = 100
	}
	c := newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), ""))
	source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
	must(t, err)
	status, err := kube.NewStatusReporter(c.client, c.node, kube.Options{})
	must(t, err)
	n := c.live(t, source, status)
	var refs []matrix.Ref
	for i, p := range []matrix.Payload{matrix.GoodA, matrix.GoodB} {
		r, err := c.Create(deadline(t), matrix.ConfigMap{Name: fmt.Sprintf("flip-%d", i), Immutable: true, Payloads: map[string]matrix.Payload{matrix.Key: p}})
		must(t, err)
		refs = append(refs, r)
	}
	flip := func(i int) {
		r := refs[i%2]
		must(t, c.assignNodeConfig(deadline(t), r.Source()))
		eventually(t, fmt.Sprintf("flip %d", i), func() error {
			if got := n.report.Last().Active.UID; got != r.UID {
				return fmt.Errorf("the node runs UID %q, want %q: %+v", got, r.UID, n.syncer.Status())
			}
			return nil
		})
	}
	for i := range 10 {
		flip(i)
	}
	before := runtime.NumGoroutine()
	for i := 10; i < 10+flips; i++ {
		flip(i)
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines after %d flips, %d before", after, flips, before)
	}
	kept, err := n.disk.List(t.Context(), "checkpoints")
	if err != nil || len(kept) > 3 {
		t.Errorf("%d checkpoints %q after %d flips (%v), want at most 3", len(kept), kept, flips, err)
	}
}
