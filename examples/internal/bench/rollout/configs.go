// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/configsync"
	kubeletconfig "github.com/belayproject/belay/configsync/kubelet"
	configapi "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/examples/internal/simnodes"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// crowdAgent is the user agent of the agents of package crowd.
const crowdAgent = "belay-demo-agents"

// configCalls is R1.config, in which revisions are configs, and agents wired as the reference agent is.
func (b *bench) configCalls(ctx context.Context) error {
	n, o := 50, rolloutstage.Options{Cap: 25, Bare: true, AuditPolicy: auditPolicy} // the nodes of the fleet itself have agents of another kind
	if b.Quick {
		n, o.Cap = 8, 4
	}
	return stage(ctx, o, func(f *fleet) error {
		c, err := f.configCourse(ctx, n)
		if err != nil {
			return err
		}
		b.printConfigCalls(n, o.Cap, c)
		return f.sound()
	})
}

// configCourse brings nodes from one config to another.
func (f *fleet) configCourse(ctx context.Context, n int) (c course, err error) {
	end, err := f.crowd(ctx, n)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, end()) }()
	p, err := f.spawn(ctx, rolloutstage.Task{})
	if err != nil {
		return c, err
	}
	first, err := f.publish(ctx, "v1", 110)
	if err != nil {
		return c, err
	}
	err = f.create(ctx, v1alpha1.RolloutsResource, v1alpha1.RolloutKind, rolloutstage.Domain, &v1alpha1.Rollout{Spec: v1alpha1.RolloutSpec{
		Domain: rolloutstage.Domain, Revision: first, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": rolloutstage.Domain}},
		Caps: []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromInt(f.Cap)}},
	}})
	if err := errors.Join(err, f.completed(ctx, p, "v1")); err != nil {
		return c, err
	}
	backoff.Sleep(ctx, late)
	turned := time.Now()
	second, err := f.publish(ctx, "v2", 120)
	if err != nil {
		return c, err
	}
	if err := errors.Join(f.turn(ctx, second), f.completed(ctx, p, "v2")); err != nil {
		return c, err
	}
	took := time.Since(turned)
	backoff.Sleep(ctx, late)
	if c, err = f.course(ctx, turned, time.Now()); err == nil && (c.controller.control() == 0 || c.crowd.control() == 0) {
		err = fmt.Errorf("the audit log has no request of the controller or of the agents: %+v", c)
	}
	c.took = took
	return c, err
}

// crowd makes nodes, and starts their agents. The end waits for these.
func (f *fleet) crowd(ctx context.Context, n int) (end func() error, err error) {
	names := make([]string, n)
	for i := range names {
		names[i] = rolloutstage.NodeName(i)
		_, err := f.Core.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: names[i], Labels: map[string]string{corev1.LabelHostname: names[i], "fleet": rolloutstage.Domain}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "bench-rollout")
	if err != nil {
		return nil, err
	}
	agents, err := simnodes.New(simnodes.Options{
		Config: f.Env.Config(), Dir: dir, Init: kubelet(30), Breaks: func(string, *kubeletconfig.Config) string { return "" },
	}, names)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- agents.Run(run) }()
	end = func() error {
		stop()
		return errors.Join(<-ended, os.RemoveAll(dir))
	}
	for deadline := time.Now().Add(stamina); agents.Started() < n; {
		if time.Now().After(deadline) || !backoff.Sleep(ctx, 100*time.Millisecond) {
			return nil, errors.Join(fmt.Errorf("%d of %d agents have started", agents.Started(), n), end())
		}
	}
	return end, nil
}

func kubelet(pods int) string {
	return fmt.Sprintf("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: %d\n", pods)
}

// publish makes an immutable ConfigMap, and the Revision that stands for it.
func (f *fleet) publish(ctx context.Context, name string, pods int) (r v1alpha1.PinnedRevision, err error) {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Immutable: new(true),
		Data: map[string]string{kubeletconfig.Key: kubelet(pods), configsync.KeyTrialDuration: "2s"},
	}
	if _, err := f.Core.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return r, err
	}
	r = v1alpha1.PinnedRevision{Name: name, Digest: configsync.DigestOf(cm.Data)}
	return r, f.create(ctx, v1alpha1.RevisionsResource, v1alpha1.RevisionKind, name, &v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{
		Digest: r.Digest, ConfigMapRef: &configapi.ConfigMapRef{Namespace: metav1.NamespaceDefault, Name: name, Digest: r.Digest},
	}})
}

// turn has the Rollout bring the fleet to another revision.
func (f *fleet) turn(ctx context.Context, r v1alpha1.PinnedRevision) error {
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"revision": r}})
	if err == nil {
		_, err = f.Client.Resource(v1alpha1.RolloutsResource).Patch(ctx, rolloutstage.Domain, types.MergePatchType, body, metav1.PatchOptions{})
	}
	return err
}

func (f *fleet) create(ctx context.Context, resource schema.GroupVersionResource, kind, name string, object any) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	_, err = f.Client.Resource(resource).Create(ctx, u, metav1.CreateOptions{})
	return err
}

// shares splits calls into those of the protocol of rollouts, which are about the shadow of the node, reads of the
// Node, which are for its UID and so of the rollout, or for its condition and so of the config, and all others, which
// the config takes.
func shares(calls map[string]int) (protocol, node, config map[string]int) {
	protocol, node, config = map[string]int{}, map[string]int{}, map[string]int{}
	for what, n := range calls {
		switch {
		case strings.Contains(what, " nodeshadows"):
			protocol[what] = n
		case what == "get nodes":
			node[what] = n
		default:
			config[what] = n
		}
	}
	return protocol, node, config
}

func sum(calls map[string]int) (n int) {
	for _, k := range calls {
		n += k
	}
	return n
}

func (b *bench) printConfigCalls(n, places int, c course) {
	protocol, node, config := shares(c.crowd.calls)
	b.Print(runner.Line{
		Name: "R1.config-calls", Ours: runner.Show(each(c.controller.control()+c.crowd.control(), n)),
		More: fmt.Sprintf("for each of %d nodes, %d at a time, that are brought from one config to another by agents as examples/agent wires them; controller %.2f: %s; "+
			"agent, for the rollout %.2f: %s; for its config %.2f: %s; for either %.2f: %s; took %v; not counted: in all %d watches that began anew; these agents keep no Lease",
			n, places, each(c.controller.control(), n), c.controller.of(n), each(sum(protocol), n), list(protocol, n), each(sum(config), n), list(config, n),
			each(sum(node), n), list(node, n), c.took.Round(time.Second), c.controller.watches+c.crowd.watches),
	})
}
