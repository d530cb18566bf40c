// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/belayproject/belay/internal/process"
)

const (
	// searched are the directories of programs that the program starts.
	searched = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// drained is how long pipes are waited for that somebody outside the process group holds open.
	drained = time.Second
	// payloadName is the file of PayloadFile in Options.FileDir. One name, so that what a killed agent leaves is found.
	payloadName = "payload"
)

// run has the program judge a payload. The error is an *Error that wraps configsync.ErrUndecided.
func (p *Program) run(ctx context.Context, s subject, payload []byte) (result, error) {
	if err := trusted(p.o.Path); err != nil {
		return result{}, s.undecided(err)
	}
	out := &tail{}
	cmd := exec.Command(p.o.Path, p.o.Args...)
	cmd.Env = append([]string{searched, "LC_ALL=C", "BELAY_CONFIG_DIGEST=" + s.Digest}, p.o.Env...)
	cmd.Dir, cmd.WaitDelay = p.o.Dir, drained
	if p.o.ShowOutput {
		cmd.Stdout, cmd.Stderr = out, out
	}
	began := time.Now()
	err := p.hand(ctx, cmd, payload)
	e := &Error{Digest: s.Digest, Version: s.Version, Status: -1, Took: time.Since(began), Output: out.line(), Err: err}
	if err != nil {
		return result{}, e
	}
	e.Status = cmd.ProcessState.ExitCode()
	r := result{subject: s, Took: e.Took, Output: e.Output}
	switch e.Status {
	case 0:
		r.Verdict = accepted
	case Refusal:
		r.Verdict = refused
	case -1:
		e.Err = errKilled
		return result{}, e
	default:
		return result{}, e
	}
	r.Sum = r.sum(p.o.Secret)
	return r, nil
}

// hand runs a command with the payload, to its end or that of its time. The error is nil if it has exited or died by itself.
func (p *Program) hand(ctx context.Context, cmd *exec.Cmd, payload []byte) error {
	if !p.o.byFile() {
		cmd.Stdin = bytes.NewReader(payload)
		return p.watch(ctx, cmd)
	}
	file := filepath.Join(p.o.FileDir, payloadName)
	for i, arg := range cmd.Args[1:] {
		cmd.Args[1+i] = strings.ReplaceAll(arg, PayloadFile, file)
	}
	if err := ownDir(p.o.FileDir); err != nil {
		return err
	}
	err := writePrivate(file, payload)
	if err == nil {
		err = p.watch(ctx, cmd)
	}
	return errors.Join(err, removed(file))
}

// watch runs a command until it ends, or its time has.
func (p *Program) watch(ctx context.Context, cmd *exec.Cmd) error {
	limited, cancel := context.WithTimeoutCause(ctx, p.o.Timeout, errSlow)
	defer cancel()
	process.DieWithParent(cmd)
	err := process.Run(limited, cmd)
	switch {
	case cmd.ProcessState == nil:
		return err // it has not begun
	case cmd.ProcessState.ExitCode() >= 0:
		return nil
	case errors.Is(context.Cause(limited), errSlow):
		return fmt.Errorf("%w, which is %s", errSlow, p.o.Timeout)
	case ctx.Err() != nil:
		return fmt.Errorf("the program was killed: %w", ctx.Err())
	}
	return nil
}

// trusted says why a program must not be run: others could have changed it.
func trusted(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("finding the program: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("program %q must be a file", path)
	case info.Mode().Perm()&0o022 != 0 || !isOurs(info):
		return fmt.Errorf("program %q must belong to root or the agent's user, and nobody else may write to it", path)
	}
	return nil
}

// ownDir makes the directory of the payload, or says why it is not one.
func ownDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the directory of the payload: %w", err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("looking at the directory of the payload: %w", err)
	case !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !isOurs(info):
		return fmt.Errorf("%q must be a directory of the agent's user, for that user alone", dir)
	}
	return nil
}

// isOurs reports whether a file belongs to root or to this process's user.
func isOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int64(st.Uid) == int64(os.Geteuid()))
}

// writePrivate makes a file anew, for this user alone.
func writePrivate(file string, payload []byte) error {
	if err := removed(file); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("making the file of the payload: %w", err)
	}
	_, err = f.Write(payload)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing the file of the payload: %w", err)
	}
	return nil
}

// removed removes a file, if there is one.
func removed(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the file of the payload: %w", err)
	}
	return nil
}
