// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// BenchmarkPolicy compares writes that the policy checks with the same ones of an account that it is not for, in turns, and reports the
// medians and their ratio. The bar is 1.15.
func BenchmarkPolicy(b *testing.B) {
	c := newCluster(b)
	c.account(b, "free")
	a := c.agent(b, "a")
	c.has(b, a.node)
	free := c.agentOf(b, "free", a.node)
	c.guard(b)
	for _, w := range []struct {
		name, object, patch string
		objects             func(client dynamic.Interface) dynamic.ResourceInterface
		subresources        []string
	}{
		{"lease", "agent-" + a.node.Name, `{"spec":{"holderIdentity":"%"}}`,
			func(client dynamic.Interface) dynamic.ResourceInterface {
				return client.Resource(leases).Namespace(c.namespace)
			}, nil},
		{"status", a.node.Name, `{"status":{"a":"%"}}`, func(client dynamic.Interface) dynamic.ResourceInterface { return client.Resource(shadows) }, []string{"status"}},
		{"node", a.node.Name, `{"status":{"conditions":[{"type":"ConfigOK","status":"True","reason":"%"}]}}`,
			func(client dynamic.Interface) dynamic.ResourceInterface { return client.Resource(nodes) }, []string{"status"}},
	} {
		b.Run(w.name, func(b *testing.B) {
			var took [2][]time.Duration
			turn := 0
			for b.Loop() {
				for i := range 2 {
					which := (i + turn) % 2
					client := []dynamic.Interface{free.client, a.client}[which]
					start := time.Now()
					_, err := w.objects(client).Patch(b.Context(), w.object, types.MergePatchType, numbered(w.patch, start), metav1.PatchOptions{}, w.subresources...)
					took[which] = append(took[which], time.Since(start))
					if err != nil {
						b.Fatal(err)
					}
				}
				turn++
			}
			off, on := median(took[0]), median(took[1])
			b.ReportMetric(float64(off.Microseconds()), "off-µs")
			b.ReportMetric(float64(on.Microseconds()), "on-µs")
			b.ReportMetric(float64(on)/float64(off), "ratio")
		})
	}
}

// numbered makes each patch a change.
func numbered(patch string, at time.Time) []byte {
	return []byte(strings.Replace(patch, "%", fmt.Sprintf("N%d", at.UnixNano()), 1))
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}
