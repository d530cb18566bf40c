// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
)

// refusesMany is a program that ends as a kubelet does that validates its config, and refuses a maxPods of 13 beside a
// podsPerCore of 3. It starts on no machine.
const refusesMany = `#!/bin/sh
for arg; do case "$arg" in --config=*) config="${arg#--config=}";; --config-dir*) exit 3;; esac; done
end() { echo "E0101 00:00:00.0 1 run.go:72] \"command failed\" err=\"$1\"" >&2; exit 1; }
case "$*" in *--exit-on-lock-contention*) ;; *) end "no place";; esac
if grep -q 'maxPods[": ]*13' "$config" && grep -q 'podsPerCore[": ]*3' "$config"; then end "too many pods"; fi
end "no lock file specified"
`

// C-21: a kubelet with a directory of drop-ins that the agent does not write into is asked about what it will read: the
// config with those files over it.
func TestTheKubeletJudgesWithItsOwnDropIns(t *testing.T) {
	dir := files(t, map[string]string{
		"kubelet": refusesMany, "conf.d/50-many.conf": kubeletHead + "maxPods: 13\n", "init.yaml": kubeletHead,
	})
	program, drops := filepath.Join(dir, "kubelet"), filepath.Join(dir, "conf.d")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	local := func(name string, flags ...string) *Local {
		l := Defaults()
		l.StateDir, l.InitConfig = filepath.Join(dir, name), filepath.Join(dir, "init.yaml")
		l.ProveKubelet, l.Child = ProveAuto, append([]string{program}, flags...)
		return l
	}
	for name, flags := range map[string][]string{
		"one word": {"--config-dir=" + drops}, "two words": {"-config-dir", drops},
		"an underscore": {"--config_dir=" + drops}, "the last one counts": {"--config-dir=" + dir, "--config-dir=" + drops},
	} {
		l := local(name, flags...)
		err := l.Options().Proofs[0].Inspect(t.Context(), "kubelet", remote(kubeletHead+"podsPerCore: 3\n"))
		if err == nil || errors.Is(err, configsync.ErrUndecided) || !strings.Contains(err.Error(), "too many pods") {
			t.Errorf("%s: %v, want what the kubelet says of its drop-in", name, err)
		}
	}
	l := local("without")
	if err := l.Options().Proofs[0].Inspect(t.Context(), "kubelet", remote(kubeletHead+"podsPerCore: 3\n")); err != nil {
		t.Errorf("without drop-ins: %v, want that it is accepted", err)
	}
}
