// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/internal/option"
)

// TestInstallGuardsBeforeItGrants covers R-AU-06: what Install leaves is what Objects returns, and the policy bites when
// Install returns, which it does for both kinds of callers, and again.
func TestInstallGuardsBeforeItGrants(t *testing.T) {
	c := newCluster(t)
	ofNodes := nodeauth.Options{Name: c.namespace + "-nodes", NodeUsers: true, Resources: c.options.Resources[:1]}
	for range 2 {
		for _, o := range []nodeauth.Options{c.options, ofNodes} {
			ctx, cancel := context.WithTimeout(t.Context(), patience())
			must(t, nodeauth.Install(ctx, c.env.Config(), o))
			cancel()
			t.Cleanup(func() { c.uninstall(t, o) })
		}
		stranger := c.client(t, c.token(t, agents, nil))
		_, err := stranger.Resource(leases).Namespace(c.namespace).Create(t.Context(), lease("agent-nobody"), dryCreate)
		if fault := c.denial(err, "must name one of each"); fault != "" {
			t.Error(fault)
		}
	}
	for _, o := range []nodeauth.Options{c.options, ofNodes} {
		objects, err := nodeauth.Objects(o)
		must(t, err)
		for _, object := range objects {
			u := untyped(t, object)
			if _, err := c.api(u).Get(t.Context(), u.GetName(), metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
}

// uninstall deletes what Install has made.
func (c *cluster) uninstall(t *testing.T, o nodeauth.Options) {
	t.Helper()
	objects, err := nodeauth.Objects(o)
	must(t, err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience())
	defer cancel()
	for _, object := range objects {
		u := untyped(t, object)
		if err := c.api(u).Delete(ctx, u.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

// TestInstallWithoutAnEffectSaysWhy has callers who may not do it all. None of them is left with rights that nothing
// guards.
func TestInstallWithoutAnEffectSaysWhy(t *testing.T) {
	c := newCluster(t)
	c.create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "create", "patch"}}},
	}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.namespace},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: c.namespace}},
	})
	missing := nodeauth.Options{Name: c.namespace, NodeUsers: true, Resources: []nodeauth.Resource{
		{Group: "nobody.example.com", Resource: "things", Verbs: []string{"get", "create"}},
	}}
	t.Cleanup(func() { c.uninstall(t, c.options); c.uninstall(t, missing) })
	for name, o := range map[string]struct {
		config  *rest.Config
		options nodeauth.Options
		want    string
	}{
		"may not impersonate": {c.env.User(t, c.namespace), c.options, "cannot impersonate"},
		"kind not served":     {c.env.Config(), missing, "install the definition of things.nobody.example.com first"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience())
		if err := nodeauth.Install(ctx, o.config, o.options); err == nil || !strings.Contains(err.Error(), o.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, o.want)
		}
		cancel()
		for _, role := range []string{o.options.Name, o.options.Name + "-node"} {
			if _, err := c.admin.RbacV1().ClusterRoleBindings().Get(t.Context(), role, metav1.GetOptions{}); !apierrors.IsNotFound(err) && role != c.namespace {
				t.Errorf("%s: the binding %q: got %v, want that it does not exist", name, role, err)
			}
		}
	}
	var wrong *option.Error
	if err := nodeauth.Install(t.Context(), nil, nodeauth.Options{}); !errors.As(err, &wrong) || len(wrong.Missing) != 2 {
		t.Errorf("without arguments: got %v, want an OptionError that names config and Options.Name", err)
	}
	ended, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if err := nodeauth.Install(ended, c.env.Config(), c.options); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context that has ended: got %v, want context.DeadlineExceeded", err)
	}
}
