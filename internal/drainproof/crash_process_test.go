// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/belayproject/belay/internal/testenv"
)

// A process is a child that runs.
type process struct {
	cmd    *exec.Cmd
	events chan childEvent // closed when the child has ended
	output *bytes.Buffer
}

// spawn starts a child with a task, which goes into a file of the directory.
func spawn(env *testenv.Env, dir string, task childTask) (*process, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "task")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(os.Args[0]), events: make(chan childEvent, 1000), output: &bytes.Buffer{}}
	p.cmd.ExtraFiles, p.cmd.Stdout, p.cmd.Stderr = []*os.File{write}, p.output, p.output
	p.cmd.Env = append(os.Environ(), childEnv+"="+file)
	env.Mark(p.cmd)
	err = p.cmd.Start()
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return nil, err
	}
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
	return p, nil
}

// kill ends the child as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	for range p.events { // until the pipe is closed
	}
	_ = p.cmd.Wait()
}

// A verdict is how the run of a child has ended.
type verdict struct {
	killed   bool
	finished bool // the nodes are released
	writes   int
}

// follow takes in what a child tells until it has finished, or is killed: when it has stopped by itself, or at the time. See is called
// for each event.
func (p *process) follow(ctx context.Context, killAfter time.Duration, see func(childEvent) error) (verdict, error) {
	defer p.kill()
	ctx, cancel := context.WithTimeout(ctx, patience())
	defer cancel()
	var timer <-chan time.Time
	if killAfter > 0 {
		t := time.NewTimer(killAfter)
		defer t.Stop()
		timer = t.C
	}
	var v verdict
	var last childEvent
	for {
		select {
		case <-timer:
			v.killed = true
			return v, nil
		case <-ctx.Done():
			return v, fmt.Errorf("the child has not finished after %s; its last event: %s", patience(), inJSON(last))
		case e, ok := <-p.events:
			if !ok {
				return v, fmt.Errorf("the child has ended by itself; its last event: %s; it printed %s", inJSON(last), p.output)
			}
			last, v.writes = e, e.Writes
			switch e.Kind {
			case childFailed:
				return v, fmt.Errorf("the child failed: %s", e.Error)
			case childStopped:
				v.killed = true
				return v, nil
			case childReleased:
				v.finished = true
				return v, nil
			}
			if err := see(e); err != nil {
				return v, err
			}
		}
	}
}
