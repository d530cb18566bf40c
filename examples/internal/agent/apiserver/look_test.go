// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/agent/apiserver"
	"github.com/belayproject/belay/examples/internal/agent/doctor"
)

// C-08, C-09, R-CS-30: what is missing at the API server is named, and looking changes nothing.
func TestLookNamesWhatIsMissing(t *testing.T) {
	c := newCluster(t)
	setup := apiserver.Setup{
		Node: c.node, Source: apiserver.LookForNodeConfig, Rules: kube.NodeConfigRules(c.node),
		Namespaced: map[string][]rbacv1.PolicyRule{c.namespace: kube.ConfigMapRules(), c.hidden: kube.ConfigMapRules()},
	}
	look := func(client dynamic.Interface) doctor.Server {
		t.Helper()
		s, err := apiserver.Look(deadline(t), client, setup, time.Minute)
		must(t, err)
		return *s
	}
	denied := []string{"get configmaps in namespace " + c.hidden, "list configmaps in namespace " + c.hidden, "watch configmaps in namespace " + c.hidden}
	if got, want := look(c.client), (doctor.Server{Kind: "NodeConfig", Absent: true, Denied: denied}); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("without a NodeConfig: %+v, want %+v", got, want)
	}
	c.assignNodeConfig(t)
	before := c.nodeConfig(t)
	delete(setup.Namespaced, c.hidden)
	if got, want := look(c.client), (doctor.Server{Kind: "NodeConfig", Names: true}); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("with a NodeConfig: %+v, want %+v", got, want)
	}
	if after := c.nodeConfig(t); after != before {
		t.Errorf("the look changed the NodeConfig to %+v", after)
	}
	setup.Source, setup.Rules, setup.Namespaced = apiserver.LookForLegacy, kube.NodeSourceRules(c.node), nil
	if got := look(c.client); len(got.Drops) != 1 || got.Names {
		t.Errorf("of the legacy field: %+v, want it said that this server drops it", got)
	}
	setup.Rules = kube.NodeSourceRules("another")
	if got := look(c.client); len(got.Denied) != 3 {
		t.Errorf("of another node: denied %v, want get, list and watch", got.Denied)
	}
}

// C-08: a server that isn't there, and one that doesn't know the kind, are told apart.
func TestLookWithoutAnAnswer(t *testing.T) {
	c := newCluster(t)
	setup := apiserver.Setup{Node: c.node, Source: apiserver.LookForNodeConfig, Rules: kube.NodeConfigRules(c.node)}
	nobody := clientFor(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s, err := apiserver.Look(deadline(t), nobody, setup, time.Second)
	must(t, err)
	if s.Err == nil || s.NotServed || s.Absent || s.Denied != nil {
		t.Errorf("without a server: %+v, want an error alone", s)
	}
	s, err = apiserver.Look(deadline(t), unserved{c.client}, setup, time.Minute)
	must(t, err)
	if s.Err != nil || !s.NotServed || s.Absent {
		t.Errorf("without the CustomResourceDefinition: %+v, want it said", s)
	}
	if _, err := apiserver.Look(deadline(t), c.client, apiserver.Setup{Node: "no/node"}, time.Minute); err == nil {
		t.Error("Look at a node that can't be = nil, want an error")
	}
}

// unserved asks a real server for NodeConfigs in a version that it doesn't serve.
type unserved struct{ dynamic.Interface }

func (u unserved) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	if r == v1alpha1.NodeConfigsResource {
		r.Version = "v9"
	}
	return u.Interface.Resource(r)
}

// C-09: a definition that is older than this package drops fields, and the dry run notices.
func TestLookNoticesDroppedFields(t *testing.T) {
	c := newCluster(t)
	c.assignNodeConfig(t)
	setup := apiserver.Setup{Node: c.node, Source: apiserver.LookForNodeConfig}
	s, err := apiserver.Look(deadline(t), dropping{c.client}, setup, time.Minute)
	must(t, err)
	if len(s.Drops) != 1 {
		t.Errorf("drops %v, want it said that fields of the status are dropped", s.Drops)
	}
}

// dropping forgets the trial in what is written, as an older definition does.
type dropping struct{ dynamic.Interface }

func (d dropping) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return droppingResource{d.Interface.Resource(r)}
}

type droppingResource struct {
	dynamic.NamespaceableResourceInterface
}

func (d droppingResource) ApplyStatus(ctx context.Context, name string, u *unstructured.Unstructured, o metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	delete(u.Object["status"].(map[string]any), "trial")
	return d.NamespaceableResourceInterface.ApplyStatus(ctx, name, u, o)
}
