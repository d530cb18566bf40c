// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/evictionapi"
)

// allow gives a user rights on the whole cluster.
func (c *cluster) allow(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	_, err := c.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)
	_, err = c.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// allowLeases gives a user rights on the Leases of nodes.
func (c *cluster) allowLeases(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	api := c.admin.RbacV1()
	_, err := api.Roles(corev1.NamespaceNodeLease).Create(t.Context(),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	_, err = api.RoleBindings(corev1.NamespaceNodeLease).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// right is one verb on one resource.
type right struct{ group, resource, verb string }

func (r right) rule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}}
}

// denial is what the server says where the right is missing.
func (r right) denial() string { return fmt.Sprintf("cannot %s resource %q", r.verb, r.resource) }

// shipped are the rights of the manifest, those on the cluster and those on Leases.
func shipped(t *testing.T) (onCluster, onLeases []right) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(kube.RBAC()), 1<<10)
	for {
		var role rbacv1.ClusterRole // a Role has the same fields
		err := decoder.Decode(&role)
		if errors.Is(err, io.EOF) {
			return onCluster, onLeases
		}
		must(t, err)
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					r := right{rule.APIGroups[0], resource, verb}
					switch {
					case r.group == evictionapi.Version().Group: // see TestEvictionRequests
					case len(rule.APIGroups) != 1 || strings.Contains(resource+verb, "*"):
						t.Errorf("got the rule %v, want one group and no star", rule)
					case role.Kind == "ClusterRole" && role.Namespace == "":
						onCluster = append(onCluster, r)
					case role.Kind == "Role" && role.Namespace == corev1.NamespaceNodeLease:
						onLeases = append(onLeases, r)
					default:
						t.Errorf("got a %s in namespace %q", role.Kind, role.Namespace)
					}
				}
			}
		}
	}
}

// TestRightsAreEnoughAndNeeded runs everything in this package as a user with the rights of the manifest alone, and then without each of
// them, which is then named in an error.
func TestRightsAreEnoughAndNeeded(t *testing.T) {
	c := newCluster(t)
	c.lease(t, c.namespace)
	onCluster, onLeases := shipped(t)
	all := slices.Concat(onCluster, onLeases)
	if len(onLeases) != 2 || len(all) < 10 {
		t.Fatalf("got the rights %v", all)
	}
	for n, missing := range append([]right{{}}, all...) {
		t.Run(strings.Trim(missing.verb+" "+missing.resource, " "), func(t *testing.T) {
			user := fmt.Sprintf("%s-%d", c.namespace, n)
			var cluster, leases []rbacv1.PolicyRule
			for _, r := range onCluster {
				if r != missing {
					cluster = append(cluster, r.rule())
				}
			}
			for _, r := range onLeases {
				if r != missing {
					leases = append(leases, r.rule())
				}
			}
			c.allow(t, user, cluster...)
			c.allowLeases(t, user, leases...)
			everything := c.everything(t, beforeStreamedLists(c.env.User(t, user)))
			eventually(t, func() string {
				denials, err := everything()
				switch {
				case missing == right{} && err != nil:
					return fmt.Sprintf("got %v, want no error", err)
				case missing != right{} && (len(denials) == 0 || slices.ContainsFunc(denials, func(d string) bool { return !strings.Contains(d, missing.denial()) })):
					return fmt.Sprintf("got %q, want %q", denials, missing.denial())
				}
				return ""
			})
		})
	}
}

// everything returns a function that uses each part of this package, and returns what was denied, and all errors.
func (c *cluster) everything(t *testing.T, config *rest.Config) func() (denials []string, err error) {
	t.Helper()
	cache := startCache(t, config, kube.CacheOptions{Volumes: true, DaemonSets: true, Namespaces: true})
	client, clients := newClient(t, config, kube.ClientOptions{}), clientset(t, config)
	keeper, err := kube.NewLeaseKeeper(clients, kube.Options{})
	must(t, err)
	responder, err := kube.NewAnnotationResponder(clients, cache.View(), kube.Options{})
	must(t, err)
	ref := drain.PodRef{Namespace: c.namespace, Name: "none", UID: "u"} // the server looks at rights first
	return func() ([]string, error) {
		_, patched := client.PatchNode(t.Context(), "none", []byte(`{}`), false)
		_, patchedStatus := client.PatchNode(t.Context(), "none", []byte(`{}`), true)
		_, listed := client.ListPods(t.Context(), "none")
		errs := []error{
			client.Evict(t.Context(), ref, nil), client.Delete(t.Context(), ref, nil), patched, patchedStatus, listed,
			responder.Cancel(t.Context(), drain.HookRequest{Pod: ref}), keeper.Renew(t.Context(), c.namespace),
		}
		if checked := cache.Check(); checked != nil {
			errs = append(errs, checked.(interface{ Unwrap() []error }).Unwrap()...)
		}
		errs = slices.DeleteFunc(errs, apierrors.IsNotFound)
		var denials []string
		for _, err := range errs {
			if apierrors.IsForbidden(err) {
				denials = append(denials, err.Error())
			}
		}
		return denials, errors.Join(errs...)
	}
}

// beforeStreamedLists makes the server answer as those do that don't know lists by watch, on which clients fall back to lists.
func beforeStreamedLists(config *rest.Config) *rest.Config {
	return through(config, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("sendInitialEvents") == "" {
			return next.RoundTrip(r)
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`
		return &http.Response{
			StatusCode: http.StatusUnprocessableEntity, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	})
}
