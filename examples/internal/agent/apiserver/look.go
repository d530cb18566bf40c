// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/agent/doctor"
	"github.com/belayproject/belay/lkg"
)

// reviews answer what the one who asks may do.
var reviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// The kinds of source that [Look] looks for.
const (
	LookForNodeConfig = "NodeConfig"
	LookForAnnotation = "Node annotation"
	LookForLegacy     = "Node spec.configSource"
	LookForNodeShadow = "NodeShadow" // the orders of a rollout; a controller makes it
)

// A Setup says what an agent needs at the API server.
type Setup struct {
	// Node is its node.
	Node string
	// Source is one of the kinds above, or empty where the config is named elsewhere.
	Source string
	// Rules are the rights that it needs in the whole cluster, Namespaced those in namespaces, by name.
	Rules      []rbacv1.PolicyRule
	Namespaced map[string][]rbacv1.PolicyRule
}

// Look says how things stand at the API server for an agent with client's credentials: whether the kind is served, the object is there,
// it keeps what is written to it, and the agent has its rights. It changes nothing: writes are dry runs. Each call ends after timeout.
// The error is a mistake of the caller.
func Look(ctx context.Context, client dynamic.Interface, setup Setup, timeout time.Duration) (*doctor.Server, error) {
	c, err := newCaller(client, setup.Node, timeout)
	if err != nil {
		return nil, fmt.Errorf("looking at the API server: %w", err)
	}
	s := &doctor.Server{Kind: setup.Source}
	c.lookAtSource(ctx, setup, s)
	if s.Err == nil {
		c.lookAtRights(ctx, setup, s)
	}
	return s, nil
}

// lookAtSource looks at the object that names the config.
func (c caller) lookAtSource(ctx context.Context, setup Setup, s *doctor.Server) {
	t := targetOf(setup)
	s.Awaited = setup.Source == LookForNodeShadow
	u, err := c.getObject(ctx, t)
	switch {
	case err == nil:
		s.Names = namesConfig(u, setup.Source)
		c.lookForDrops(ctx, t, u, s)
	case isNotServed(err):
		s.NotServed = true
	case errors.Is(err, configsync.ErrMissing):
		s.Absent = true
	case errors.Is(err, configsync.ErrForbidden): // told with the other rights
	default:
		s.Err = err
	}
}

// targetOf is the object that names the config, or the Node where none does.
func targetOf(setup Setup) target {
	switch setup.Source {
	case LookForNodeConfig:
		return target{v1alpha1.NodeConfigKind, v1alpha1.NodeConfigsResource}
	case LookForNodeShadow:
		return target{LookForNodeShadow, v1alpha1.GroupVersion.WithResource("nodeshadows")}
	}
	return nodeTarget()
}

// namesConfig reports whether u names a config, whatever it is worth.
func namesConfig(u *unstructured.Unstructured, source string) bool {
	found := false
	switch source {
	case LookForNodeConfig:
		_, found, _ = unstructured.NestedFieldNoCopy(u.Object, "spec", "source")
	case LookForAnnotation:
		_, found = u.GetAnnotations()[kube.SourceAnnotation]
	case LookForLegacy:
		_, found, _ = unstructured.NestedFieldNoCopy(u.Object, "spec", "configSource")
	case LookForNodeShadow:
		_, found, _ = unstructured.NestedFieldNoCopy(u.Object, "spec", "revision")
	}
	return found
}

// lookForDrops finds out what the API server would not keep.
func (c caller) lookForDrops(ctx context.Context, t target, u *unstructured.Unstructured, s *doctor.Server) {
	switch s.Kind {
	case LookForLegacy:
		if !s.Names {
			s.Drops = []string{"spec.configSource, unless it is of version 1.25 or older"}
		}
	case LookForNodeConfig:
		want := kube.StatusOf(everyField(), statusIn(u), time.Now())
		got, err := c.tryStatus(ctx, t, u, want)
		if err == nil && !isSameStatus(want, statusIn(got)) {
			s.Drops = []string{"fields of its status"}
		}
	}
}

// tryStatus is a dry run of applyStatus. What it is refused for shows elsewhere.
func (c caller) tryStatus(ctx context.Context, t target, read *unstructured.Unstructured, want v1alpha1.NodeConfigStatus) (*unstructured.Unstructured, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": t.resource.GroupVersion().String(), "kind": t.kind, "status": body,
		"metadata": map[string]any{"name": c.node, "resourceVersion": read.GetResourceVersion()},
	}}
	o := metav1.ApplyOptions{FieldManager: kube.FieldManager, Force: true, DryRun: []string{metav1.DryRunAll}}
	return c.client.Resource(t.resource).ApplyStatus(ctx, c.node, u, o)
}

// everyField is a status that uses every field.
func everyField() configsync.Status {
	at, text := time.Unix(0, 0), "dry run"
	r := lkg.Ref{Namespace: "ns", Name: "name", UID: "uid", ResourceVersion: "1", Key: "key", Digest: "sha256:0"}
	return configsync.Status{
		Assigned: r, Active: r, LastKnownGood: r, Error: text, Alarm: text, ObservedGeneration: 1, StartedAt: at,
		Rejected:  []lkg.BadEntry{{Ref: r, Time: at, Reason: text, Evidence: text}},
		Trial:     &configsync.TrialStatus{Since: at, Needed: time.Minute, Healthy: time.Minute, Counted: 1, Allowed: 1, Ignored: []string{text}, Failing: []string{text}},
		Condition: lkg.Condition{Status: lkg.StatusFalse, Reason: text, Message: text},
	}
}

// lookAtRights asks for each right. After the first question that has no answer it asks no more.
func (c caller) lookAtRights(ctx context.Context, setup Setup, s *doctor.Server) {
	ask := func(namespace string, rules []rbacv1.PolicyRule) {
		for _, a := range questions(namespace, rules) {
			if s.Unasked != nil {
				return
			}
			allowed, err := c.may(ctx, a)
			if s.Unasked = err; err == nil && !allowed {
				s.Denied = append(s.Denied, spelled(a))
			}
		}
	}
	ask("", setup.Rules)
	for namespace, rules := range setup.Namespaced {
		ask(namespace, rules)
	}
}

// questions are the rights of rules, one by one.
func questions(namespace string, rules []rbacv1.PolicyRule) []authorizationv1.ResourceAttributes {
	var all []authorizationv1.ResourceAttributes
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range r.Resources {
			kind, sub, _ := strings.Cut(resource, "/")
			for _, verb := range r.Verbs {
				for _, name := range names {
					all = append(all, authorizationv1.ResourceAttributes{
						Namespace: namespace, Verb: verb, Group: r.APIGroups[0], Resource: kind, Subresource: sub, Name: name,
					})
				}
			}
		}
	}
	return all
}

func spelled(a authorizationv1.ResourceAttributes) string {
	text := a.Verb + " " + a.Resource
	if a.Subresource != "" {
		text += "/" + a.Subresource
	}
	if a.Namespace != "" {
		text += " in namespace " + a.Namespace
	}
	return text
}

func (c caller) may(ctx context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a},
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return false, err
	}
	got, err := c.client.Resource(reviews).Create(ctx, &unstructured.Unstructured{Object: body}, metav1.CreateOptions{})
	if err != nil {
		return false, kube.Classified(err)
	}
	allowed, _, err := unstructured.NestedBool(got.Object, "status", "allowed")
	return allowed, err
}
