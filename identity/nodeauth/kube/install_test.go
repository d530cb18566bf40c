// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/identity/nodeauth/kube"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/testenv"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const patience = time.Minute

const shadowCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shadows.install.test.belay.dev}
spec:
  group: install.test.belay.dev
  names: {kind: Shadow, listKind: ShadowList, plural: shadows, singular: shadow}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object}}}}
`

// options are those of agents that renew a Lease each, and whose policy has the name of the namespace.
func options(namespace string) nodeauth.Options {
	return nodeauth.Options{
		Name: namespace, ServiceAccount: types.NamespacedName{Namespace: namespace, Name: "agent"},
		Resources: []nodeauth.Resource{{
			Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace, Prefix: "agent-",
			Verbs: []string{"create"}, NotOwned: true,
		}},
	}
}

// TestInstallGuardsBeforeItGrants covers R-AU-06: when Install returns, agents have their rights and the policy refuses
// what those allow too much, for both kinds of callers, and when it is repeated.
func TestInstallGuardsBeforeItGrants(t *testing.T) {
	env := shared.Env(t)
	must(t, env.InstallCRDs(t.Context(), []byte(shadowCRD)))
	namespace := env.Namespace(t)
	admin := kubernetes.NewForConfigOrDie(env.Config())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
	_, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
	ofNodes := nodeauth.Options{Name: namespace + "-users", NodeUsers: true, Resources: []nodeauth.Resource{
		{Group: "install.test.belay.dev", Resource: "shadows", Verbs: []string{"get"}, Subresources: []string{"status"}},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	agent := agentClient(t, env, namespace)
	for range 2 {
		must(t, kube.Install(ctx, env.Config(), options(namespace)))
		must(t, kube.Install(ctx, env.Config(), ofNodes))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "agent-of-another"}}
		_, err := agent.CoordinationV1().Leases(namespace).Create(ctx, lease, metav1.CreateOptions{})
		by := "ValidatingAdmissionPolicy '" + namespace + "' with binding '" + namespace + "' denied request"
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), by) {
			t.Errorf("a Lease for another node: got %v, want %q", err, by)
		}
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Get(ctx, namespace+"-users", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	other := options(namespace)
	other.ServiceAccount.Name = "another"
	if err := kube.Install(ctx, env.Config(), other); !errors.Is(err, kube.ErrOtherPolicy) {
		t.Errorf("with another service account: got %v, want ErrOtherPolicy", err)
	}
	binding, err := admin.RbacV1().RoleBindings(namespace).Get(ctx, namespace, metav1.GetOptions{})
	must(t, err)
	if account := binding.Subjects[0].Name; account != "agent" {
		t.Errorf("after a refused Install the role is bound to %q, want \"agent\"", account)
	}
}

// agentClient has a token of the agents' service account that is bound to nothing.
func agentClient(t *testing.T, env *testenv.Env, namespace string) kubernetes.Interface {
	t.Helper()
	admin := kubernetes.NewForConfigOrDie(env.Config())
	asked := &authenticationv1.TokenRequest{}
	accounts := admin.CoreV1().ServiceAccounts(namespace)
	token, err := accounts.CreateToken(t.Context(), "agent", asked, metav1.CreateOptions{})
	must(t, err)
	config := rest.AnonymousClientConfig(env.Config())
	config.BearerToken = token.Status.Token
	return kubernetes.NewForConfigOrDie(config)
}

// TestInstallThatCannotSeeThePolicySaysWhy has callers who may not do it all, and no definition. No agent is left with
// rights that nothing guards.
func TestInstallThatCannotSeeThePolicySaysWhy(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	admin := kubernetes.NewForConfigOrDie(env.Config())
	verbs := []string{"get", "create", "patch"}
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-writer"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: verbs}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-writer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace + "-writer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: namespace}},
	}, metav1.CreateOptions{})
	must(t, err)
	unserved := nodeauth.Options{Name: namespace + "-unserved", NodeUsers: true, Resources: []nodeauth.Resource{
		{Group: "absent.example.com", Resource: "things", Verbs: []string{"get"}, Subresources: []string{"status"}},
	}}
	for name, c := range map[string]struct {
		config  *rest.Config
		options nodeauth.Options
		want    string
	}{
		"may not impersonate": {env.User(t, namespace), options(namespace), "cannot impersonate"},
		"kind not served": {
			env.Config(), unserved, "Options.Resources[0]: install the definition of things.absent.example.com first",
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := kube.Install(ctx, c.config, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
		cancel()
		roles, err := admin.RbacV1().Roles(namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		_, err = admin.RbacV1().ClusterRoles().Get(t.Context(), c.options.Name, metav1.GetOptions{})
		if len(roles.Items) > 0 || !apierrors.IsNotFound(err) {
			t.Errorf("%s: %d Roles, ClusterRole: %v; want none of either", name, len(roles.Items), err)
		}
	}
}

// TestInstallOfBadInput covers what is missing, and a context that has ended.
func TestInstallOfBadInput(t *testing.T) {
	var wrong *option.Error
	if err := kube.Install(t.Context(), nil, nodeauth.Options{}); !errors.As(err, &wrong) || len(wrong.Missing) != 2 {
		t.Errorf("without arguments: got %v, want an OptionError that names config and Options.Name", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	if err := kube.Install(ended, config, options("ns")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: got %v, want context.Canceled", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
