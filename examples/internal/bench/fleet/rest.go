// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/examples/internal/bench/audit"
	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// The bars of F2, memory in MiB.
const (
	mostAnonymous = 12
	mostResident  = 45
	mostCalls     = 0
)

// auditPolicy logs what the agent asks.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + guardedUser + `"]
- level: None
`

const (
	restNode  = "resting"
	leases    = "belay-agents"
	kubeletOf = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: %d\n"
)

// A repose is F2 while it lasts.
type repose struct {
	w           *world
	agent, peer *testenv.Process
	settle      time.Duration
	window      time.Duration

	done   chan struct{} // closed when the rest is known
	spell  spell
	before *tally // what the agent asked until the window began
	within *tally // and in it
	err    error
}

// rest begins F2: the agent supervises a child, has a config that was promoted, takes part in rollouts by hooks, and
// has nothing to do. It goes on beside what is measured next, which is about other processes: [bench.rested] waits for
// its end.
func (b *bench) rest(ctx context.Context) (err error) {
	if b.agent == "" || b.bare == "" {
		return errors.New("the programs -agent and -bare must be given")
	}
	w, err := newWorld(ctx, b.dir, testenv.Options{AuditPolicy: auditPolicy})
	if err != nil {
		return err
	}
	well := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	closed := func() error { well.Close(); return w.close() }
	r := &repose{w: w, settle: time.Minute, window: 12 * time.Minute, done: make(chan struct{}), before: newTally(), within: newTally()}
	if b.Quick {
		r.settle, r.window = 10*time.Second, 30*time.Second
	}
	if r.agent, err = b.resting(ctx, w, well.URL); err == nil {
		r.peer = w.env.Process("bare", []string{b.bare, w.env.Kubeconfig(), restNode}, nil)
		err = r.peer.Start(ctx)
	}
	if err != nil {
		return errors.Join(err, closed())
	}
	go func() {
		defer close(r.done)
		r.err = errors.Join(r.watch(ctx), closed())
	}()
	b.repose = r
	return nil
}

// rested prints F2 once its window is over; nothing where it did not begin.
func (b *bench) rested() error {
	r := b.repose
	if r == nil {
		return nil
	}
	if <-r.done; r.err != nil {
		return fmt.Errorf("F2: %w", r.err)
	}
	b.printRest(r.spell, r.window)
	b.printCalls(r)
	return nil
}

// watch measures, and reads what the agent has asked.
func (r *repose) watch(ctx context.Context) (err error) {
	if !backoff.Sleep(ctx, r.settle) {
		return ctx.Err()
	}
	log := audit.New(r.w.env.AuditLog())
	if err := log.Read(r.before.add); err != nil {
		return err
	}
	if r.spell, err = watched(ctx, r.window, r.agent.PID(), r.peer.PID()); err != nil {
		return err
	}
	if !backoff.Sleep(ctx, time.Second) { // the log may be behind the answers
		return ctx.Err()
	}
	if err := log.Read(r.within.add); err != nil {
		return err
	}
	if r.within.renewals == 0 || r.before.calls[asksGuard] == 0 {
		return fmt.Errorf("the audit log does not even have the requests for the Lease and the guard: %+v, then %+v", r.before, r.within)
	}
	return nil
}

// resting starts the agent and waits until it has nothing more to do.
func (b *bench) resting(ctx context.Context, w *world, health string) (*testenv.Process, error) {
	child, err := exec.LookPath("sleep")
	if err != nil {
		return nil, err
	}
	if err := w.orders(ctx); err != nil {
		return nil, err
	}
	if err := w.files(); err != nil {
		return nil, err
	}
	kubeconfig, err := w.guarded(ctx)
	if err != nil {
		return nil, err
	}
	agent := w.env.Process("agent", []string{
		b.agent, "run", "--node-name=" + restNode, "--kubeconfig=" + kubeconfig, "--state-dir=" + filepath.Join(w.dir, "state"),
		"--init-config=" + filepath.Join(w.dir, "init.yaml"), "--render=" + filepath.Join(w.dir, "kubelet.conf"), "--prove-kubelet=none", "--health-url=" + health,
		"--min-trial=1s", "--default-trial=2s", "--probe-interval=1s", "--hooks=" + filepath.Join(w.dir, "hooks"), "--lease-namespace=" + leases,
		"--guard-policy=" + guardName, "--node-probes=false", // its child is no kubelet
		"--", child, "infinity",
	}, nil)
	if err := agent.Start(ctx); err != nil {
		return nil, err
	}
	cm, err := w.admin.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kubelet"}, Immutable: ptr.To(true), Data: map[string]string{"kubelet": fmt.Sprintf(kubeletOf, 110)},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if err := w.assign(ctx, restNode, cm); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		state, done, err := w.settled(ctx, string(cm.UID))
		if err != nil || done {
			return agent, err
		}
		if time.Now().After(deadline) || !backoff.Sleep(ctx, 200*time.Millisecond) {
			text, _ := os.ReadFile(agent.Log())
			return nil, fmt.Errorf("the agent has not promoted its config, or takes no part in rollouts: %s; its log: %s", state, text)
		}
	}
}

// settled says whether the agent has promoted that config and said what it runs.
func (w *world) settled(ctx context.Context, uid string) (state string, done bool, err error) {
	status, err := w.status(ctx, restNode)
	if err != nil {
		return "", false, err
	}
	shadow, err := w.all.Resource(v1alpha1.NodeShadowsResource).Get(ctx, restNode, metav1.GetOptions{})
	if err != nil {
		return "", false, err
	}
	good, _, _ := unstructured.NestedString(status, "lastKnownGood", "configMapRef", "uid")
	runs, _, _ := unstructured.NestedString(shadow.Object, "status", "current", "name")
	return fmt.Sprint(status, shadow.Object["status"]), good == uid && runs == "v1", nil
}

// files writes those of the agent.
func (w *world) files() error {
	files := map[string]string{"init.yaml": fmt.Sprintf(kubeletOf, 100)}
	for name, answer := range map[string]string{"observe": `{"current": {"name": "v1"}}`, "apply": "{}", "verify": "{}"} {
		files["hooks/"+name] = "#!/bin/sh\necho '" + answer + "'\n"
	}
	for name, text := range files {
		path := filepath.Join(w.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			return err
		}
	}
	return nil
}

// orders makes a node with all that an agent follows.
func (w *world) orders(ctx context.Context) error {
	if err := w.env.InstallCRDs(ctx, v1alpha1.CRDs()...); err != nil {
		return err
	}
	node, err := w.node(ctx, restNode)
	if err != nil {
		return err
	}
	shadow := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeUID": string(node.UID)}}}
	shadow.SetAPIVersion(v1alpha1.GroupVersion.String())
	shadow.SetKind(v1alpha1.NodeShadowKind)
	shadow.SetName(restNode)
	shadow.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: restNode, UID: node.UID}})
	if _, err := w.all.Resource(v1alpha1.NodeShadowsResource).Create(ctx, shadow, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = w.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leases}}, metav1.CreateOptions{})
	return err
}

func (b *bench) printRest(s spell, window time.Duration) {
	mib := func(v float64) string { return runner.Show(v) + "MiB" }
	ours, peer := s.most[0], s.most[1]
	more := fmt.Sprintf("the most in %v of rest; the peer is a typed client with one watch; the agent used %.2f%% of a processor", window, 100*s.used[0])
	b.Print(runner.Line{
		Name: "F2.anonymous", Ours: mib(ours.anonymous), Peer: mib(peer.anonymous), Ratio: runner.Over(ours.anonymous, peer.anonymous),
		Bar: fmt.Sprintf("%dMiB", mostAnonymous), Good: ours.anonymous <= mostAnonymous, More: more,
	})
	b.Print(runner.Line{
		Name: "F2.resident", Ours: mib(ours.resident), Peer: mib(peer.resident), Ratio: runner.Over(ours.resident, peer.resident),
		Bar: fmt.Sprintf("%dMiB", mostResident), Good: ours.resident <= mostResident, More: more,
	})
}

// printCalls prints what the agent has asked for while it had nothing to do. Nothing that it asks is left out: a call,
// a renewal, or a watch.
func (b *bench) printCalls(r *repose) {
	n, short := r.within.total(), ""
	if r.window <= resync {
		short = fmt.Sprintf("; the window is too short to have what it asks each %v", resync)
	}
	b.Print(runner.Line{
		Name: "F2.calls", Ours: runner.Show(float64(n) / r.window.Minutes()), Bar: fmt.Sprint(mostCalls), Good: n <= mostCalls,
		More: fmt.Sprintf("a minute, %d in %v: %s; the guard was asked %d times before, and is each hour%s",
			n, r.window, cmp.Or(list(r.within.calls, 1), "none"), r.before.calls[asksGuard], short),
	})
	most := atMost(r.window, renewal)
	b.Print(runner.Line{
		Name: "F2.renewals", Ours: fmt.Sprint(r.within.renewals), Bar: fmt.Sprint(most), Good: r.within.renewals <= most,
		More: fmt.Sprintf("of the Lease, in %v: at most one each %v", r.window, renewal),
	})
	watches, excess := r.within.begun(r.window)
	more := fmt.Sprintf("begun anew in %v: %s; each lasts for at least %v", r.window, cmp.Or(list(r.within.watches, 1), "none"), rewatch)
	if len(excess) > 0 {
		more += "; too many: " + strings.Join(excess, ", ")
	}
	b.Print(runner.Line{
		Name: "F2.watches", Ours: fmt.Sprint(watches), Bar: fmt.Sprint(len(restWatches) * atMost(r.window, rewatch)), Good: excess == nil, More: more,
	})
}
