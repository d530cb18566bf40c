// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/examples/internal/e2e"
)

// L-CS-38, L-CS-39: a stock kubelet keeps its own file, and finds the config of the source as a drop-in at each start for as long as it is
// used. Its health is asked for where its own file says so.
func TestAgentOfAKubeletWithDropIns(t *testing.T) {
	t.Parallel()
	wanted, run := t.TempDir(), t.TempDir()
	dir, seen := filepath.Join(run, "kubelet.conf.d"), filepath.Join(run, "seen")
	w := &world{Agent: e2e.NewAgent(t, &programs, "", "")}
	kubelet := w.Child[0]
	w.Render = ""
	w.Child = []string{"/bin/sh", "-c", `cat "$1"/*.conf > "$3" 2>/dev/null; exec "$0" --config "$2"`, kubelet, dir, w.Init, seen}
	w.Flags = append(w.Flags, "--config-dir="+dir, "--source=directory="+wanted)
	sees := func(config string) {
		t.Helper()
		e2e.Eventually(t, soon, fmt.Sprintf("the kubelet is started beside %q", config), func() error {
			got, err := os.ReadFile(seen)
			if err == nil && string(got) != config {
				err = fmt.Errorf("its drop-ins hold %q", got)
			}
			return err
		})
	}
	before, err := os.ReadFile(w.Init)
	p := w.Start(t)
	sees("")
	config := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 42 # by hand\n"
	temp := filepath.Join(t.TempDir(), "kubelet")
	if err := errors.Join(err, os.WriteFile(temp, []byte(config), 0o600), os.Rename(temp, filepath.Join(wanted, "kubelet"))); err != nil {
		t.Fatal(err)
	}
	sees(config)
	e2e.Eventually(t, soon, "it is promoted", func() error {
		d, err := w.Status(t)
		if err == nil && (d.InUse == nil || d.InUse.UID == "" || d.LastKnownGood.UID != d.InUse.UID) {
			err = fmt.Errorf("in use is %+v, last known good %+v, the trial %+v", d.InUse, d.LastKnownGood, d.Trial)
		}
		return err
	})
	if _, err := w.Command(t, "use-local", "--state-dir="+w.StateDir); err != nil {
		t.Fatal(err)
	}
	sees("")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("beside the local config the directory holds %v (%v), want nothing", left, err)
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("asked to stop, the agent exits with %d, want 0", code)
	}
	if after, err := os.ReadFile(w.Init); err != nil || string(after) != string(before) {
		t.Errorf("the kubelet's own file holds %q (%v), want it untouched", after, err)
	}
}
