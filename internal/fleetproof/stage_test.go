// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/demo/rollouts"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/testenv"
)

// user is who agents and controllers are: nobody whom the API server lets pass before others.
const user = "soak"

// A stage is a fleet, and what is done to it.
type stage struct {
	t     *testing.T
	r     *rand.Rand
	chaos time.Duration
	bare  bool // no more than etcd and the API server

	env     *testenv.Env
	core    kubernetes.Interface
	fleet   *rollouts.Fleet
	plan    rollouts.Plan
	proxy   *proxy
	connect *rest.Config // for agents, by the proxy
	calls   *calls
	audit   *auditor

	mu     sync.Mutex
	agents map[string]*agent

	controllers [2]*leader
	faults      map[string]int
	joined      int
	round       int
	good        string // the config that every node runs at the end of a round
	grumbles    []string
}

// newStage has a fleet whose agents run and whose controllers lead. With many nodes there is work on them.
func newStage(t *testing.T) *stage {
	t.Helper()
	nodes, chaos := size(t)
	return (&stage{t: t, chaos: chaos, bare: chaos == 0, calls: &calls{}}).set(nodes)
}

// stageWith has a few nodes and no work on them. What the agents ask for is looked at.
func stageWith(t *testing.T, look *calls) *stage {
	t.Helper()
	return (&stage{t: t, bare: true, calls: look}).set(fewNodes)
}

// set sets the stage.
func (s *stage) set(nodes int) *stage {
	t := s.t
	t.Helper()
	s.r, s.plan, s.agents, s.faults = draws(t), rollouts.PlanFor(nodes), map[string]*agent{}, map[string]int{}
	s.plan.Cap, s.plan.StopAt = max(3, s.plan.Cap), 2
	s.serve()
	s.audit = newAuditor(s.plan.Cap)
	s.follow()
	var err error
	s.fleet, err = rollouts.Connect(s.env.Config(), nodes)
	must(t, err)
	must(t, s.fleet.SetUp(t.Context()))
	for _, n := range s.fleet.Nodes {
		must(t, s.ready(t.Context(), n))
	}
	if !s.bare {
		must(t, s.fleet.AddWork(t.Context(), func(int, int) {}))
	}
	go func() { _ = s.fleet.Watch(t.Context()) }()
	for _, n := range s.fleet.Nodes {
		s.start(n, nil)
	}
	for i := range s.controllers {
		s.controllers[i] = s.lead(i)
	}
	return s
}

// serve starts the control plane and the proxy before it.
func (s *stage) serve() {
	s.t.Helper()
	var o testenv.Options
	if !s.bare {
		busy := []string{"--kube-api-qps=500", "--kube-api-burst=500"}
		o.With = []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok}
		o.Args = map[testenv.Component][]string{
			testenv.ControllerManager: append([]string{"--node-monitor-grace-period=12h"}, busy...), testenv.Scheduler: busy,
			testenv.Kwok: {"--node-lease-duration-seconds=400"},
		}
	}
	var err error
	s.env, err = testenv.New(s.t.Context(), o)
	must(s.t, err)
	s.t.Cleanup(func() {
		if err := s.env.Close(); err != nil {
			s.t.Error(err)
		}
	})
	s.core, err = kubernetes.NewForConfig(s.env.Config())
	must(s.t, err)
	_, err = s.core.RbacV1().ClusterRoleBindings().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	must(s.t, err)
	s.connect, err = s.env.NewUser(user)
	must(s.t, err)
	s.proxy = newProxy(s.t, s.connect.Host[len("https://"):])
	s.connect.Host = "https://" + s.proxy.address()
	must(s.t, testenv.WriteKubeconfig(s.kubeconfig(), s.connect))
}

func (s *stage) kubeconfig() string { return filepath.Join(s.env.Dir(), "soak.kubeconfig") }

// follow has every version checked that etcd has from now on.
func (s *stage) follow() {
	url, client := s.env.EtcdClient()
	for _, prefix := range []string{ledgersIn, shadowsIn, nodesIn} {
		go func() {
			if err := follow(s.t.Context(), url, client, prefix, s.audit.see); err != nil {
				s.audit.mu.Lock()
				defer s.audit.mu.Unlock()
				s.audit.fault("not every version was seen: %v", err)
			}
		}()
	}
}

// ready makes a node Ready where nobody plays it.
func (s *stage) ready(ctx context.Context, name string) error {
	if !s.bare {
		return nil
	}
	n, err := s.core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	_, err = s.core.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}

// within bounds a wait for the whole fleet.
func (s *stage) within() time.Duration {
	return patience + time.Duration(len(s.fleet.Nodes))*patienceANode
}

// eventually is that of the stage, whose servers may be away.
func (s *stage) eventually(rule string, done func(ctx context.Context) error) {
	s.t.Helper()
	rolloutstage.Eventually(s.t, rule, s.within(), done)
}

// does asks for something until the API server has taken it.
func (s *stage) does(what string, do func(ctx context.Context) error) {
	s.t.Helper()
	rolloutstage.Eventually(s.t, what, patience, do)
}

// A leader is a controller's process, and what it tells.
type leader struct {
	mu      sync.Mutex
	process *rolloutstage.Process
	leads   bool
	terms   int
	ended   []string
	gone    chan struct{}
}

// lead starts one of the controllers.
func (s *stage) lead(i int) *leader {
	s.t.Helper()
	p, err := (&rolloutstage.Fleet{Env: s.env}).Spawn(rolloutstage.Task{
		Lease: "fleetproof", Holder: fmt.Sprintf("controller-%d-%d", i, s.r.Uint32()), LeaseFor: leaseFor, Member: true, Health: true,
		Kubeconfig: s.kubeconfig(),
	})
	must(s.t, err)
	s.t.Cleanup(p.Kill)
	l := &leader{process: p, gone: make(chan struct{})}
	go l.listen()
	return l
}

// leaseFor is how long a leader that is silent is waited for.
const leaseFor = 5 * time.Second

func (l *leader) listen() {
	defer close(l.gone)
	for e := range l.process.Events {
		l.mu.Lock()
		switch e.Kind {
		case rolloutstage.Leads:
			l.leads = true
			l.terms++
		case rolloutstage.Failed:
			l.ended = append(l.ended, e.What)
		}
		l.mu.Unlock()
	}
}

// leading returns the number of the controller that leads, as far as it is known.
func (s *stage) leading() int {
	return max(0, slices.IndexFunc(s.controllers[:], func(l *leader) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.leads
	}))
}

// replace kills a controller, which may have ended already, and starts another one.
func (s *stage) replace(i int) {
	s.t.Helper()
	l := s.controllers[i]
	select {
	case <-l.gone:
		s.faults["controllers that ended by themselves"]++
		l.mu.Lock()
		s.grumbles = append(s.grumbles, l.ended...)
		l.mu.Unlock()
	default:
	}
	l.process.Kill()
	s.controllers[i] = s.lead(i)
}

// staff starts another controller for each that has ended.
func (s *stage) staff() {
	s.t.Helper()
	for i, l := range s.controllers {
		select {
		case <-l.gone:
			s.replace(i)
		default:
		}
	}
}
