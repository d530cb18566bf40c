// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/identity/nodeauth"
)

const (
	controllerUser = "system:serviceaccount:" + systemNamespace + ":" + controllerAccount
	agentUser      = "system:serviceaccount:" + agentNamespace + ":" + agentAccount
)

// Each request comes to the level that is meant for it: the server is asked, and says which schema has matched. It does so before it looks at rights.
func TestRequestsComeToTheirLevel(t *testing.T) {
	c := installed(t)
	for _, row := range []struct{ user, group, path, schema, level string }{
		{controllerUser, "system:serviceaccounts", "/apis/coordination.k8s.io/v1/namespaces/belay-system/leases/x", "belay-leader-election", "leader-election"},
		{controllerUser, "system:serviceaccounts", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x", "belay-controller", "belay-controller"},
		{controllerUser, "system:serviceaccounts", "/api/v1/nodes", "belay-controller", "belay-controller"},
		{controllerUser, "system:serviceaccounts", "/apis/belay.dev/v1alpha1/nodeshadows/x", "belay-controller", "belay-controller"},
		{agentUser, "system:serviceaccounts", "/apis/coordination.k8s.io/v1/namespaces/belay-agents/leases/x", "belay-agent", "node-high"},
		{agentUser, "system:serviceaccounts", "/apis/coordination.k8s.io/v1/namespaces/belay-system/leases/x", "belay-agent-rest", "belay-agents"},
		{agentUser, "system:serviceaccounts", "/apis/belay.dev/v1alpha1/nodeshadows?watch=1&timeoutSeconds=1", "belay-agent-rest", "belay-agents"},
		{agentUser, "system:serviceaccounts", "/api/v1/nodes/x", "belay-agent-rest", "belay-agents"},
		{"system:node:x", "system:nodes", "/apis/belay.dev/v1alpha1/nodeconfigs/x", "belay-host-agent", "belay-agents"},
		{"system:node:x", "system:nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/x", "system-node-high", "node-high"},
		{"system:node:x", "system:nodes", "/api/v1/pods", "system-nodes", "system"},
		{"system:serviceaccount:default:other", "system:serviceaccounts", "/apis/belay.dev/v1alpha1/rollouts", "service-accounts", "workload-low"},
		{"vera", "people", "/apis/belay.dev/v1alpha1/rollouts", "global-default", "global-default"},
	} {
		config := c.env.User(t, row.user, row.group)
		eventually(t, row.user+" "+row.path+": must be of the level that is meant for it", func() error {
			schema, level, err := c.flow(t, config, row.path)
			if err == nil && (schema != row.schema || level != row.level) {
				err = fmt.Errorf("matched by the schema %q of the level %q, want %q of %q", schema, level, row.schema, row.level)
			}
			return err
		})
	}
}

// flow asks for a path, and returns the schema and the level that the server says it was of.
func (c *cluster) flow(t *testing.T, config *rest.Config, path string) (schema, level string, err error) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	must(t, err)
	response, err := client.Do(request)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	flows := c.admin.FlowcontrolV1()
	schemas, err := flows.FlowSchemas().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, s := range schemas.Items {
		if string(s.UID) == response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) {
			schema = s.Name
		}
	}
	levels, err := flows.PriorityLevelConfigurations().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, l := range levels.Items {
		if string(l.UID) == response.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID) {
			level = l.Name
		}
	}
	if schema == "" || level == "" {
		return "", "", errors.New("the answer names no schema or no level")
	}
	return schema, level, nil
}

// The schema of the agents' heartbeats is the one that identity/nodeauth makes.
func TestHeartbeatsAreTheGeneratedSchema(t *testing.T) {
	objects, err := nodeauth.Objects(podAgents())
	must(t, err)
	got := find[flowcontrolv1.FlowSchema](t, build(t, "agent"), "FlowSchema", podAgents().Name)
	for _, o := range objects {
		want, ok := o.(*flowcontrolv1.FlowSchema)
		if ok && !reflect.DeepEqual(got.Spec, want.Spec) {
			t.Errorf("got %+v, want %+v", got.Spec, want.Spec)
		}
	}
}
