// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// fleetSize is how many nodes the fleet of the test has, dieEvery how many writes a controller lives.
const (
	fleetSize = 12
	dieEvery  = 4
)

// R-RO-01: a rollout over the real API server with agents in process, whose controller dies at every fourth write, before it or after it by turns:
// every node gets the revision once, by one attempt, and is given back.
func TestControllerDiesAgainAndAgain(t *testing.T) {
	b := newBed(t)
	f := newFleet(b, "dies", 3)
	deadline := time.Now().Add(4 * time.Minute)
	for f.rollout().Phase != v1alpha1.RolloutPhase(rollout.Completed) || !f.clean() {
		if time.Now().After(deadline) {
			t.Fatalf("the rollout shows %+v; the last error is %v", f.rollout(), f.last)
		}
		f.pass()
		f.agents()
	}
	l, _, err := must1(kube.NewLedgerStore(b.client, "dies")).Load(b.ctx())
	b.must(err)
	if l.Epoch != fleetSize || len(l.Slots) != 0 {
		t.Errorf("R-RO-01: %d attempts and %d slots, want %d attempts, one for each node, and no slot", l.Epoch, len(l.Slots), fleetSize)
	}
	for name, a := range f.all {
		if a.applied != 1 || a.current.Name != "v2-dies" {
			t.Errorf("R-RO-01: node %q was changed %d times and runs %q, want v2 by one change", name, a.applied, a.current.Name)
		}
	}
	if f.most > 3 || f.deaths == 0 {
		t.Errorf("R-RO-01: %d slots at a time, the cap is 3; %d deaths", f.most, f.deaths)
	}
	passes, writes := 20, f.dying.writes
	for range passes {
		f.pass()
	}
	if f.dying.writes != writes {
		t.Errorf("%d idle passes have written %d times", passes, f.dying.writes-writes)
	}
	t.Logf("%d controllers have died; calls for %d nodes: %v", f.deaths, fleetSize, f.dying.count)
}

// A realFleet is nodes on the API server with their agents, and one controller after the other.
type realFleet struct {
	*bed
	domain string
	// caps are those of others who use the ledger.
	caps   []protocol.Cap
	dying  *dying
	client dynamic.Interface
	ctl    *controller.Controller
	all    map[string]*machine
	deaths int
	most   int
	last   error
}

// newFleet makes a fleet with a rollout of its own domain, whose cap is so many nodes.
func newFleet(b *bed, domain string, most int32) *realFleet {
	b.t.Helper()
	f := &realFleet{bed: b, domain: domain, all: map[string]*machine{}, dying: &dying{count: map[string]int{}}}
	pinned := v1alpha1.PinnedRevision{Name: "v2-" + domain, Digest: v1alpha1.OpaqueDigest("two")}
	b.create(v1alpha1.RevisionsResource, "Revision", "v2-"+domain, &v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{Digest: pinned.Digest, Opaque: "two"}})
	b.create(v1alpha1.RolloutsResource, v1alpha1.RolloutKind, domain, &v1alpha1.Rollout{Spec: v1alpha1.RolloutSpec{
		Domain: domain, Revision: pinned, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": domain}},
		Caps: []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromInt32(most)}},
	}})
	for i := range fleetSize {
		name := fmt.Sprintf("%s-%02d", domain, i)
		n, err := b.env.CreateNode(b.ctx(), name, func(n *corev1.Node) { n.Labels = map[string]string{"fleet": domain} })
		b.must(err)
		ready := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
		_, err = b.core.CoreV1().Nodes().Patch(b.ctx(), name, types.StrategicMergePatchType, ready, metav1.PatchOptions{}, "status")
		b.must(err)
		f.all[name] = f.agent(name, string(n.UID))
	}
	config := b.env.Config()
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { f.dying.next = next; return f.dying })
	f.client = dynamic.NewForConfigOrDie(config)
	f.start(kubernetes.NewForConfigOrDie(config))
	return f
}

// start begins a controller that knows nothing.
func (f *realFleet) start(core kubernetes.Interface) {
	var o controller.Options
	list := func() []*corev1.Node {
		all, err := f.core.CoreV1().Nodes().List(f.ctx(), metav1.ListOptions{LabelSelector: "fleet=" + f.domain})
		f.must(err)
		nodes := make([]*corev1.Node, len(all.Items))
		for i := range all.Items {
			nodes[i] = &all.Items[i]
		}
		return nodes
	}
	o.Ledger, o.Fleet = must1(kube.NewLedgerStore(f.client, f.domain)), must1(kube.NewFleet(f.client, list))
	o.Shadows = must1(kube.NewRecords(must1(kube.NewShadows(f.client)).In(f.domain), f.watched()))
	o.Rollouts = must1(kube.NewRollouts(f.client, kube.RolloutsOptions{Domain: f.domain, List: f.listed, Revision: f.revision}))
	o.Drainer, o.Caps = cordons{core}, f.caps
	var err error
	f.ctl, err = controller.New(o)
	f.must(err)
	f.dying.o = o
}

// watched are the shadows as a cache has them.
func (f *realFleet) watched() func() []*v1alpha1.NodeShadow {
	shadows := must1(kube.NewShadowCache(f.bed.client))
	go func() {
		if err := shadows.Run(f.t.Context(), func() {}); err != nil {
			f.t.Error(err)
		}
	}()
	f.eventually("the cache of shadows", func(context.Context) error {
		if !shadows.Synced() {
			return errors.New("it is not synced")
		}
		return nil
	})
	return shadows.List
}

func (f *realFleet) rollout() v1alpha1.RolloutStatus { return f.listed()[0].Status }

// listed are the Rollouts as the API server has them.
func (f *realFleet) listed() []*v1alpha1.Rollout {
	list, err := f.bed.client.Resource(v1alpha1.RolloutsResource).List(f.ctx(), metav1.ListOptions{})
	f.must(err)
	var all []*v1alpha1.Rollout
	for i := range list.Items {
		r := &v1alpha1.Rollout{}
		f.must(apiruntime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, r))
		if r.Spec.Domain == f.domain {
			all = append(all, r)
		}
	}
	return all
}

func (f *realFleet) revision(name string) (*v1alpha1.Revision, bool) {
	u, err := f.bed.client.Resource(v1alpha1.RevisionsResource).Get(f.ctx(), name, metav1.GetOptions{})
	if err != nil {
		return nil, false
	}
	var r v1alpha1.Revision
	f.must(apiruntime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r))
	return &r, true
}

// create makes an object of this package's group.
func (b *bed) create(resource schema.GroupVersionResource, kind, name string, object any) {
	b.t.Helper()
	fields, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(object)
	b.must(err)
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	_, err = b.client.Resource(resource).Create(b.ctx(), u, metav1.CreateOptions{})
	b.must(err)
}

// pass makes a pass, in which the controller may die.
func (f *realFleet) pass() {
	ctx, cancel := context.WithCancel(klog.NewContext(f.t.Context(), klog.Logger{}))
	defer cancel()
	f.dying.begin(cancel)
	_, f.last = f.ctl.Reconcile(ctx, "")
	if ctx.Err() != nil {
		f.deaths++
		ctl, err := controller.New(f.dying.o)
		f.must(err)
		f.ctl = ctl
	}
	l, _, err := must1(kube.NewLedgerStore(f.bed.client, f.domain)).Load(f.ctx())
	if err == nil {
		f.most = max(f.most, len(l.Slots))
	}
}

// clean reports whether no mark and no cordon is left.
func (f *realFleet) clean() bool {
	for name := range f.all {
		n, err := f.core.CoreV1().Nodes().Get(f.ctx(), name, metav1.GetOptions{})
		f.must(err)
		if n.Spec.Unschedulable || n.Annotations[controller.HeldAnnotation] != "" {
			return false
		}
	}
	return true
}

// dying are the calls of a controller that dies.
type dying struct {
	next   http.RoundTripper
	o      controller.Options
	mu     sync.Mutex
	kill   func()
	writes int
	count  map[string]int
}

var errDead = errors.New("the controller has died")

func (d *dying) begin(kill func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kill = kill
}

func (d *dying) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	d.count[r.Method]++
	if r.Method == http.MethodGet {
		d.mu.Unlock()
		return d.next.RoundTrip(r)
	}
	d.writes++
	kill, n := d.kill, d.writes
	d.mu.Unlock()
	switch n % (2 * dieEvery) {
	case 0:
		kill()
		return nil, errDead
	case dieEvery:
		resp, err := d.next.RoundTrip(r)
		if err == nil {
			err = resp.Body.Close()
		}
		kill()
		return nil, errors.Join(errDead, err)
	}
	return d.next.RoundTrip(r)
}

// cordons are a drainer for nodes without pods.
type cordons struct{ core kubernetes.Interface }

const cordonMark = "test.belay.dev/attempt"

func (cordons) Held(annotations map[string]string) (int64, bool) {
	k, err := strconv.ParseInt(annotations[cordonMark], 10, 64)
	return k, err == nil
}

func (c cordons) patch(ctx context.Context, node, uid string, mark *string) (bool, error) {
	text := "null"
	if mark != nil {
		text = strconv.Quote(*mark)
	}
	body := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%s}},"spec":{"unschedulable":%t}}`, uid, cordonMark, text, mark != nil)
	_, err := c.core.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	return err == nil, err
}

func (c cordons) Cordon(ctx context.Context, node, uid string, attempt int64, _ bool) (bool, error) {
	text := strconv.FormatInt(attempt, 10)
	return c.patch(ctx, node, uid, &text)
}

func (c cordons) Drain(context.Context, string, string, int64, bool) (bool, string, time.Duration, error) {
	return true, "", 0, nil
}

func (c cordons) Release(ctx context.Context, node, uid string, attempt int64) (bool, error) {
	n, err := c.core.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if k, held := c.Held(n.Annotations); !held || k > attempt {
		return true, nil
	}
	return c.patch(ctx, node, uid, nil)
}

// A machine is a node that does what its agent says.
type machine struct {
	*nodeagent.Agent
	current, previous protocol.Revision
	applied           int
	disk              []byte
	preflight         func(context.Context) error // nil for none
}

func (f *realFleet) agent(name, uid string) *machine {
	m := &machine{current: protocol.Revision{Name: "v1", Digest: "sha256:11"}}
	a, err := nodeagent.New(nodeagent.Options{
		Shadows: must1(kube.NewAgentShadow(f.shadows, name, nil)), Disk: m, Updater: m,
		NodeUID: func(context.Context) (string, error) { return uid, nil }, VerifyFor: time.Millisecond, VerifyEvery: time.Millisecond,
	})
	f.must(err)
	m.Agent = a
	return m
}

// agents has every agent do what it can do now.
func (f *realFleet) agents() {
	for name, m := range f.all {
		after := time.Millisecond
		for n := 0; after > 0 && after < time.Second && n < 20; n++ {
			var err error
			if after, err = m.Reconcile(klog.NewContext(f.t.Context(), klog.Logger{}), name); err != nil {
				f.t.Fatalf("the agent of node %q: %v", name, err)
			}
			<-time.After(min(after, time.Second))
		}
	}
}

func (m *machine) Get(context.Context, string) ([]byte, error) {
	if m.disk == nil {
		return nil, fs.ErrNotExist
	}
	return m.disk, nil
}

func (m *machine) Put(_ context.Context, _ string, payload []byte) error {
	m.disk = payload
	return nil
}

func (m *machine) Observe(context.Context) (nodeagent.Observation, error) {
	return nodeagent.Observation{Current: m.current, Previous: m.previous, BootID: "boot"}, nil
}

func (m *machine) Preflight(ctx context.Context, _ nodeagent.Attempt) error {
	if m.preflight == nil {
		return nil
	}
	return m.preflight(ctx)
}

func (m *machine) Prepare(context.Context, protocol.Revision) error { return nil }

func (m *machine) Apply(_ context.Context, a nodeagent.Attempt) error {
	m.applied++
	m.previous, m.current = m.current, a.Revision
	return nil
}

func (m *machine) Verify(context.Context, nodeagent.Attempt) (nodeagent.Health, error) {
	return nodeagent.Health{Verdict: nodeagent.Pass}, nil
}

func (m *machine) Revert(ctx context.Context, a nodeagent.Attempt) error { return m.Apply(ctx, a) }
