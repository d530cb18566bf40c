// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/install"
	"github.com/belayproject/belay/internal/option"
)

const (
	// fieldManager owns the fields that Install applies.
	fieldManager = "belay-nodeauth"
	// guardedTime is how long the API server may take to obey the policy.
	guardedTime = time.Minute
	// guardedEvery is the pause between two tries. There is no event for it.
	guardedEvery = 200 * time.Millisecond
	// probeName is a Node that is never made: its creation is only tried.
	probeName = "belay-nodeauth-install"
)

// Install applies what [nodeauth.Objects] returns, by server-side apply: the policy first and, once the API server
// obeys it, the rights that it guards. It may be repeated with the same options; for others see [ErrOtherPolicy]. ctx
// bounds the call; the wait for the policy takes a minute at most.
//
// Install tries the policy by the dry run of a write that impersonates the agent's user and the group system:masters,
// so that RBAC cannot be what refuses it. The caller needs the rights of an administrator, and the right to impersonate
// that user and that group.
func Install(ctx context.Context, config *rest.Config, o nodeauth.Options) error {
	const call = "identity/nodeauth/kube.Install"
	check := option.For(call, nil)
	check.Require("config", config, "see rest.InClusterConfig or clientcmd.BuildConfigFromFlags")
	check.Require("Options.Name", o.Name, "that of the policy")
	if err := check.Err(); err != nil {
		return err
	}
	objects, err := nodeauth.Objects(o)
	if err != nil {
		return err
	}
	var guards, rights []*unstructured.Unstructured
	for _, object := range objects {
		u, err := install.ToUnstructured(object)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", call, err)
		case u.GroupVersionKind().Group == rbacv1.GroupName:
			rights = append(rights, u)
		default:
			guards = append(guards, u)
		}
	}
	try, err := makeTry(config, o)
	if err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	if err := checkReplaced(ctx, config, guards); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	if err := install.Apply(ctx, config, fieldManager, guards); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	if err := waitGuarded(ctx, o.Name, try); err != nil {
		return fmt.Errorf("%s: waiting until the API server obeys policy %q: %w", call, o.Name, err)
	}
	if err := install.Apply(ctx, config, fieldManager, rights); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	return nil
}

// ErrOtherPolicy means that there is a policy of the name with other contents, which may guard rights that are bound.
// Nothing was changed: a policy that is replaced guards neither what the new one leaves out nor, until the API server
// obeys the new one, what that adds. Delete the bindings of the name and the policy, or give the options a new name.
var ErrOtherPolicy = errors.New(
	"a policy of this name has other contents: delete its role bindings, then the policy, or take a new name")

// checkReplaced returns [ErrOtherPolicy] where applying the guards would change the policy or its binding.
func checkReplaced(ctx context.Context, config *rest.Config, guards []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, u := range guards {
		plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
		if plural.Group != admissionregistrationv1.GroupName {
			continue // a FlowSchema guards nothing
		}
		before, err := client.Resource(plural).Get(ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		dry := metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: []string{metav1.DryRunAll}}
		after, err := client.Resource(plural).Apply(ctx, u.GetName(), u, dry)
		if err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"]) {
			return fmt.Errorf("%s %q: %w", u.GetKind(), u.GetName(), ErrOtherPolicy)
		}
	}
	return nil
}

// waitGuarded waits until the policy refuses a write that no agent may make.
func waitGuarded(ctx context.Context, policy string, try func(context.Context) error) error {
	probe := nodeauth.Probe{Policy: policy, Try: try}
	ctx, cancel := context.WithTimeout(ctx, guardedTime)
	defer cancel()
	for {
		err := probe.Once(ctx)
		if err == nil || isImpersonationRefused(err) || apierrors.IsInvalid(err) {
			return err
		}
		if !backoff.Sleep(ctx, guardedEvery) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// isImpersonationRefused reports whether the caller may not impersonate: the API server names the identity, where it
// names the object of any other request.
func isImpersonationRefused(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.Contains([]string{"users", "groups", "serviceaccounts"}, status.Status().Details.Kind)
}

// makeTry returns a write that every agent is refused: a Node made by one of a service account, or an object of another
// node by a node's user.
func makeTry(config *rest.Config, o nodeauth.Options) (func(ctx context.Context) error, error) {
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if account := o.ServiceAccount; account.Name != "" {
		user := "system:serviceaccount:" + account.Namespace + ":" + account.Name
		client, err := kubernetes.NewForConfig(impersonateUser(config, user))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
		return func(ctx context.Context) error {
			_, err := client.CoreV1().Nodes().Create(ctx, node, options)
			return err
		}, err
	}
	if len(o.Resources) == 0 {
		return nil, errors.New("there is no resource to try it with")
	}
	first := o.Resources[0]
	resource := schema.GroupVersionResource{Group: first.Group, Resource: first.Resource}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	kind, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds)).KindFor(resource)
	if err != nil {
		return nil, fmt.Errorf("Options.Resources[0]: install the definition of %s first: %w", resource.GroupResource(), err)
	}
	client, err := dynamic.NewForConfig(impersonateUser(config, "system:node:"+probeName))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetName(first.Prefix + probeName + "-other")
	object.Object["spec"] = map[string]any{} // many definitions require one; others drop it
	var objects dynamic.ResourceInterface = client.Resource(kind.GroupVersion().WithResource(first.Resource))
	if first.Namespace != "" {
		objects = client.Resource(kind.GroupVersion().WithResource(first.Resource)).Namespace(first.Namespace)
	}
	return func(ctx context.Context) error {
		_, err := objects.Create(ctx, object, options)
		return err
	}, nil
}

// impersonateUser returns config for a user that has every right.
func impersonateUser(config *rest.Config, user string) *rest.Config {
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	return as
}
