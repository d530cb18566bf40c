// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/agent/settings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/configsync"
)

// L-CS-38, L-CS-39: a config becomes a drop-in beside kubeadm's file, byte for byte, and is taken away again when the
// node goes back to its own config. Nothing else is written.
func TestADropInComesAndGoes(t *testing.T) {
	h := newUnitHost(t)
	kubeadm := local0 + "podsPerCore: 5\n"
	h.must(os.WriteFile(h.init, []byte(kubeadm), 0o600))
	dir := filepath.Join(t.TempDir(), "kubelet.conf.d")
	start := func(id string) (says string, names []string) {
		t.Helper()
		t.Setenv("INVOCATION_ID", id)
		t.Setenv("MAINPID", "")
		says, err := execute(t, Guard(settings.Parts{}), "--state-dir="+h.state, "--init-config="+h.init, "--config-dir="+dir)
		h.must(err)
		list, err := os.ReadDir(dir)
		h.must(err)
		for _, e := range list {
			names = append(names, e.Name())
		}
		return says, names
	}
	says, names := start("1")
	text, err := os.ReadFile(filepath.Join(dir, "90-belay.conf"))
	if err != nil || string(text) != good || len(names) != 1 {
		t.Errorf("the drop-ins are %q, the agent's is %q (%v), and the guard says %q, want the assigned config alone", names, text, err, says)
	}
	for i := range 3 {
		h.crash()
		start(fmt.Sprint("died ", i))
	}
	h.crash()
	if says, names = start("2"); len(names) != 0 || !strings.Contains(says, "deaths of the agent") {
		t.Errorf("after four deaths of the agent the drop-ins are %q, and the guard says %q, want none, and why", names, says)
	}
	if got, err := os.ReadFile(h.init); err != nil || string(got) != kubeadm {
		t.Errorf("kubeadm's file holds %q (%v), want it untouched", got, err)
	}
}

// L-CS-39: where kubeadm's file has changed so that both are bad together, the node is left with that file alone; check
// says so before.
func TestADropInThatNoLongerFits(t *testing.T) {
	shared, kubeadm := local0+"maxPods: 83\n", local0+"healthzPort: 0\n"
	h := newUnitHostOf(t, shared)
	dir := t.TempDir()
	dropIn, flags := filepath.Join(dir, "90-belay.conf"), []string{"--init-config=" + h.init, "--config-dir=" + dir}
	guard := func(id string) (string, error) {
		t.Setenv("INVOCATION_ID", id)
		return execute(t, Guard(settings.Parts{}), append(flags, "--state-dir="+h.state)...)
	}
	_, err := guard("1")
	h.must(err)
	if text, err := os.ReadFile(dropIn); err != nil || string(text) != shared {
		t.Fatalf("the drop-in is %q (%v), want the assigned config", text, err)
	}
	h.must(os.WriteFile(h.init, []byte(kubeadm), 0o600))
	out, err := execute(t, Check(settings.Parts{}), append(flags, file(t, shared))...)
	if err == nil || !strings.Contains(err.Error(), "healthzPort must not be 0") || out != "" {
		t.Errorf("check prints %q and %v, want the rule that both break together", out, err)
	}
	says, err := guard("2")
	h.must(err)
	if _, gone := os.Stat(dropIn); !os.IsNotExist(gone) || !strings.Contains(says, "failed to load current") {
		t.Errorf("after an upgrade the drop-in is there (%v), and the guard says %q, want it gone, and why", gone, says)
	}
	if got, err := os.ReadFile(h.init); err != nil || string(got) != kubeadm {
		t.Errorf("kubeadm's file holds %q (%v), want it untouched", got, err)
	}
}

// key writes a private key and a directory with its public one.
func key(t *testing.T) (private, trusted string) {
	t.Helper()
	k := ed25519.NewKeyFromSeed([]byte(strings.Repeat("belay-canary-key", 2)))
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	private, trusted = filepath.Join(t.TempDir(), "release.pem"), t.TempDir()
	for path, block := range map[string]*pem.Block{
		private: {Type: "PRIVATE KEY", Bytes: secret}, filepath.Join(trusted, "release.pem"): {Type: "PUBLIC KEY", Bytes: public},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return private, trusted
}

// R-CS-83: a signed ConfigMap is one that nodes take which ask for that key; its name carries the new digest, and the
// config is untouched.
func TestSign(t *testing.T) {
	private, trusted := key(t)
	plain, err := execute(t, ConfigMap(settings.Parts{}), "c", "--namespace=n", "--from-file=kubelet="+file(t, good))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := execute(t, Check(settings.Parts{}), "--trusted-keys="+trusted, file(t, plain)); err == nil || !strings.Contains(err.Error(), `entry "signatures" holds none`) {
		t.Errorf("check of an unsigned config prints %q and %v, want that it lacks a signature", out, err)
	}
	out, err := execute(t, Sign(settings.Parts{}), "--private-key="+private, file(t, plain))
	if err != nil {
		t.Fatal(err)
	}
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(out), &cm); err != nil {
		t.Fatal(err)
	}
	digest := configsync.Object{Data: cm.Data}.Digest()
	if cm.Data["kubelet"] != good || cm.Name != "c-"+digest[len("sha256:"):][:10] || !strings.Contains(out, "#       digest: "+digest+"\n") {
		t.Errorf("sign prints %s, want the config as it was, under a name with the digest %s", out, digest)
	}
	if says, err := execute(t, Check(settings.Parts{}), "--trusted-keys="+trusted, file(t, out)); err != nil || !strings.Contains(says, digest) {
		t.Errorf("check of the signed config prints %q and %v, want that it is good", says, err)
	}
	forged := strings.Replace(out, "maxPods: 42", "maxPods: 43", 1)
	if says, err := execute(t, Check(settings.Parts{}), "--trusted-keys="+trusted, file(t, forged)); err == nil || !strings.Contains(err.Error(), "does not fit the content") {
		t.Errorf("check of a config that was changed after prints %q and %v, want a refusal", says, err)
	}
}

// R-CS-83: what nodes would refuse is not signed, and no error repeats a key.
func TestSignRefuses(t *testing.T) {
	private, trusted := key(t)
	plain, err := execute(t, ConfigMap(settings.Parts{}), "c", "--namespace=n", "--from-file=kubelet="+file(t, good))
	if err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`--private-key="": must be`:         {file(t, plain)},
		"PRIVATE KEY":                       {"--private-key=" + filepath.Join(trusted, "release.pem"), file(t, plain)},
		"must be a ConfigMap in YAML":       {"--private-key=" + private, file(t, good)},
		"staticPodPath must be an absolute": {"--private-key=" + private, file(t, strings.Replace(plain, "maxPods: 42", "staticPodPath: a/b", 1))},
		"binaryData must be empty":          {"--private-key=" + private, file(t, plain+"binaryData: {a: aGk=}\n")},
		`key ID "A" must be`:                {"--private-key=" + private, "--key-id=A", file(t, plain)},
	} {
		out, err := execute(t, Sign(settings.Parts{}), args...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" || strings.Contains(err.Error(), "belay-canary-key") {
			t.Errorf("sign %q prints %q and %v, want an error with %q alone", args, out, err, want)
		}
	}
}

// L-CS-20, L-CS-21: check says what a change asks of a node, and what its policy refuses.
func TestCheckAsksThePolicy(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	text := "apiVersion: belay.dev/v1alpha1\nkind: FieldPolicy\ndefault: Restart\nrules:\n- {path: clusterDomain, action: Forbid, why: pods keep it}\n" +
		"- {path: maxPods, action: Drain, pools: [canary]}\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	node, before := file(t, local0+"clusterDomain: a\n"), file(t, good+"clusterDomain: b\n")
	for _, c := range []struct {
		want string
		ok   bool
		args []string
	}{
		{"disruption: Drain\n", true, []string{"--pool=canary", "--init-config=" + node, file(t, good+"clusterDomain: a\n")}},
		{`maxPods must not be changed in pool "batch"`, false, []string{"--pool=batch", "--init-config=" + node, file(t, good+"clusterDomain: a\n")}},
		{"clusterDomain must not be changed: pods keep it", false, []string{"--pool=canary", "--init-config=" + node, file(t, good+"clusterDomain: b\n")}},
		{"disruption: None\n", true, []string{"--from=" + before, "--init-config=" + node, file(t, good+"clusterDomain: b\n")}},
		{"can be read", true, []string{file(t, good)}},
	} {
		out, err := execute(t, Check(settings.Parts{}), append([]string{"--field-policy=" + policy}, c.args...)...)
		if c.ok && (err != nil || !strings.Contains(out, c.want)) || !c.ok && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("check %q prints %q and %v, want %q", c.args, out, err, c.want)
		}
	}
}
