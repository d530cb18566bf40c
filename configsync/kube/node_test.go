// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/lkg"
)

// payload is the config of the nodes in these tests.
type payload struct {
	Payload matrix.Payload `json:"payload"`
}

type sane struct{}

func (sane) Validate(_ context.Context, p payload) error {
	if p.Payload == matrix.Invalid {
		return errors.New("payload: must not be the invalid one")
	}
	return nil
}

// agent is a whole node on the real API server: a Syncer over a real store, and a child that it restarts.
type agent struct {
	*cluster
	syncer *configsync.Syncer[payload]
}

// startAgent runs an agent until the test ends.
func startAgent(t *testing.T, c *cluster, source configsync.Source, reporters ...configsync.Reporter) *agent {
	t.Helper()
	store, err := checkpoint.Open(t.TempDir(), checkpoint.Options{})
	must(t, err)
	child := &configsynctest.Child[payload]{Delay: 10 * time.Millisecond, Conduct: func(p payload) configsynctest.Conduct { return conduct(entry(p)) }}
	s, err := configsync.New(t.Context(), configsync.Options[payload]{
		Version: "v1.0.0", Key: matrix.Key, Codec: configsync.YAML[payload](configsync.YAMLOptions{}),
		Validators: []configsync.Validator[payload]{sane{}}, Default: func() payload { return payload{matrix.Local} },
		Store: store, Source: source, Fetcher: fetcherOf(t, c), Restarter: child, Probes: []configsync.Probe{child},
		Reporter: configsync.Joined(reporters...),
		RetryMin: 50 * time.Millisecond, RetryMax: 300 * time.Millisecond, ProbeInterval: 50 * time.Millisecond, FollowJitter: -1,
		Bounds: lkg.Bounds{MinTrial: time.Millisecond},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- child.Run(ctx, s) }()
	eventually(t, "the first start", func() error {
		if len(child.Starts()) == 0 {
			return errors.New("no start")
		}
		return nil
	})
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the agent ended with %v", err)
			}
		}
		must(t, store.Close())
	})
	return &agent{c, s}
}

// TestReportsOfLiveNodes tells stories of the matrix to nodes that report to the API server: what it holds after each step, in the
// Node and in the NodeConfig, always with a cause. Of the sources that a schema refuses one is told, by annotation; the others are told
// by NodeConfig. Covers R-CS-04/33/61/70/74/75/82.
// L-CS-08.
func TestReportsOfLiveNodes(t *testing.T) {
	t.Parallel()
	for i, row := range matrix.Rows() {
		if errors.Is(row.Steps[0].Err, matrix.ErrInvalid) && row.Name != "all-nil" {
			continue // to a node they are alike
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			row := matrix.Rows()[i] // rows hold state: each story has its own
			c := newCluster(t)
			condition, err := kube.NewNodeConditionReporter(c.client, c.node, kube.Options{})
			must(t, err)
			if slices.ContainsFunc(row.Steps, func(s matrix.Step) bool { return errors.Is(s.Err, matrix.ErrInvalid) }) {
				source, err := kube.NewAnnotationSource(c.client, c.node, kube.Options{})
				must(t, err)
				tellLive(t, row, assigned{c, c.annotate}, startAgent(t, c, source, condition), false)
				return
			}
			must(t, c.assignNodeConfig(deadline(t), ""))
			source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
			must(t, err)
			status, err := kube.NewStatusReporter(c.client, c.node, kube.Options{})
			must(t, err)
			tellLive(t, row, assigned{c, c.assignNodeConfig}, startAgent(t, c, source, condition, status), true)
		})
	}
}

// tellLive takes the steps of a row and waits for what each asks for. What then should stay is looked at for a while.
func tellLive(t *testing.T, row matrix.Row, w assigned, a *agent, nodeConfig bool) {
	for _, step := range row.Steps {
		if err := step.Do(deadline(t), w); err != nil {
			t.Fatalf("%s: %v", step.Name, err)
		}
		look := func() error { return a.like(t, step, nodeConfig) }
		settles(t, step.Name, look)
	}
}

// settles waits until look has been content for a fifth of a second without a break.
func settles(t *testing.T, what string, look func() error) {
	t.Helper()
	var since time.Time
	eventually(t, what, func() error {
		if err := look(); err != nil {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if held := time.Since(since); held < 200*time.Millisecond {
			return fmt.Errorf("it is so for %s only", held)
		}
		return nil
	})
}

// like compares the node with what a step asks for.
func (a *agent) like(t *testing.T, step matrix.Step, nodeConfig bool) error {
	s := a.syncer.Status()
	is := matrix.Node{Active: a.using(s.Active), Status: s.Condition.Status, Error: s.Error != ""}
	if step.Node.Good != "" {
		is.Good = a.using(s.LastKnownGood)
	}
	if is != step.Node {
		return fmt.Errorf("the node is %+v, want %+v; its error is %q", is, step.Node, s.Error)
	}
	node, err := a.admin.CoreV1().Nodes().Get(deadline(t), a.node, metav1.GetOptions{})
	must(t, err)
	var ours []corev1.NodeCondition
	for _, c := range node.Status.Conditions {
		if c.Type == lkg.ConditionType {
			ours = append(ours, c)
		}
	}
	if len(ours) != 1 || ours[0].Status != corev1.ConditionStatus(step.Node.Status) || ours[0].Message == "" || ours[0].Reason == "" {
		return fmt.Errorf("the Node says %+v, want %s with effect and cause", ours, step.Node.Status)
	}
	if step.Node.Error && !strings.Contains(ours[0].Reason, step.Cause) {
		return fmt.Errorf("the Node gives the cause %q, want it to name %q", ours[0].Reason, step.Cause)
	}
	if !nodeConfig {
		return nil
	}
	got := a.nodeConfig(t).Status
	if got.Active == nil || (got.Active.ConfigMapRef == nil) != (step.Node.Active == matrix.Local) || (got.Error != "") != step.Node.Error {
		return fmt.Errorf("the NodeConfig says active %+v, error %q, want %+v", got.Active, got.Error, step.Node)
	}
	return nil
}

// using says which payload a reference names.
func (c *cluster) using(r lkg.Ref) matrix.Payload {
	if r.IsLocal() {
		return matrix.Local
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[r.Digest][r.Key]
}

// TestReportsToObjectsCreatedAgain shows that a NodeConfig that was deleted and created again gets its status, though nothing else
// changed for the node, and however fast it went (C-08: silence helps nobody; C-17: the world is compared, not a memory of it).
func TestReportsToObjectsCreatedAgain(t *testing.T) {
	c := newCluster(t)
	ref, err := c.Create(deadline(t), goodMap("kept"))
	must(t, err)
	must(t, c.assignNodeConfig(deadline(t), ref.Source()))
	source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
	must(t, err)
	status, err := kube.NewStatusReporter(c.client, c.node, kube.Options{})
	must(t, err)
	startAgent(t, c, source, status)
	for i := range 5 {
		eventually(t, fmt.Sprintf("the status of object %d", i), func() error {
			s := c.nodeConfig(t).Status
			if s.Active == nil || s.Active.ConfigMapRef == nil || s.Active.ConfigMapRef.UID != ref.UID || s.Error != "" || len(s.Conditions) != 1 {
				return fmt.Errorf("the NodeConfig says %+v", s)
			}
			return nil
		})
		must(t, c.all.Resource(v1alpha1.NodeConfigsResource).Delete(deadline(t), c.node, metav1.DeleteOptions{}))
		must(t, c.assignNodeConfig(deadline(t), ref.Source()))
	}
}
