// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/internal/rollouts"
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
	fatal       int           // rounds with a fatal config that stopped by itself
	slowest     time.Duration // that an agent has taken to stop
	handovers   int           // of the Lease, by a leader that was killed or frozen
	joined      int
	left        map[string]bool // the nodes that have left in this round
	forgiven    map[string]bool // freezes over those alone
	round       int
	good        string // the config that every node runs at the end of a round
}

// newStage has a fleet whose agents run and whose controllers lead. With many nodes there is work on them.
func newStage(t *testing.T) *stage {
	t.Helper()
	nodes, chaos := size(t)
	return (&stage{t: t, chaos: chaos, bare: chaos == 0, calls: &calls{}, forgiven: map[string]bool{}}).set(nodes)
}

// stageWith has a few nodes and no work on them. What the agents ask for is looked at.
func stageWith(t *testing.T, look *calls) *stage {
	t.Helper()
	return (&stage{t: t, bare: true, calls: look, forgiven: map[string]bool{}}).set(fewNodes)
}

// planFor is the plan for so many nodes: at least 3 are away at a time, and the second that fails stops it.
func planFor(nodes int) rollouts.Plan {
	p := rollouts.PlanFor(nodes)
	p.Cap, p.StopAt = max(3, p.Cap), 2
	return p
}

// set sets the stage.
func (s *stage) set(nodes int) *stage {
	t := s.t
	t.Helper()
	s.r, s.plan, s.agents, s.faults = draws(t), planFor(nodes), map[string]*agent{}, map[string]int{}
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
	o := testenv.Options{AuditPolicy: auditPolicy}
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

// follow has every version checked that etcd has from the beginning.
func (s *stage) follow() {
	url, client := s.env.EtcdClient()
	go func() {
		if err := follow(s.t.Context(), url, client, auditedFrom, auditedTo, s.audit.see); err != nil {
			s.audit.mu.Lock()
			defer s.audit.mu.Unlock()
			s.audit.fault("not every version was seen: %v", err)
		}
	}()
}

// looked waits until the auditor has seen what is the newest now. One that can't follow any more proves nothing.
func (s *stage) looked() {
	s.t.Helper()
	var last int64
	s.does("the auditor has seen the newest version", func(ctx context.Context) error { return s.lags(ctx, &last) })
}

var errBlind = errors.New("the auditor is behind")

// lags is an error as long as the auditor has not seen the last version, which is the newest there is when it is 0.
func (s *stage) lags(ctx context.Context, last *int64) (err error) {
	if *last == 0 {
		url, client := s.env.EtcdClient()
		defer client.CloseIdleConnections()
		if *last, err = newest(ctx, url, client, auditedFrom, auditedTo); err != nil {
			return err
		}
	}
	if at := s.audit.at(); at < *last {
		return fmt.Errorf("%w: at %d, and etcd was at %d", errBlind, at, *last)
	}
	return nil
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
