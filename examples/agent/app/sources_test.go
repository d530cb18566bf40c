// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/examples/internal/e2e"
)

// The wanted config can be named by an annotation of the Node.
func TestAgentTakesItsConfigFromAnAnnotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "annotated")
	w.Flags = append(w.Flags, "--source=annotation")
	w.Start(t)
	cm := w.ConfigMap(t, "annotated-v1", w.Config("maxPods: 42\n"), nil)
	source := fmt.Sprintf(`{"configMapRef":{"namespace":%q,"name":%q,"uid":%q}}`, cm.Namespace, cm.Name, cm.UID)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, kube.SourceAnnotation, source)
	_, err := w.Client.CoreV1().Nodes().Patch(t.Context(), w.Node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, soon, "the annotated config is promoted", func() error { return w.Promoted(t, string(cm.UID)) })
	w.runs(t, cm)
	w.says(t, corev1.ConditionTrue, using(cm), "all checks passed")
}

// A node without any API server takes its config from a directory.
func TestAgentTakesItsConfigFromADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := &world{Agent: e2e.NewAgent(t, &programs, "", "")}
	w.Flags = append(w.Flags, "--source=directory="+dir)
	w.Start(t)
	e2e.Eventually(t, soon, "the local config is used", func() error { return w.Uses(t, "") })
	put := func(text string) {
		t.Helper()
		temp := filepath.Join(t.TempDir(), "kubelet")
		if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temp, filepath.Join(dir, "kubelet")); err != nil {
			t.Fatal(err)
		}
	}
	v1 := w.Config("maxPods: 42\n")
	put(v1)
	w.runs(t, &corev1.ConfigMap{Data: map[string]string{"kubelet": v1}})
	e2e.Eventually(t, soon, "it is promoted", func() error {
		d, err := w.Status(t)
		if err == nil && (d.InUse == nil || d.InUse.UID == "" || d.LastKnownGood.UID != d.InUse.UID) {
			err = fmt.Errorf("in use is %+v, last known good %+v", d.InUse, d.LastKnownGood)
		}
		return err
	})
	put(w.Config("featureGates: {NoSuchGate: true}\n"))
	e2e.Eventually(t, soon, "the crashing one is rejected", func() error {
		d, err := w.Status(t)
		if err == nil && len(d.Rejected) == 0 {
			err = fmt.Errorf("nothing is rejected, ConfigOK is %+v", d.ConfigOK)
		}
		return err
	})
	w.runs(t, &corev1.ConfigMap{Data: map[string]string{"kubelet": v1}})
}

// R-CS-27, R-CS-33: what can't be found, or is another one, is reported with its cause and changes nothing; the error goes away with it.
func TestAgentStaysWhereTheWantedConfigIsUnclear(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.Env(t), "unclear")
	w.Start(t)
	v1 := w.good(t, "unclear-v1")
	before := fmt.Sprint(w.Children(t))
	ghost := v1.DeepCopy()
	ghost.Name = "no-such-config"
	other := v1.DeepCopy()
	other.UID = "another-uid"
	for _, wanted := range []*corev1.ConfigMap{ghost, other} {
		w.Assign(t, w.Node, wanted)
		e2e.Eventually(t, soon, "the trouble is reported with its cause", func() error {
			c, err := w.ConfigOK(t, w.Node)
			if err == nil && (c.Status != corev1.ConditionUnknown || c.Reason == "" || c.Message != using(v1)) {
				err = fmt.Errorf("ConfigOK is %s: %q because %q", c.Status, c.Message, c.Reason)
			}
			return err
		})
		w.Assign(t, w.Node, v1)
		w.says(t, corev1.ConditionTrue, using(v1), "all checks passed")
	}
	if after := fmt.Sprint(w.Children(t)); after != before {
		t.Errorf("the child is process %s, was %s: trouble with the source restarted it", after, before)
	}
}
