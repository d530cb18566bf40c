// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/prove"
)

// shell has a script of the shell judge configs.
func shell(l *Local, script string) {
	l.Prove.Command, l.Prove.Args = "/bin/sh", []string{"-c", script}
}

// C-21: the program of --prove-command judges what the kubelet would use on this node, and its answer is kept for one version.
func TestTheProgramJudgesWhatIsUsed(t *testing.T) {
	dir := files(t, map[string]string{"node.yaml": "podsPerCore: 3\n"})
	l := Defaults()
	l.NodeConfig, l.StateDir = filepath.Join(dir, "node.yaml"), dir
	ran := filepath.Join(dir, "ran")
	shell(l, "echo >> "+ran+"; grep -q 'podsPerCore[\": ]*3' $0 || exit 1; ! grep -q 'maxPods[\": ]*13' $0 || exit 65")
	l.Prove.Args = append(l.Prove.Args, prove.PayloadFile)
	if err := errors.Join(l.Validate(), l.ProveProblem()); err != nil {
		t.Fatal(err)
	}
	disk := &configsynctest.Disk{}
	for range 2 { // the second time as after a restart
		o := l.On(disk)
		if err := o.Proofs[0].Inspect(t.Context(), "kubelet", remote(kubeletHead+"maxPods: 12\n")); err != nil {
			t.Errorf("Inspect = %v, want nil: what is judged has the overlay", err)
		}
		var refused *prove.Error
		if err := o.Proofs[0].Inspect(t.Context(), "kubelet", remote(kubeletHead+"maxPods: 13\n")); !errors.As(err, &refused) || !refused.Refused {
			t.Errorf("Inspect of what the program refuses = %v, want a refusal", err)
		}
	}
	runs := func() int {
		text, err := os.ReadFile(ran)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	if n := runs(); n != 2 {
		t.Errorf("the program ran %d times, want once for each config", n)
	}
	l.Prove.Version = "v1.36.4"
	if err := l.On(disk).Proofs[0].Inspect(t.Context(), "kubelet", remote(kubeletHead+"maxPods: 12\n")); err != nil || runs() != 3 {
		t.Errorf("for another version: %v after %d runs, want it asked anew", err, runs())
	}
	if err := os.Remove(l.NodeConfig); err != nil {
		t.Fatal(err)
	}
	if err := l.On(disk).Proofs[0].Inspect(t.Context(), "kubelet", remote(kubeletHead)); !errors.Is(err, configsync.ErrUndecided) {
		t.Errorf("without the overlay that is to be there: %v, want ErrUndecided", err)
	}
}

// A program that can't be run is no wrong flag, and is held against no config; what it is missing is told.
func TestAProgramThatCantBeRun(t *testing.T) {
	l := Defaults()
	if err := l.ProveProblem(); err != nil || len(l.Options().Proofs) != 0 {
		t.Errorf("without a program: %v, proofs %v", err, l.Options().Proofs)
	}
	l.Prove.Command = filepath.Join(t.TempDir(), "absent")
	if err := l.Validate(); err != nil {
		t.Errorf("Validate = %v, want nil: the node runs without its program", err)
	}
	if err := l.ProveProblem(); err == nil || !strings.Contains(err.Error(), `--prove-command="`+l.Prove.Command) {
		t.Errorf("ProveProblem = %v, want the flag", err)
	}
	if err := l.Options().Proofs[0].Inspect(t.Context(), "kubelet", remote(kubeletHead)); !errors.Is(err, configsync.ErrUndecided) {
		t.Errorf("Inspect = %v, want ErrUndecided", err)
	}
	shell(l, "exit 65 # "+prove.PayloadFile) // it needs a directory, and there is none
	if err := l.Options().Proofs[0].Inspect(t.Context(), "kubelet", remote(kubeletHead)); !errors.Is(err, configsync.ErrUndecided) {
		t.Errorf("Inspect without a state directory = %v, want ErrUndecided", err)
	}
}

// A wrong flag about the program is named; a guard leaves itself time.
func TestFlagsOfTheProgram(t *testing.T) {
	for args, flag := range map[string]string{
		"--prove-command=check": "prove-command", "--prove-arg=-c": "prove-arg", "--prove-version=v1": "prove-version",
		"--prove-show-output": "prove-show-output", "--prove-timeout=0": "prove-timeout",
	} {
		if err := parse(t, line(t, args)...).Validate(); !slices.Equal(flags(err), []string{flag}) {
			t.Errorf("%s: %v, want an error about --%s alone", args, err, flag)
		}
	}
	g := Guard{Local: *Defaults(), Render: "/run/k", Timeout: defaultProveTimeout}
	g.StateDir, g.InitConfig = "/s", filepath.Join(files(t, map[string]string{"k": kubeletHead}), "k")
	if err := g.Validate(); err != nil {
		t.Errorf("without a program: %v", err)
	}
	if g.Prove.Command = "/bin/sh"; !slices.Equal(flags(g.Validate()), []string{"prove-timeout"}) {
		t.Errorf("a program that may take all of the guard's time: %v, want an error about it", g.Validate())
	}
}
