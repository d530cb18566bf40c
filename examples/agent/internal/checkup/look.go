// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"github.com/belayproject/belay/examples/internal/agent/apiserver"
	"github.com/belayproject/belay/examples/internal/agent/connect"

	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/belayproject/belay/configsync/kube"
	nodekubelet "github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/agent/internal/admin"
	"github.com/belayproject/belay/examples/agent/internal/node"
	"github.com/belayproject/belay/examples/internal/agent/doctor"
	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/lkg"
	rolloutkube "github.com/belayproject/belay/rollout/kube"
	rollout "github.com/belayproject/belay/rollout/v1alpha1"
)

// serverTimeout bounds each call of the API server.
const serverTimeout = 5 * time.Second

// Look looks at a node whose agent has these settings. unit is that of the service manager; empty means that it isn't
// looked at. The error is that of ctx.
func Look(ctx context.Context, s *settings.Run, unit string) (doctor.Facts, error) {
	f := doctor.Facts{Now: time.Now(), Source: s.Source, Baseline: doctor.Baseline{None: s.InitConfig == "", Ignored: s.IgnoredInit()}, Settings: complaints(s), Proof: s.ProveProblem(), Clock: doctor.LookAtClock()}
	if s.StateDir != "" {
		lookAtState(ctx, s, &f)
	}
	if unit != "" {
		f.Unit = lookAtUnit(ctx, unit)
	}
	if s.Kubeconfig != "" && s.NodeName != "" {
		f.Server = lookAtServer(ctx, s, &f)
	}
	return f, ctx.Err()
}

// complaints are what run would say of its flags, without those that have a check of their own. The child is looked at
// if it is given.
func complaints(s *settings.Run) []error {
	all, ok := s.Validate().(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var out []error
	for _, err := range all.Unwrap() {
		var e *settings.FlagError
		if errors.As(err, &e) && (e.Flag == "--" && len(s.Child) == 0 || e.Value == "" && (e.Flag == "state-dir" || e.Flag == "init-config")) {
			continue
		}
		out = append(out, err)
	}
	return out
}

// lookAtState looks at the state directory, what is on record in it, and who serves it.
func lookAtState(ctx context.Context, s *settings.Run, f *doctor.Facts) {
	f.Dir = doctor.LookAtDir(s.StateDir)
	if f.Dir.Err != nil || f.Dir.NotDir {
		return
	}
	e, err := node.Explain(ctx, s.StateDir, s.Options())
	if f.ExplainErr = err; err == nil {
		f.Explanation = &e
	}
	agent, err := admin.Dial(ctx, s.StateDir)
	running := err == nil
	if err != nil && !errors.Is(err, admin.ErrNotRunning) {
		return // whether one runs is not known
	}
	f.Running = &running
	if !running {
		return
	}
	d, err := agent.Status(ctx)
	if err != nil {
		return
	}
	f.Child = childOf(d)
	if d.Trial != nil && f.Child != nil {
		f.Child.Failing = d.Trial.Failing
	}
}

// childOf is what a running agent says of its child; nil before it has chosen a config.
func childOf(d report.Document) *doctor.Child {
	if d.Agent == nil || d.InUse == nil {
		return nil
	}
	c := &doctor.Child{PID: d.Agent.Child}
	if e := d.Agent.LastEnd; e != nil {
		c.How, c.Ended, c.Last = e.How, e.At, e.Last
	}
	if s := d.Next.After; s != nil {
		c.Restarts, c.LastRestart = s.Unexplained, s.At
	}
	if k := d.ConfigOK; k != nil && k.Status != string(lkg.StatusTrue) {
		c.Trouble = k.Reason
	}
	return c
}

// lookAtServer looks at the API server with the credentials of the agent.
func lookAtServer(ctx context.Context, s *settings.Run, f *doctor.Facts) *doctor.Server {
	client, err := connect.Client(s.Kubeconfig)
	if err != nil {
		return &doctor.Server{Err: err}
	}
	setup := setupOf(s)
	if e := f.Explanation; e != nil && !e.State.Current.Ref.IsLocal() {
		r := e.State.Current.Ref
		setup.Namespaced[r.Namespace] = append(setup.Namespaced[r.Namespace], rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}, ResourceNames: []string{r.Name},
		})
	}
	server, err := apiserver.Look(ctx, client, setup, serverTimeout)
	if err != nil {
		return &doctor.Server{Err: err}
	}
	return server
}

// setupOf is what the parts need that wire.Options picks.
func setupOf(s *settings.Run) apiserver.Setup {
	setup := apiserver.Setup{
		Node: s.NodeName, Rules: kube.NodeConditionRules(s.NodeName),
		Namespaced: map[string][]rbacv1.PolicyRule{apiserver.EventNamespace: apiserver.EventRules()},
	}
	switch s.Source {
	case settings.SourceNodeConfig:
		setup.Source = apiserver.LookForNodeConfig
		setup.Rules = append(setup.Rules, kube.NodeConfigRules(s.NodeName)...)
	case settings.SourceAnnotation:
		setup.Source = apiserver.LookForAnnotation
		setup.Rules = append(setup.Rules, kube.NodeSourceRules(s.NodeName)...)
	case settings.SourceLegacy:
		setup.Source = apiserver.LookForLegacy
		setup.Rules = append(setup.Rules, kube.NodeSourceRules(s.NodeName)...)
	case settings.SourceShadow:
		setup.Source = apiserver.LookForNodeShadow
		setup.Rules = append(setup.Rules, rolloutkube.AgentRules(s.NodeName)...)
	}
	addRollouts(&setup, s)
	if s.ProbesNode() {
		cluster, lease := nodekubelet.ProbeRules(s.NodeName)
		setup.Rules = append(setup.Rules, cluster...)
		setup.Namespaced[corev1.NamespaceNodeLease] = append(setup.Namespaced[corev1.NamespaceNodeLease], lease...)
	}
	return setup
}

// addRollouts adds what taking part in rollouts needs besides the source: hooks their orders, and the Lease.
func addRollouts(setup *apiserver.Setup, s *settings.Run) {
	if s.Hooks != "" {
		orders := slices.DeleteFunc(rolloutkube.AgentRules(s.NodeName), func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, rollout.RevisionsResource.Resource) // hooks have no use for them
		})
		setup.Rules = append(setup.Rules, orders...)
	}
	if s.Rollouts() && s.LeaseNamespace != "" {
		setup.Namespaced[s.LeaseNamespace] = append(setup.Namespaced[s.LeaseNamespace], rbacv1.PolicyRule{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update", "delete"},
		})
	}
}
