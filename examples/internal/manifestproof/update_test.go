// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/testenv"
)

// scarce has the server admit pods with the priorities of the system only where a quota is for them, as that of GKE does.
const scarce = `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes:
      - {scopeName: PriorityClass, operator: In, values: [system-node-critical, system-cluster-critical]}
`

// An update of the controller ends where as many nodes take pods as it has replicas, besides a control plane that takes none, and its replicas are on different nodes then. It
// ends also where one node alone takes pods. Where the system's priorities are scarce the controller and the agents have theirs.
func TestUpdateOfTheControllerEnds(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "admission.yaml")
	must(t, os.WriteFile(config, []byte(scarce), 0o600))
	env := testenv.Start(t, testenv.Options{
		With: []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok},
		Args: map[testenv.Component][]string{
			testenv.APIServer:         {"--admission-control-config-file=" + config},
			testenv.ControllerManager: {"--node-monitor-grace-period=1h"}, // nobody renews the nodes' Leases
		},
	})
	c := clusterOf(t, env)
	for name, taints := range map[string][]corev1.Taint{
		"a": nil, "b": nil, "plane": {{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}},
	} {
		_, err := env.CreateNode(t.Context(), name, testenv.KwokNode, func(n *corev1.Node) { n.Spec.Taints = taints })
		must(t, err)
	}
	c.apply(t, build(t, "controller"))
	c.apply(t, build(t, "agent"))
	c.rolledOut(t, 2)
	for _, image := range []string{"belay-controller:v2", "belay-controller:v3"} {
		c.change(t, image)
		c.rolledOut(t, 2)
	}
	_, err := c.admin.CoreV1().Nodes().Patch(t.Context(), "b", types.StrategicMergePatchType, []byte(`{"spec": {"taints": [{"key": "others", "effect": "NoSchedule"}]}}`), metav1.PatchOptions{})
	must(t, err)
	c.change(t, "belay-controller:v4")
	c.rolledOut(t, 1)
	within(t, 3*time.Minute, "every node must have its agent", func() error {
		d, err := c.admin.AppsV1().DaemonSets(agentNamespace).Get(t.Context(), agentAccount, metav1.GetOptions{})
		if err == nil && d.Status.CurrentNumberScheduled != 3 {
			err = fmt.Errorf("the DaemonSet has %d pods: %+v", d.Status.CurrentNumberScheduled, d.Status.Conditions)
		}
		return err
	})
}

// change gives the controller another image.
func (c *cluster) change(t *testing.T, image string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec": {"template": {"spec": {"containers": [{"name": "controller", "image": %q}]}}}}`, image)
	_, err := c.admin.AppsV1().Deployments(systemNamespace).Patch(t.Context(), controllerAccount, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

// rolledOut waits for what "kubectl rollout status" waits for, and checks on how many nodes the two replicas are.
func (c *cluster) rolledOut(t *testing.T, hosts int) {
	t.Helper()
	within(t, 3*time.Minute, "the rollout of the controller must end", func() error {
		d, err := c.admin.AppsV1().Deployments(systemNamespace).Get(t.Context(), controllerAccount, metav1.GetOptions{})
		if s := d.Status; err == nil && (s.ObservedGeneration < d.Generation || s.UpdatedReplicas != 2 || s.Replicas != 2 || s.AvailableReplicas != 2) {
			err = fmt.Errorf("%d replicas, %d of them updated, %d available: %+v", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, s.Conditions)
		}
		return err
	})
	pods, err := c.admin.CoreV1().Pods(systemNamespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	on := map[string]bool{}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			on[pods.Items[i].Spec.NodeName] = true
		}
	}
	if len(on) != hosts {
		t.Errorf("the replicas are on %v, want them on %d", on, hosts)
	}
}
