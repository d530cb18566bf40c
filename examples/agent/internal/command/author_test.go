// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/agent/settings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/configsync"
)

const good = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n# by hand\nmaxPods: 42\n"

// execute runs a command and gives what it prints.
func execute(t *testing.T, c *cobra.Command, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// file writes text to a file named kubelet.yaml.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// R-CS-83: the name carries the digest, the object is immutable, and the config is in it byte for byte.
func TestConfigMap(t *testing.T) {
	out, err := execute(t, ConfigMap(settings.Parts{}), "kubelet-config", "--namespace=kube-system", "--from-file=kubelet="+file(t, good),
		"--trial=15m", "--crash-loop-threshold=0")
	if err != nil {
		t.Fatal(err)
	}
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(out), &cm); err != nil {
		t.Fatalf("the output is no ConfigMap: %v\n%s", err, out)
	}
	digest := configsync.Object{Data: cm.Data}.Digest()
	want := map[string]string{"kubelet": good, configsync.KeyTrialDuration: "15m0s", configsync.KeyCrashLoopThreshold: "0"}
	if cm.Immutable == nil || !*cm.Immutable || len(cm.Data) != len(want) {
		t.Errorf("the ConfigMap is %+v, want an immutable one with the entries %v", cm, want)
	}
	for k, v := range want {
		if cm.Data[k] != v {
			t.Errorf("data[%s] is %q, want %q", k, cm.Data[k], v)
		}
	}
	if name := "kubelet-config-" + digest[len("sha256:"):][:10]; cm.Name != name || cm.Namespace != "kube-system" {
		t.Errorf("the ConfigMap is %s/%s, want kube-system/%s", cm.Namespace, cm.Name, name)
	}
	for _, line := range []string{"#       digest: " + digest, "#       name: " + cm.Name, "#       key: kubelet"} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("the source that names it lacks the line %q:\n%s", line, out)
		}
	}
	again, err := execute(t, Check(settings.Parts{}), file(t, out))
	says := "can be read: trial 15m0s, unexplained restarts tolerated: 0, digest " + digest
	if err != nil || !strings.Contains(again, says) {
		t.Errorf("check says %q, %v of the ConfigMap, want that it is good, its limits and the digest", again, err)
	}
}

func TestConfigMapOfOtherContentHasAnotherName(t *testing.T) {
	name := func(args ...string) string {
		t.Helper()
		out, err := execute(t, ConfigMap(settings.Parts{}), append([]string{"c", "--namespace=n"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var cm corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(out), &cm); err != nil {
			t.Fatal(err)
		}
		return cm.Name
	}
	from := "--from-file=kubelet=" + file(t, good)
	names := map[string]bool{
		name(from): true, name(from, "--trial=1h"): true, name("--from-file=kubelet=" + file(t, good+"podsPerCore: 1\n")): true,
	}
	if len(names) != 3 {
		t.Errorf("three contents have the names %v, want three names", names)
	}
	if !names[name(from)] {
		t.Error("the same content has another name the second time")
	}
}

func TestConfigMapRefusesWhatNodesWouldRefuse(t *testing.T) {
	path := file(t, good)
	for _, c := range []struct {
		want string
		args []string
	}{
		{`--from-file="": must be KEY=FILE`, []string{"c", "--namespace=n"}},
		{`--from-file="kubelet": must be KEY=FILE`, []string{"c", "--namespace=n", "--from-file=kubelet"}},
		{`--namespace="": must be the name of a namespace`, []string{"c", "--from-file=kubelet=" + path}},
		{"staticPodPath must be an absolute path", []string{"c", "--namespace=n", "--from-file=kubelet=" + file(t, good+"staticPodPath: a/b\n")}},
		{"providerID must not be set", []string{"c", "--namespace=n", "--from-file=kubelet=" + file(t, good+"providerID: a://b\n")}},
		{`"crashLoopThreshold": must be a whole number from 0 to 10`, []string{"c", "--namespace=n", "--from-file=kubelet=" + path, "--crash-loop-threshold=11"}},
		{`name "C" is not possible`, []string{"C", "--namespace=n", "--from-file=kubelet=" + path}},
		{"no such file", []string{"c", "--namespace=n", "--from-file=kubelet=/absent"}},
		{"the name that the ConfigMap's own begins with", []string{"--namespace=n"}},
	} {
		if out, err := execute(t, ConfigMap(settings.Parts{}), c.args...); err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%q prints %q and %v, want an error with %q alone", c.args, out, err, c.want)
		}
	}
}

// L-CS-21.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		text, want string // want is part of the output or of the error
		good       bool
		args       []string
	}{
		{text: good, want: "can be read: trial 10m0s, unexplained restarts tolerated: 2, digest sha256:", good: true},
		{text: good + "staticPodPath: a/b\n", want: "staticPodPath must be an absolute path"},
		{text: good + "maxPod: 1\n", want: `field "maxPod" is not known`},
		{text: good + "providerID: a://b\n", want: "providerID must not be set"},
		{text: good + "providerID: a://b\n", want: "can be read", good: true, args: []string{"--init"}},
		{text: good + "healthzPort: 0\n", want: "healthzPort must not be 0"},
		{
			text: good + "healthzPort: 0\n", want: "can be read", good: true,
			args: []string{"--health-url=http://127.0.0.1:1/"},
		},
		{text: "a: &x b\n", want: "anchor"},
		{text: "kind: ConfigMap\nmetadata: {name: c}\ndata: {other: x}\n", want: `"kubelet"`},
		{text: "kind: ConfigMap\nmetadata: {name: c}\ndata: {other: " + `'{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration"}'` + "}\n", want: "can be read", good: true, args: []string{"--key=other"}},
		{text: good, want: `--min-trial="0s"`, args: []string{"--min-trial=0"}},
	} {
		out, err := execute(t, Check(settings.Parts{}), append(c.args, file(t, c.text))...)
		switch {
		case c.good && (err != nil || !strings.Contains(out, c.want)):
			t.Errorf("check %q %q prints %q and %v, want %q", c.args, c.text, out, err, c.want)
		case !c.good && (err == nil || !strings.Contains(err.Error(), c.want) || out != ""):
			t.Errorf("check %q %q prints %q and %v, want an error with %q alone", c.args, c.text, out, err, c.want)
		}
	}
}

func TestCheckReadsNoHugeFile(t *testing.T) {
	if _, err := execute(t, Check(settings.Parts{}), file(t, strings.Repeat("# x\n", maxFile/4+1))); err == nil || !strings.Contains(err.Error(), "has more than") {
		t.Errorf("check of a file above the limit: %v, want an error with the limit", err)
	}
}
