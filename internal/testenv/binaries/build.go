// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	lockPoll      = 100 * time.Millisecond
	progressEvery = 20 * time.Second
	outputTail    = 4 << 10 // bytes of compiler output kept in an error
)

// lock takes the exclusive lock on path and returns the function that gives it back. The kernel gives it back
// too when the process dies.
func (b builder) lock(ctx context.Context, path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	for told := false; ; told = true {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %q: %w", path, err)
		}
		if !told {
			b.say("waiting for another process that builds into %s", filepath.Dir(path))
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for the build lock: %w", ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// build compiles r and renames the result to path, so that path is never seen half written. The caller holds the
// lock, so what lies under the temporary name was left by a build that was killed; the compiler refuses to write
// over half a program.
func (b builder) build(ctx context.Context, r recipe, path string) error {
	name := filepath.Base(path)
	if r.note != "" {
		b.say("building %s (%s, in %s)", name, r.note, filepath.Dir(path))
	}
	start := time.Now()
	tmp := filepath.Join(filepath.Dir(path), "."+name+".tmp")
	if err := os.RemoveAll(tmp); err != nil {
		return fmt.Errorf("removing half a program: %w", err)
	}
	if err := b.compile(ctx, r, tmp); err != nil {
		return err
	}
	if name == string(Kwok) {
		if err := copyStages(ctx, r.dir, filepath.Join(filepath.Dir(path), stagesFile)); err != nil {
			return err
		}
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("putting the program in place: %w", err)
	}
	if r.note != "" {
		b.say("built %s in %s", name, time.Since(start).Round(time.Second))
	}
	return nil
}

// compile runs the compiler without cgo: the programs need no C compiler then, and run in any container.
func (b builder) compile(ctx context.Context, r recipe, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", r.ldflags, "-o", out, r.pkg)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	stop := b.tick(ctx, filepath.Base(out))
	err := cmd.Run()
	stop()
	if err != nil {
		tail := output.Bytes()
		tail = tail[max(0, len(tail)-outputTail):]
		return fmt.Errorf("running go build %s in %q: %w\n%s", r.pkg, r.dir, err, tail)
	}
	return nil
}

// tick says every now and then that a build is still running, until the returned function is called.
func (b builder) tick(ctx context.Context, what string) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(done)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				name := strings.TrimSuffix(strings.TrimPrefix(what, "."), ".tmp")
				b.say("still building %s, %s so far", name, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (b builder) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "belay: "+format+"\n", args...)
}

// copyStages joins the stages that make nodes Ready and pods run, as kwok's module ships them, into one file. A
// program started without them touches no object at all.
func copyStages(ctx context.Context, dir, out string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	module, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("finding the module of kwok: %w", err)
	}
	stages := filepath.Join(strings.TrimSpace(string(module)), "kustomize", "stage")
	var joined bytes.Buffer
	for _, file := range []string{
		"node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
		"pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml",
	} {
		data, err := os.ReadFile(filepath.Join(stages, filepath.FromSlash(file)))
		if err != nil {
			return fmt.Errorf("reading a stage of kwok: %w", err)
		}
		joined.WriteString("---\n")
		joined.Write(append(bytes.TrimSpace(data), '\n'))
	}
	if err := os.WriteFile(out, joined.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the stages of kwok: %w", err)
	}
	return nil
}
