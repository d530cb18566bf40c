// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/fields"
	"github.com/belayproject/belay/configsync/signed"
)

const kubeletHead = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// files writes files below a new directory.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func remote(text string) configsync.Object {
	return configsync.Object{Namespace: "ns", Name: "c", UID: "u", Data: map[string]string{"kubelet": text}}
}

// L-CS-38, L-CS-39: what is decoded is what a kubelet makes of its own file and all drop-ins in the order of their
// names, read anew each time, as kubeadm rewrites its file.
func TestDropInsAreMergedAsAKubeletDoes(t *testing.T) {
	dir := files(t, map[string]string{
		"config.yaml":                kubeletHead + "maxPods: 1\npodsPerCore: 1\nregistryBurst: 1\neventBurst: 1\n",
		"d/10-a.conf":                kubeletHead + "podsPerCore: 2\nregistryBurst: 2\n",
		"d/90-belay.conf":            "left by the config before",
		"d/90-belay.conf.d/x.yaml":   "not read",
		"d/95/b.conf":                kubeletHead + "eventBurst: 3\n",
		"d/.90-belay.conf.belay-tmp": "half a",
	})
	l := Defaults()
	l.InitConfig, l.ConfigDir = filepath.Join(dir, "config.yaml"), filepath.Join(dir, "d")
	o := l.Options()
	used := func(obj configsync.Object) [4]int32 {
		t.Helper()
		c, _, err := o.Codec.Decode("kubelet", obj)
		if err != nil {
			t.Fatal(err)
		}
		var all struct{ MaxPods, PodsPerCore, RegistryBurst, EventBurst int32 }
		if err := json.Unmarshal(c.Document, &all); err != nil {
			t.Fatal(err)
		}
		return [4]int32{all.MaxPods, all.PodsPerCore, all.RegistryBurst, all.EventBurst}
	}
	shared := remote(kubeletHead + "registryBurst: 9\neventBurst: 9\n")
	if got := used(shared); got != [4]int32{1, 2, 9, 3} {
		t.Errorf("with the config the kubelet uses %v, want 1 of its file, 2 of the drop-in in front, 9 of the config, 3 of the one behind", got)
	}
	local, err := o.Init(t.Context())
	if got := used(local); err != nil || got != [4]int32{1, 2, 2, 3} {
		t.Errorf("without a config the kubelet uses %v (%v), want what is there without the agent", got, err)
	}
	if err := os.WriteFile(l.InitConfig, []byte(kubeletHead+"maxPods: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := used(shared); got != [4]int32{7, 2, 9, 3} {
		t.Errorf("after an upgrade the kubelet uses %v, want 7 of its new file", got)
	}
	if err := o.Inspectors[0].Inspect(t.Context(), "kubelet", shared); err != nil {
		t.Errorf("Inspect = %v, want nil", err)
	}
	for text, why := range map[string]string{
		"{": "is no document", "": "is empty", "maxPods: 1\n": "names no kind", kubeletHead + "maxPods: many\n": "has a value of another type",
	} {
		if err := os.WriteFile(filepath.Join(dir, "d", "99.conf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := o.Inspectors[0].Inspect(t.Context(), "kubelet", shared); !errors.Is(err, configsync.ErrUndecided) {
			t.Errorf("beside a drop-in that %s Inspect = %v, want ErrUndecided: that is no fault of the config", why, err)
		}
	}
}

// L-CS-38: a field of a newer kubelet in kubeadm's file or in a drop-in of others is passed over, as the kubelet does,
// and is in the document that the kubelet reads; in the config of a source it is refused where no kubelet judges.
func TestFieldsOfANewerKubeletInFilesOfOthers(t *testing.T) {
	const newer = "aFieldOfANewerKubelet: {a: 1}\n"
	dir := files(t, map[string]string{"config.yaml": kubeletHead + "maxPods: 1\nmaxPods: 2\n" + newer, "d/95.conf": kubeletHead + "x: &x 3\npodsPerCore: *x\n" + newer})
	l := Defaults()
	l.InitConfig, l.ConfigDir = filepath.Join(dir, "config.yaml"), filepath.Join(dir, "d")
	o := l.Options()
	local, err := o.Init(t.Context())
	if err != nil {
		t.Fatalf("Init = %v, want the local config", err)
	}
	for _, object := range []configsync.Object{local, remote(kubeletHead)} {
		c, _, err := o.Codec.Decode("kubelet", object)
		if err != nil || c.MaxPods != 2 || !strings.Contains(string(c.Document), `"aFieldOfANewerKubelet":{"a":1}`) || !strings.Contains(string(c.Document), `"podsPerCore":3`) {
			t.Errorf("Decode(UID %q) = %+v, %v, want what the kubelet reads", object.UID, c, err)
		}
	}
	if _, _, err := o.Codec.Decode("kubelet", remote(kubeletHead+newer)); err == nil || !strings.Contains(err.Error(), "aFieldOfANewerKubelet") {
		t.Errorf("Decode of a config with the field = %v, want a refusal that names it", err)
	}
	l.ProveKubelet = "/usr/bin/kubelet"
	if _, _, err := l.Options().Codec.Decode("kubelet", remote(kubeletHead+newer)); err != nil {
		t.Errorf("Decode beside a kubelet that judges = %v, want nil", err)
	}
}

// L-CS-38: kubeadm's file is no place to render to, in either way, nor through a link.
func TestTargets(t *testing.T) {
	dir := files(t, map[string]string{"kubelet/config.yaml": kubeletHead, "d/10-a.conf": "", "a-file": ""})
	at := func(name string) string { return filepath.Join(dir, name) }
	for link, to := range map[string]string{"link": at("kubelet"), "link-d": at("d"), "linked.conf": at("kubelet/config.yaml")} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(at("taken"), 0o700), os.Symlink(at("kubelet/config.yaml"), at("taken/"+DropIn))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string // part of the error; empty: none
	}{
		{[]string{"--render=", "--config-dir=" + at("d")}, ""},
		{[]string{"--render=", "--config-dir=" + at("absent")}, ""},
		{[]string{"--config-dir=" + at("d")}, "must be empty with --config-dir"},
		{[]string{"--render=", "--config-dir=d"}, "must be the absolute path of the kubelet's --config-dir"},
		{[]string{"--render=", "--config-dir=" + at("link-d")}, "must be a directory itself"},
		{[]string{"--render=", "--config-dir=" + at("a-file")}, "must be a directory itself"},
		{[]string{"--render=", "--config-dir=" + at("taken")}, "not the agent's to write"},
		{[]string{"--render=", "--config-dir=/s/d"}, "must not lie in --state-dir"},
		{[]string{"--render=", "--config-dir=/s"}, "must not lie in --state-dir"},
		{[]string{"--render=" + at("kubelet/config.yaml")}, "not the agent's to write"},
		{[]string{"--render=" + at("link/config.yaml")}, "not the agent's to write"},
		{[]string{"--render=" + at("linked.conf")}, "not the agent's to write"},
		{[]string{"--render=" + KubeadmConfig}, "not the agent's to write"},
	} {
		err := parse(t, line(t, append([]string{"--init-config=" + at("kubelet/config.yaml")}, c.args...)...)...).Validate()
		if (err == nil) != (c.want == "") || err != nil && (len(flags(err)) != 1 || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q alone", c.args, err, c.want)
		}
	}
	l := Local{ConfigDir: at("d"), InitConfig: at("kubelet/config.yaml")}
	if got, want := l.Target("/r"), at("d/90-belay.conf"); got != want {
		t.Errorf("Target = %q, want %q", got, want)
	}
}

// L-CS-20: the field policy sees what this node would use, before and after; nothing of its own files counts as a
// change.
func TestThePolicyComparesWhatIsUsed(t *testing.T) {
	dir := files(t, map[string]string{
		"config.yaml": kubeletHead + "maxPods: 1\nclusterDomain: a\n",
		"d/95.conf":   kubeletHead + "podsPerCore: 3\n",
		"policy.yaml": "apiVersion: belay.dev/v1alpha1\nkind: FieldPolicy\ndefault: Restart\nrules:\n" +
			"- {path: clusterDomain, action: Forbid}\n- {path: podsPerCore, action: Forbid}\n- {path: maxPods, action: Drain, pools: [canary]}\n",
	})
	l := Defaults()
	l.InitConfig, l.ConfigDir, l.FieldPolicy, l.Pool = filepath.Join(dir, "config.yaml"), filepath.Join(dir, "d"), filepath.Join(dir, "policy.yaml"), "canary"
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	o := l.Options()
	local, err := o.Init(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want, refused string }{
		{local.Data["kubelet"], kubeletHead + "eventBurst: 3\n", "Restart", ""},
		{local.Data["kubelet"], kubeletHead + "clusterDomain: a\n", "None", ""},
		{local.Data["kubelet"], kubeletHead + "podsPerCore: 9\n", "None", ""}, // the node's own file is stronger
		{local.Data["kubelet"], kubeletHead + "maxPods: 2\n", "Drain", ""},
		{kubeletHead + "maxPods: 2\n", kubeletHead, "Drain", ""},
		{local.Data["kubelet"], kubeletHead + "cpuManagerPolicy: static\n", "Drain", ""}, // L-CS-41: it leaves state on disk
		{kubeletHead + "memoryManagerPolicy: Static\n", kubeletHead + "eventBurst: 3\n", "Drain", ""},
		{local.Data["kubelet"], kubeletHead + "clusterDomain: b\n", "", "clusterDomain"},
	} {
		got, err := o.Changes.Judge([]byte(c.from), []byte(c.to))
		var refused *fields.RefusedError
		if got != c.want || (c.refused == "") != (err == nil) || err != nil && (!errors.As(err, &refused) || refused.Changes[0].Path != c.refused) {
			t.Errorf("Judge(%q, %q) = %q, %v, want %q and %q refused", c.from, c.to, got, err, c.want, c.refused)
		}
	}
	l.Pool = "batch"
	if _, err := l.Options().Changes.Judge([]byte(local.Data["kubelet"]), []byte(kubeletHead+"maxPods: 2\n")); err == nil {
		t.Error("a field of another pool's may be changed")
	}
}

// Only what a trusted key has signed is taken; keys that can't be read make nothing good, and nothing bad.
func TestTrustedKeys(t *testing.T) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	dir := files(t, map[string]string{"release.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))})
	l := Defaults()
	l.TrustedKeys = dir
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	obj := remote(kubeletHead)
	var unsigned *signed.UnsignedError
	if err := l.Options().Inspectors[0].Inspect(t.Context(), "kubelet", obj); !errors.As(err, &unsigned) {
		t.Errorf("Inspect of an unsigned config = %v, want an UnsignedError", err)
	}
	if obj.Data[signed.Entry], err = signed.Sign("release", private, obj.Data); err != nil {
		t.Fatal(err)
	}
	if err := l.Options().Inspectors[0].Inspect(t.Context(), "kubelet", obj); err != nil {
		t.Errorf("Inspect of a signed config = %v, want nil", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := l.Options().Inspectors[0].Inspect(t.Context(), "kubelet", obj); !errors.Is(err, configsync.ErrUndecided) {
		t.Errorf("Inspect with keys that anybody may write = %v, want ErrUndecided", err)
	}
	if err := l.Validate(); !slices.Equal(flags(err), []string{"trusted-keys"}) {
		t.Errorf("Validate = %v, want an error about the keys", err)
	}
}

// L-CS-39: an overlay is read once, so that what was judged is what is rendered.
func TestTheOverlayIsReadOnce(t *testing.T) {
	dir := files(t, map[string]string{"node.yaml": "maxPods: 7\n", "bad.yaml": "a: &x b\n", "none/.keep": ""})
	l := Defaults()
	l.NodeConfig = filepath.Join(dir, "node.yaml")
	o := l.Options()
	for range 2 {
		if c, _, err := o.Codec.Decode("kubelet", remote(kubeletHead+"maxPods: 1\n")); err != nil || c.MaxPods != 7 {
			t.Errorf("Decode = %+v, %v, want maxPods 7 of the overlay", c, err)
		}
		if err := os.WriteFile(l.NodeConfig, []byte("maxPods: 8\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, flag string }{
		{"--node-config=" + dir + "/bad.yaml", "node-config"}, {"--node-config=/absent", "node-config"},
		{"--config-dir=" + dir + " --render= --node-config=" + dir + "/node.yaml", "node-config"},
		{"--field-policy=" + dir + "/node.yaml", "field-policy"}, {"--field-policy=/absent", "field-policy"}, {"--pool=a", "pool"},
		{"--trusted-keys=" + dir + "/none", "trusted-keys"}, {"--trusted-keys=/absent", "trusted-keys"},
	} {
		if err := parse(t, line(t, strings.Fields(c.args)...)...).Validate(); !slices.Equal(flags(err), []string{c.flag}) {
			t.Errorf("%s: %v, want an error about --%s alone", c.args, err, c.flag)
		}
	}
}
