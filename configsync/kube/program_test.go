// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/restart"
)

// The program of the page, with the rights of a node: its first life begins with the built-in config and ends for the one that the
// NodeConfig names, its second life uses that.
func TestProgramFromAPIServer(t *testing.T) {
	c := newCluster(t)
	cm, err := c.admin.CoreV1().ConfigMaps(c.namespace).Create(deadline(t), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "workers-8"}, Immutable: ptr.To(true), Data: map[string]string{"agent": "workers: 8\n"},
	}, metav1.CreateOptions{})
	must(t, err)
	must(t, c.assignNodeConfig(deadline(t), fmt.Sprintf(`{"configMapRef":{"namespace":%q,"name":%q,"uid":%q,"key":"agent"}}`,
		cm.Namespace, cm.Name, cm.UID)))
	state := t.TempDir()
	var seen []int
	life := func() error {
		ctx, stop := context.WithCancel(deadline(t))
		defer stop()
		work := func(ctx context.Context, a configsync.Active[agentConfig]) error {
			if seen = append(seen, a.Config.Workers); a.Config.Workers == 8 {
				stop()
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return runFromAPIServer(ctx, c.agent, c.node, state, work)
	}
	if err := life(); restart.Code(err) != 75 {
		t.Fatalf("the first life ended with %v (exit code %d), want 75 for another config", err, restart.Code(err))
	}
	if err := life(); err != nil {
		t.Errorf("the second life ended with %v, want nil", err)
	}
	if fmt.Sprint(seen) != "[1 8]" {
		t.Errorf("the lives have used %v workers, want 1 and then 8", seen)
	}
}
