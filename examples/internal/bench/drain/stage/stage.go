// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/testenv"
)

// measured is the group of the clients that are measured. The audit log holds their requests and no others.
const measured = "bench:measured"

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["` + measured + `"]
- level: None
`

// A Stage is a control plane with a kubelet for all its nodes.
type Stage struct {
	env    *testenv.Env
	client kubernetes.Interface // of everything that is not measured, without a limit
	audit  *tally
	end    context.CancelFunc // of the kubelet
	serial atomic.Int64       // of plays and users
}

// New starts a control plane. The caller ends it with Close.
func New(ctx context.Context) (*Stage, error) {
	env, err := testenv.New(ctx, testenv.Options{
		With: []testenv.Component{testenv.ControllerManager, testenv.Scheduler},
		// No node has a kubelet that renews its Lease, so nothing may judge nodes by it. The limits of the controllers are those of a
		// large cluster, or every round would wait for them.
		Args: map[testenv.Component][]string{
			testenv.ControllerManager: {
				"--controllers=disruption-controller,replicaset-controller,statefulset-controller",
				"--kube-api-qps=300", "--kube-api-burst=600",
			},
			testenv.Scheduler: {"--kube-api-qps=300", "--kube-api-burst=600"},
		},
		AuditPolicy: auditPolicy,
	})
	if err != nil {
		return nil, err
	}
	s := &Stage{env: env, audit: newTally(env.AuditLog())}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, env.Close())
	}
	return s, nil
}

func (s *Stage) open(ctx context.Context) error {
	var err error
	if s.client, err = kubernetes.NewForConfig(s.env.Config()); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-measured"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: measured}},
	}
	if _, err := s.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("binding the measured users: %w", err)
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	return startKubelet(ctx, s.client)
}

// Close ends the control plane and everything on it.
func (s *Stage) Close() error {
	if s.end != nil {
		s.end()
	}
	return s.env.Close()
}

// Client returns a client for one run, with a limit of its own; a qps of -1 means none.
func (s *Stage) Client(name string, qps float32, burst int) (*Client, error) {
	user := fmt.Sprintf("%s-%d", name, s.serial.Add(1))
	config, err := s.env.NewUser(user, measured)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = qps, burst
	c := &Client{stage: s, user: user, Config: config, Counter: &Counter{}}
	c.plain = *config
	config.Wrap(c.Counter.wrap)
	return c, nil
}

// Kubeconfig writes the client's configuration to a file for another process, whose requests only the API server counts.
func (c *Client) Kubeconfig() (string, error) {
	path := filepath.Join(c.stage.env.Dir(), c.user+".kubeconfig")
	return path, testenv.WriteKubeconfig(path, &c.plain)
}
