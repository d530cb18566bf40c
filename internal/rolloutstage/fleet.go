// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Domain is the disruption domain, and the name of the Rollout: each fleet has a control plane of its own.
const Domain = "fleet"

// Options say what a fleet is.
type Options struct {
	// Nodes is how many there are, Cap how many may be away at a time.
	Nodes, Cap int
	// PodsPerNode is how much work there is: Deployments, each with a budget that lets a fifth of its pods go at a time. Zero means none. Apps is how
	// many Deployments that are. Zero means one.
	PodsPerNode, Apps int
	// PodsEnd is how long a pod takes to end, in whole seconds. Zero means that it ends as soon as it is asked to.
	PodsEnd time.Duration
	// Bare leaves out everything but etcd and the API server: Nodes are ready from the beginning and stay so, and there can be no work on them.
	Bare bool
	// Verify is how long an agent takes to verify a revision. It looks six times meanwhile, as by the defaults of [nodeagent.Options]. Agents differ
	// by up to Spread.
	Verify, Spread time.Duration
	// Resident has each agent run by itself with [nodeagent.Agent.Run], as in production: it also looks when nothing has changed. Otherwise
	// they take turns, and look only when something has.
	Resident bool
	// AuditPolicy is that of the API server: see [testenv.Options].
	AuditPolicy string
}

// The user agents of the requests of controllers, which is followed by a slash and [Task].Holder if there is one, and of all agents.
const (
	ControllerAgent = "rollout-controller"
	CrewAgent       = "rollout-agent"
)

// A Fleet is nodes with work and agents on a control plane, and one Rollout.
type Fleet struct {
	Options
	Env    *testenv.Env
	Core   kubernetes.Interface
	Client dynamic.Interface
	Crew   *Crew
	Truth  *Truth

	stop context.CancelFunc
	done chan struct{}
}

// New makes a fleet. It is ready when its work runs. ctx bounds that alone.
func New(ctx context.Context, o Options) (*Fleet, error) {
	env, err := o.env(ctx)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Options: o, Env: env, done: make(chan struct{})}
	if err := f.build(ctx); err != nil {
		return nil, errors.Join(err, env.Close())
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	if f.Truth, err = watch(run, f); err != nil {
		stop()
		return nil, errors.Join(err, env.Close())
	}
	go func() {
		defer close(f.done)
		f.Crew.run(run)
	}()
	return f, nil
}

// Close ends the agents and the control plane, and every process that was spawned on it.
func (f *Fleet) Close() error {
	f.stop()
	<-f.done
	return f.Env.Close()
}

func (f *Fleet) build(ctx context.Context) (err error) {
	if err := f.Env.InstallCRDs(ctx, v1alpha1.CRDs()...); err != nil {
		return err
	}
	config := f.Env.Config()
	config.QPS = -1
	if f.Core, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if f.Client, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	crew := rest.CopyConfig(config)
	crew.UserAgent = CrewAgent
	client, err := dynamic.NewForConfig(crew)
	if err != nil {
		return err
	}
	if f.Crew, err = newCrew(client, f.Options); err != nil {
		return err
	}
	if err := f.addNodes(ctx); err != nil {
		return err
	}
	if f.PodsPerNode == 0 {
		return nil
	}
	return f.addWork(ctx)
}

// joining is how many nodes join at a time.
const joining = 8

func (f *Fleet) addNodes(ctx context.Context) error {
	var errs [joining]error
	var wg sync.WaitGroup
	for first := range joining {
		wg.Go(func() {
			for i := first; i < f.Nodes && errs[first] == nil; i += joining {
				errs[first] = f.AddNode(ctx, NodeName(i))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// NodeName is the name of the node of that number, from 0 on.
func NodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// AddNode has a node join the fleet, which runs v1.
func (f *Fleet) AddNode(ctx context.Context, name string) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, "fleet": Domain}}}
	if f.Bare {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	} else {
		testenv.KwokNode(n)
	}
	n, err := f.Core.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return f.Crew.add(name, string(n.UID))
}

// RemoveNode has a node leave, with its agent.
func (f *Fleet) RemoveNode(ctx context.Context, name string) error {
	f.Crew.remove(name)
	return f.Core.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
}

// Ledger reads the ledger.
func (f *Fleet) Ledger(ctx context.Context) (protocol.Ledger, error) {
	store, err := kube.NewLedgerStore(f.Client, Domain)
	if err != nil {
		return protocol.Ledger{}, err
	}
	l, _, err := store.Load(ctx)
	return l, err
}

// Runs is how many nodes run a revision.
func (f *Fleet) Runs(revision string) (n int) {
	for _, m := range f.Crew.Machines() {
		if current, _ := m.History(); current == revision {
			n++
		}
	}
	return n
}

// Over returns nil when no node has a slot, and every node was given back.
func (f *Fleet) Over(ctx context.Context) error {
	l, err := f.Ledger(ctx)
	if err != nil {
		return err
	}
	if len(l.Slots) > 0 {
		return fmt.Errorf("there are %d slots", len(l.Slots))
	}
	nodes, err := f.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		_, held := n.Annotations[controller.HeldAnnotation]
		if _, marked := n.Annotations[controller.ScaleDownAnnotation]; held || marked || n.Spec.Unschedulable {
			return fmt.Errorf("node %q was not given back: unschedulable %t, %v", n.Name, n.Spec.Unschedulable, n.Annotations)
		}
	}
	return nil
}
