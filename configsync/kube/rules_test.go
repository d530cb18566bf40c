// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/configsync/v1alpha1"
)

// useAll uses every part as a node does that takes its config from the ConfigMap named "granted", and returns the first error.
func useAll(t *testing.T, c *cluster, client dynamic.Interface, ref matrix.Ref) {
	t.Helper()
	nodeConfig, err := kube.NewNodeConfigSource(client, c.node, kube.Options{})
	must(t, err)
	annotation, err := kube.NewAnnotationSource(client, c.node, kube.Options{})
	must(t, err)
	legacy, err := kube.NewLegacySource(client, c.node, kube.Options{})
	must(t, err)
	fetcher, err := kube.NewConfigMapFetcher(client, kube.Options{})
	must(t, err)
	status, err := kube.NewStatusReporter(client, c.node, kube.Options{})
	must(t, err)
	condition, err := kube.NewNodeConditionReporter(client, c.node, kube.Options{})
	must(t, err)
	for name, source := range map[string]configsync.Source{"NodeConfig": nodeConfig, "annotation": annotation, "legacy": legacy} {
		if _, err := source.Desired(deadline(t)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		watch(t, source.Watch)
	}
	if _, err := fetcher.Fetch(deadline(t), byUID(ref)); err != nil {
		t.Error(err)
	}
	watch(t, func(ctx context.Context, changed func()) error { return fetcher.WatchObject(ctx, byUID(ref), changed) })
	must(t, configsync.Joined(status, condition).Report(deadline(t), statusOK(time.Now())))
}

// TestRulesAreEnough covers R-CS-30: the rules that this package names, with the names of one node's objects, are all that its agent
// needs: as a service account or user of its own, and with a kubelet's credentials.
func TestRulesAreEnough(t *testing.T) {
	for _, kubelet := range []bool{false, true} {
		c := newCluster(t)
		must(t, c.assignNodeConfig(deadline(t), ""))
		ref, err := c.Create(deadline(t), goodMap("granted"))
		must(t, err)
		user, groups, cluster := "narrow-"+c.node, []string(nil), append(kube.NodeConfigRules(c.node), kube.NodeSourceRules(c.node)...)
		cluster = append(cluster, kube.NodeConditionRules(c.node)...)
		if kubelet { // the Node authorizer adds the rights on its own Node
			user, groups, cluster = "system:node:"+c.node, []string{"system:nodes"}, kube.NodeConfigRules(c.node)
		}
		c.grant(t, user, cluster...)
		c.granted(t, user, groups...)
		waiting := clientFor(t, c.env.User(t, user, groups...))
		c.grantNamed(t, user, waiting, "granted")
		useAll(t, c, waiting, ref)
	}
}

// grantNamed gives the rights on the named ConfigMaps and waits until they are known.
func (c *cluster) grantNamed(t *testing.T, user string, client dynamic.Interface, name string) {
	t.Helper()
	c.bindIn(t, c.namespace, user, kube.ConfigMapRules(name)...)
	eventually(t, "the rights of "+user, func() error {
		_, err := client.Resource(configMaps).Namespace(c.namespace).Get(deadline(t), name, metav1.GetOptions{})
		return err
	})
}

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// TestRulesAreNarrow covers R-CS-30, C-11: with those rules an agent reads nothing but its own objects, and can't write what
// it is told to do.
// L-CS-11.
// S-CS-08.
func TestRulesAreNarrow(t *testing.T) {
	c, other := newCluster(t), newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), ""))
	must(t, other.assignNodeConfig(deadline(t), ""))
	_, err := c.Create(deadline(t), goodMap("granted"))
	must(t, err)
	_, err = c.Create(deadline(t), goodMap("neighbour"))
	must(t, err)
	user := "narrow-" + c.node
	c.grant(t, user, append(append(kube.NodeConfigRules(c.node), kube.NodeSourceRules(c.node)...), kube.NodeConditionRules(c.node)...)...)
	c.granted(t, user)
	client := clientFor(t, c.env.User(t, user))
	c.grantNamed(t, user, client, "granted")

	maps, configs := client.Resource(configMaps).Namespace(c.namespace), client.Resource(v1alpha1.NodeConfigsResource)
	ctx := deadline(t)
	merge := func(r dynamic.ResourceInterface, name, patch string, sub ...string) error {
		_, err := r.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
		return err
	}
	get := func(r dynamic.ResourceInterface, name string) error {
		_, err := r.Get(ctx, name, metav1.GetOptions{})
		return err
	}
	list := func(r dynamic.ResourceInterface) error {
		_, err := r.List(ctx, metav1.ListOptions{})
		return err
	}
	for what, err := range map[string]error{
		"reading another ConfigMap":                get(maps, "neighbour"),
		"listing ConfigMaps":                       list(maps),
		"editing its ConfigMap":                    merge(maps, "granted", `{"metadata":{"labels":{"a":"b"}}}`),
		"reading another node's NodeConfig":        get(configs, other.node),
		"listing NodeConfigs":                      list(configs),
		"writing its own source":                   merge(configs, c.node, `{"spec":{"source":null}}`),
		"deleting its own NodeConfig":              configs.Delete(ctx, c.node, metav1.DeleteOptions{}),
		"writing another node's NodeConfig status": merge(configs, other.node, `{"status":{"error":"x"}}`, "status"),
		"reading another Node":                     get(client.Resource(nodes), other.node),
		"listing Nodes":                            list(client.Resource(nodes)),
		"writing its own annotation":               merge(client.Resource(nodes), c.node, `{"metadata":{"annotations":{"configsync.belay.dev/source":"{}"}}}`),
		"writing another Node's status":            merge(client.Resource(nodes), other.node, `{"status":{"conditions":[]}}`, "status"),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want it forbidden", what, err)
		}
	}
	// A kubelet's own credentials may write annotations of its Node: that is why NewAnnotationSource isn't the default.
	kubelet := clientFor(t, c.env.User(t, "system:node:"+c.node, "system:nodes"))
	if err := merge(kubelet.Resource(nodes), c.node, `{"metadata":{"annotations":{"configsync.belay.dev/source":"{}"}}}`); err != nil {
		t.Errorf("a kubelet could not annotate its Node (%v): the documentation of NewAnnotationSource is wrong", err)
	}
}

// TestForbiddenIsReportedAsSuch covers R-CS-30: without the rights, sources say so, and it is not taken for absence.
func TestForbiddenIsReportedAsSuch(t *testing.T) {
	c := newCluster(t)
	client := clientFor(t, c.env.User(t, "nobody"))
	nodeConfig, err := kube.NewNodeConfigSource(client, c.node, kube.Options{})
	must(t, err)
	annotation, err := kube.NewAnnotationSource(client, c.node, kube.Options{})
	must(t, err)
	for _, source := range []configsync.Source{nodeConfig, annotation} {
		if spec, err := source.Desired(deadline(t)); spec != nil || !errors.Is(err, configsync.ErrForbidden) {
			t.Errorf("%T: got %v, %v, want it forbidden", source, spec, err)
		}
	}
	anonymous := c.env.Config()
	anonymous.CertData, anonymous.KeyData, anonymous.BearerToken = nil, nil, "expired"
	source, err := kube.NewNodeConfigSource(clientFor(t, anonymous), c.node, kube.Options{})
	must(t, err)
	if _, err := source.Desired(deadline(t)); !errors.Is(err, configsync.ErrUnreachable) {
		t.Errorf("got %v for credentials that aren't known, want it unreachable: that says nothing about the object", err)
	}
}
