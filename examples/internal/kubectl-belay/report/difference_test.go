// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/configsync"
	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// R-RO-29: entries of the history differ in fields of the configs that their Revisions name; what can't be read, or is not what it was, is said.
func TestConfigsDiffer(t *testing.T) {
	configs := map[string]map[string]string{
		"a": {"kubelet": "maxPods: 110\nevictionHard: {memory.available: 100Mi}\n"},
		"b": {"kubelet": "maxPods: 250\nevictionHard: {memory.available: 100Mi}\n", "extra": "x"},
		"c": {"kubelet": "maxPods: 110\n"},
	}
	r := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
	var revisions []v1alpha1.Revision
	for i, name := range []string{"a", "b", "c", "d"} {
		digest := configsync.DigestOf(configs[name])
		revisions = append(revisions, v1alpha1.Revision{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.RevisionSpec{Digest: digest, ConfigMapRef: &configv1alpha1.ConfigMapRef{Namespace: "fleet", Name: name}},
		})
		r.Status.History = append(r.Status.History, v1alpha1.HistoryEntry{
			Number: int64(i + 1), RolloutTargets: v1alpha1.RolloutTargets{Revision: v1alpha1.PinnedRevision{Name: name, Digest: digest}},
		})
	}
	configs["c"]["kubelet"] = "maxPods: 111\n" // since
	read := func(_ context.Context, namespace, name string) (map[string]string, error) {
		if data, ok := configs[name]; ok && namespace == "fleet" {
			return data, nil
		}
		return nil, errors.New("reading ConfigMap " + namespace + "/" + name + ": forbidden")
	}
	for file, to := range map[string]int64{"difference-config.txt": 2, "difference-changed.txt": 3, "difference-forbidden.txt": 4} {
		d, err := report.EntriesDiffer(t.Context(), r, revisions, 1, to, read)
		if err != nil {
			t.Fatal(err)
		}
		check(t, file, d.Text())
	}
}
