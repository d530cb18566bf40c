// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"errors"
	"os"

	"github.com/belayproject/belay/internal/testenv"
)

// lateEnd is a stage of kwok that goes before the one that lets pods end at once: they end when their grace period is over.
const lateEnd = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-delete-late
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: 'Exists'
  weight: 1
  delay:
    durationMilliseconds: 0
    durationFrom:
      expressionFrom: '.metadata.deletionTimestamp'
  next:
    delete: true
`

// env starts the control plane that a fleet needs.
func (o Options) env(ctx context.Context) (*testenv.Env, error) {
	servers := testenv.Options{AuditPolicy: o.AuditPolicy}
	if o.Bare {
		return testenv.New(ctx, servers)
	}
	fast := []string{"--kube-api-qps=500", "--kube-api-burst=500"}
	servers.With = []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok}
	servers.Args = map[testenv.Component][]string{
		testenv.ControllerManager: append([]string{"--node-monitor-grace-period=30m"}, fast...), testenv.Scheduler: fast,
	}
	if o.PodsEnd > 0 {
		file, err := os.CreateTemp("", "belay-stage-*.yaml")
		if err != nil {
			return nil, err
		}
		defer os.Remove(file.Name()) // kwok reads it at its start
		_, err = file.WriteString(lateEnd)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		servers.Args[testenv.Kwok] = []string{"--config=" + file.Name()}
	}
	return testenv.New(ctx, servers)
}
