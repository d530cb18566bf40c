// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	machines "github.com/belayproject/belay/machine"
	machinecontroller "github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const sharedCap = 2

// A shop is machines whose Nodes are on the API server, with one controller after the other. They share the ledger of a fleet's domain.
type shop struct {
	*realFleet
	core   kubernetes.Interface
	dying  *dying
	store  *controllertest.Store
	cloud  *machinetest.Memory
	slots  *rollout.Slots
	ctl    *machinecontroller.Controller
	keys   []machines.Key
	deaths int
}

func newShop(f *realFleet, n int) *shop {
	f.t.Helper()
	s := &shop{realFleet: f, dying: &dying{count: map[string]int{}}, store: &controllertest.Store{}, cloud: &machinetest.Memory{}}
	config := f.env.Config()
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { s.dying.next = next; return s.dying })
	s.core = kubernetes.NewForConfigOrDie(config)
	s.slots = &rollout.Slots{Ledger: must1(kube.NewLedgerStore(dynamic.NewForConfigOrDie(config), f.domain)), Caps: f.caps, Holders: s}
	for i := range n {
		m := machines.Machine{Key: machines.Key{Namespace: "fleet", Name: fmt.Sprintf("m%d", i)}, UID: fmt.Sprintf("uid-m%d", i)}
		m.Spec.Config, m.Spec.Versions.Kubelet, m.Spec.Deletion.Disks = []byte(`{"image":"a"}`), "v1.36.1", provider.Destroy
		s.keys = append(s.keys, s.store.Put(m).Key)
	}
	s.dying.begin(func() {})
	s.begin()
	return s
}

// begin begins a controller that knows nothing.
func (s *shop) begin() {
	s.t.Helper()
	var err error
	s.ctl, err = machinecontroller.New(machinecontroller.Options{
		Cluster: "c", Machines: s.store, Nodes: s, Provider: s.cloud, Drainer: cordons{s.core}, Budget: s.slots,
	})
	s.must(err)
}

// Gone says that a machine is gone if the store has none of that UID.
func (s *shop) Gone(ctx context.Context, name, uid string) (bool, error) {
	namespace, of, _ := strings.Cut(name, "/")
	m, err := s.store.Live(ctx, machines.Key{Namespace: namespace, Name: of})
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return m.UID != uid, err
}

func (s *shop) node(token string) string { return s.domain + "-" + token }

// Of is the Node of an instance, which its kubelet registers when it is asked for. It stays when the instance is gone, until somebody removes it.
func (s *shop) Of(ctx context.Context, token string) ([]machines.Node, error) {
	nodes := s.realFleet.core.CoreV1().Nodes()
	made, _ := s.cloud.Made(token)
	is := machines.Node{Versions: made.Desired.Versions}
	for _, i := range s.cloud.Instances() {
		if i.Token == token {
			is.ProviderID, is.Ready = i.ProviderID, i.State == provider.Running
		}
	}
	n, err := nodes.Get(ctx, s.node(token), metav1.GetOptions{})
	if apierrors.IsNotFound(err) && is.Ready {
		n, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node(token), Labels: map[string]string{"shop": s.domain}}}, metav1.CreateOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	is.Name, is.UID, is.Annotations = n.Name, string(n.UID), n.Annotations
	return []machines.Node{is}, nil
}

// Live implements the Nodes of machines; what Of says is not from a cache.
func (s *shop) Live(ctx context.Context, token string) ([]machines.Node, error) {
	return s.Of(ctx, token)
}

// Mark implements them too: nobody scales here.
func (s *shop) Mark(context.Context, machines.NodeRef, bool) error { return nil }

func (s *shop) Start(context.Context, machines.Node, machines.Machine) error { return nil }

func (s *shop) Remove(ctx context.Context, n machines.NodeRef) error {
	uid := types.UID(n.UID)
	err := s.core.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// pass reconciles each machine, in which the controller may die.
func (s *shop) pass() {
	for _, key := range s.keys {
		ctx, cancel := context.WithCancel(s.t.Context())
		s.dying.begin(cancel)
		_, s.last = s.ctl.Reconcile(ctx, key)
		if ctx.Err() != nil {
			s.deaths++
			s.begin()
		}
		cancel()
	}
}

// at reports whether all machines run that version.
func (s *shop) at(kubelet string) bool {
	for _, key := range s.keys {
		m, err := s.store.Live(s.t.Context(), key)
		s.must(err)
		if m.Phase != machines.PhaseRunning || m.Versions.Kubelet != kubelet || m.Update != nil || m.Release != nil {
			return false
		}
	}
	return true
}

// want edits all machines at once; a size is a replacement.
func (s *shop) want(kubelet, config string) {
	for _, key := range s.keys {
		s.store.Edit(key, func(m *machines.Machine) { m.Spec.Versions.Kubelet, m.Spec.Config = kubelet, []byte(config) })
	}
}

// A witness counts what is disturbed at a time, from every version that the API server has of Nodes and of the ledger.
type witness struct {
	mu              sync.Mutex
	cordoned        map[string]bool
	most, slots     int
	machines, nodes bool // slots of either were seen
}

func (s *shop) watch() *witness {
	s.t.Helper()
	w := &witness{cordoned: map[string]bool{}}
	nodes, err := s.realFleet.core.CoreV1().Nodes().Watch(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	ledgers, err := s.bed.client.Resource(v1alpha1.DisruptionLedgersResource).Watch(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + s.domain})
	s.must(err)
	var wg sync.WaitGroup
	wg.Go(func() { w.see(nodes, s.domain) })
	wg.Go(func() { w.read(ledgers) })
	s.t.Cleanup(func() { nodes.Stop(); ledgers.Stop(); wg.Wait() })
	return w
}

func (w *witness) see(events watch.Interface, domain string) {
	for e := range events.ResultChan() {
		n, ok := e.Object.(*corev1.Node)
		if !ok || !strings.HasPrefix(n.Name, domain+"-") {
			continue
		}
		w.mu.Lock()
		delete(w.cordoned, n.Name)
		if e.Type != watch.Deleted && n.Spec.Unschedulable {
			w.cordoned[n.Name] = true
		}
		w.most = max(w.most, len(w.cordoned))
		w.mu.Unlock()
	}
}

func (w *witness) read(events watch.Interface) {
	for e := range events.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		slots, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "slots")
		w.mu.Lock()
		w.slots = max(w.slots, len(slots))
		for _, slot := range slots {
			s, err := v1alpha1.ParseSlot(slot)
			_, _, lent := protocol.Slot{Rollout: s.Rollout}.Borrower()
			lent = lent && err == nil
			w.machines, w.nodes = w.machines || lent, w.nodes || !lent
		}
		w.mu.Unlock()
	}
}

// R-MA-29: a rollout and machines that are updated and replaced share one ledger with a cap of two on the real API server, and the controllers of both die again and
// again: there are never more than two nodes disturbed. A slot whose machine is gone is lent again.
func TestRolloutAndMachinesShareALedger(t *testing.T) {
	b := newBed(t)
	f := newFleet(b, "shared", sharedCap)
	f.caps = []protocol.Cap{{Max: sharedCap, From: "the domain"}}
	f.start(kubernetes.NewForConfigOrDie(b.env.Config()))
	s := newShop(f, 4)
	b.eventually("machines that run", b.now(func() error {
		if s.pass(); !s.at("v1.36.1") {
			return fmt.Errorf("not all run; the last error is %w", s.last)
		}
		return nil
	}))
	w := s.watch()
	s.want("v1.36.2", `{"image":"a"}`)
	deadline, replaced := time.Now().Add(4*time.Minute), false
	for f.rollout().Phase != v1alpha1.RolloutPhase(rollout.Completed) || !replaced || !s.at("v1.36.3") {
		if time.Now().After(deadline) {
			t.Fatalf("the rollout shows %+v, the machines are at v1.36.3: %t; the last error is %v", f.rollout(), s.at("v1.36.3"), f.last)
		}
		f.pass()
		f.agents()
		s.pass()
		if !replaced && s.at("v1.36.2") {
			s.want("v1.36.3", `{"image":"a","size":"l"}`)
			replaced = true
		}
	}
	w.mu.Lock()
	if w.most > sharedCap || w.slots > sharedCap || w.most == 0 || !w.machines || !w.nodes {
		t.Errorf("R-MA-29: %d nodes were cordoned and %d slots taken at a time, the cap is %d; slots of machines %t, of the rollout %t", w.most, w.slots, sharedCap, w.machines, w.nodes)
	}
	w.mu.Unlock()
	if f.deaths == 0 || s.deaths == 0 {
		t.Errorf("%d controllers of rollouts and %d of machines have died: that shows nothing", f.deaths, s.deaths)
	}
	t.Logf("%d controllers of rollouts and %d of machines have died", f.deaths, s.deaths)
	s.ghosts()
}

// ghosts fills the ledger for machines that are gone.
func (s *shop) ghosts() {
	s.t.Helper()
	config := s.env.Config() // these don't die
	config.QPS = -1
	s.slots.Ledger = must1(kube.NewLedgerStore(dynamic.NewForConfigOrDie(config), s.domain))
	for i := range sharedCap {
		done, why, err := s.slots.Take(s.t.Context(), fmt.Sprintf("fleet/ghost%d", i), fmt.Sprintf("ghost-%d", i), "1", "", "")
		if s.must(err); !done {
			s.t.Fatalf("ghost %d: %s", i, why)
		}
	}
	done, why, err := s.slots.Take(s.t.Context(), s.keys[0].String(), "uid-m0", "1", "", "")
	if s.must(err); !done {
		s.t.Errorf("R-MA-29: the slots of machines that are gone are not lent again: %s", why)
	}
	l, _, err := s.slots.Ledger.Load(s.t.Context())
	if s.must(err); len(l.Slots) != 1 {
		s.t.Errorf("R-MA-29: the ledger has %+v", l.Slots)
	}
}
