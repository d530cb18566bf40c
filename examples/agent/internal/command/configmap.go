// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/agent/settings"
)

// digestInName is how many digits of the digest a name carries: enough that no two versions of one config meet.
const digestInName = 10

// configMap is what the configmap sub-command is told.
type configMap struct {
	local           settings.Local
	namespace, from string
	trial           time.Duration
	threshold       int // negative: not said
}

// ConfigMap prints an immutable ConfigMap whose name carries the digest of its content, and the source that names it.
func ConfigMap(own settings.Parts) *cobra.Command {
	m := configMap{local: settings.Local{Own: own}}
	c := &cobra.Command{
		Use:   "configmap NAME --namespace NAMESPACE --from-file KEY=FILE",
		Short: "Print an immutable ConfigMap for a config, and the source by which a node is moved to it",
		Args:  one("the name that the ConfigMap's own begins with"),
		RunE: func(c *cobra.Command, args []string) error {
			return m.print(c.Context(), c.OutOrStdout(), args[0])
		},
	}
	f := c.Flags()
	f.StringVar(&m.namespace, "namespace", "", "namespace of the ConfigMap")
	f.StringVar(&m.from, "from-file", "", "KEY=FILE: the entry of the ConfigMap, and the config that goes there")
	f.DurationVar(&m.trial, "trial", 0, "trial of the config; 0 leaves it to each node")
	f.IntVar(&m.threshold, "crash-loop-threshold", -1, "unexplained restarts that the config may cause on its trial, 0 to 10; -1 leaves it to each node")
	return c
}

func (m *configMap) print(ctx context.Context, w io.Writer, name string) error {
	cm, err := m.build(ctx, name)
	if err != nil {
		return err
	}
	return printed(w, cm, m.local.Key)
}

// printed writes a ConfigMap and the source that names it.
func printed(w io.Writer, cm *corev1.ConfigMap, key string) error {
	raw, err := yaml.Marshal(cm)
	if err != nil {
		return err
	}
	ref := v1alpha1.ConfigMapRef{Namespace: cm.Namespace, Name: cm.Name, Key: key, Digest: object(cm).Digest()}
	source, err := yaml.Marshal(map[string]any{"source": v1alpha1.NodeConfigSource{ConfigMapRef: &ref}})
	if err != nil {
		return err
	}
	snippet := "#   " + strings.ReplaceAll(strings.TrimSpace(string(source)), "\n", "\n#   ")
	_, err = fmt.Fprintf(w, "# Create it, then move one node after the other to it, with this in the spec of the node's NodeConfig:\n#\n%s\n%s",
		snippet, raw)
	return err
}

// build makes the ConfigMap of a config that nodes would take.
func (m *configMap) build(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	key, path, ok := strings.Cut(m.from, "=")
	if !ok || key == "" || path == "" {
		return nil, &settings.FlagError{Flag: "from-file", Value: m.from, Want: "must be KEY=FILE, such as kubelet=kubelet.yaml"}
	}
	if problems := validation.IsDNS1123Label(m.namespace); len(problems) > 0 {
		return nil, &settings.FlagError{Flag: "namespace", Value: m.namespace, Want: "must be the name of a namespace, such as kube-system"}
	}
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	own := m.local.Own
	m.local = *settings.Defaults()
	m.local.Key, m.local.Own = key, own
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace},
		Immutable:  ptr.To(true),
		Data:       map[string]string{key: string(text)},
	}
	m.limits(cm.Data)
	cm.Name = name + digestSuffix(cm)
	if problems := validation.IsDNS1123Subdomain(cm.Name); len(problems) > 0 {
		return nil, fmt.Errorf("name %q is not possible: %s", name, problems[0])
	}
	if _, err := judge(ctx, &m.local, object(cm)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cm, nil
}

// digestSuffix is the end of a name that carries the digest of its object's content.
func digestSuffix(cm *corev1.ConfigMap) string {
	return "-" + strings.TrimPrefix(object(cm).Digest(), "sha256:")[:digestInName]
}

// limits adds the limits that were said.
func (m *configMap) limits(data map[string]string) {
	if m.trial != 0 {
		data[configsync.KeyTrialDuration] = m.trial.String()
	}
	if m.threshold >= 0 {
		data[configsync.KeyCrashLoopThreshold] = strconv.Itoa(m.threshold)
	}
}

// object is cm as a node gets it.
func object(cm *corev1.ConfigMap) configsync.Object {
	return configsync.Object{Namespace: cm.Namespace, Name: cm.Name, UID: futureUID, Immutable: true, Data: cm.Data}
}
