// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/belayproject/belay/internal/testenv"
)

// A process is a child that runs.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	events chan childEvent // closed when the child has ended
	output *bytes.Buffer
	ended  bool
}

// spawn starts a child with a task. It ends with the test, or with the control plane.
func spawn(t *testing.T, env *testenv.Env, task childTask) *process {
	t.Helper()
	task.Kubeconfig = env.Kubeconfig()
	text, err := json.Marshal(task)
	must(t, err)
	file := filepath.Join(t.TempDir(), "task")
	must(t, os.WriteFile(file, text, 0o600))
	read, write, err := os.Pipe()
	must(t, err)
	p := &process{t: t, cmd: exec.Command(os.Args[0]), events: make(chan childEvent, 100), output: &bytes.Buffer{}}
	p.cmd.ExtraFiles, p.cmd.Stdout, p.cmd.Stderr = []*os.File{write}, p.output, p.output
	p.cmd.Env = append(os.Environ(), childEnv+"="+file)
	env.Mark(p.cmd)
	err = p.cmd.Start()
	_ = write.Close()
	must(t, err)
	go func() {
		defer close(p.events)
		defer read.Close()
		for lines := json.NewDecoder(read); ; {
			var e childEvent
			if lines.Decode(&e) != nil { // the end, or half a line of one that was killed
				return
			}
			p.events <- e
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the child as a crash does.
func (p *process) kill() {
	if p.ended {
		return
	}
	p.ended = true
	_ = p.cmd.Process.Kill()
	for range p.events { // until the pipe is closed
	}
	_ = p.cmd.Wait()
}

// thaw lets a frozen child go on.
func (p *process) thaw() {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(syscall.SIGCONT))
}

// next returns an event, if there is one, and fails the test for a child that has.
func (p *process) next() (childEvent, bool) {
	p.t.Helper()
	select {
	case e, ok := <-p.events:
		if !ok {
			p.t.Fatalf("the controller has ended by itself; it printed %s", p.output)
		}
		if e.Kind == childFailed {
			p.t.Fatalf("the controller failed: %s", e.What)
		}
		return e, true
	default:
		return childEvent{}, false
	}
}
