// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/machine/provider"
)

// start makes the machine run: phase is Starting, on the disk. A process that was started before the record could say so is found again, so that
// there is never a second one.
func (c *core) start(ctx context.Context, h *held, fresh bool) error {
	alive, err := h.OpenFile(aliveFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = alive.Close() }() // the process has it then
	free, err := c.settle(ctx, alive)
	if err != nil {
		return err
	}
	if !free || !fresh {
		if found, err := c.find(h, free); found || err != nil {
			return err
		}
	}
	if err := h.prepare(); err != nil {
		return err
	}
	c.at("prepared")
	return c.spawn(h, alive)
}

// settle takes the lock of the machine's processes. That it is held for a moment by a process that was forked for another machine is waited for.
func (c *core) settle(ctx context.Context, alive *os.File) (bool, error) {
	end := time.NewTimer(patience)
	defer end.Stop()
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		free, err := flock(alive)
		if free || err != nil {
			return free, err
		}
		select {
		case <-tick.C:
		case <-end.C:
			return false, nil
		case <-ctx.Done():
			return false, nil
		}
	}
}

// find records the process of an earlier start, if there is one.
func (c *core) find(h *held, free bool) (bool, error) {
	members, err := c.members(h.token, process{})
	if err != nil {
		return false, err
	}
	defer closeAll(members)
	if len(members) == 0 {
		if free {
			return false, nil
		}
		return false, provider.Errorf(provider.Unavailable, "machine %q: a process holds %q and can't be found: it is not started beside that",
			h.token, filepath.Join(c.dir(h.token), aliveFile))
	}
	first := members[max(0, slices.IndexFunc(members, func(m member) bool { return m.pid == m.session }))]
	p, err := c.processOf(first.pid)
	if err != nil {
		return false, provider.Errorf(provider.Unavailable, "machine %q: process %d has just ended", h.token, first.pid)
	}
	return true, h.runs(p)
}

// runs records that it runs.
func (h *held) runs(p process) error {
	h.Phase, h.Process, h.Message = running, p, ""
	return h.write()
}

// prepare writes what the process finds when it starts.
func (h *held) prepare() error {
	for _, d := range h.Disks {
		if err := h.MkdirAll(filepath.Join(dataDir, d.Name), 0o755); err != nil {
			return err
		}
	}
	return h.writeFiles(nil)
}

// writeFiles writes the files of the config and the settings. Files of the config before that are not in this one are removed.
func (h *held) writeFiles(before []File) error {
	if err := h.MkdirAll(filesDir, 0o755); err != nil {
		return err
	}
	for _, f := range before {
		if !slices.ContainsFunc(h.Config.Files, func(g File) bool { return g.Path == f.Path }) {
			if err := h.Remove(filepath.Join(filesDir, f.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, f := range h.Config.Files {
		mode, err := f.mode()
		if err != nil {
			return err
		}
		if err := put(h.Root, filepath.Join(filesDir, f.Path), []byte(f.Content), fs.FileMode(mode)); err != nil {
			return err
		}
	}
	settings, err := h.settings()
	if err != nil {
		return err
	}
	return put(h.Root, settingsFile, settings, 0o644)
}

// writeBootstrap replaces the secrets of the machine, where there are new ones. The directory stays: a program that has just been started may be writing
// into it.
func (h *held) writeBootstrap(secrets map[string][]byte) error {
	if len(secrets) == 0 {
		return nil
	}
	if err := h.clearBootstrap(secrets); err != nil {
		return err
	}
	for name, data := range secrets {
		if err := put(h.Root, filepath.Join(bootstrapDir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// clearBootstrap removes what is in the directory and none of the secrets, or what is there in its place.
func (h *held) clearBootstrap(secrets map[string][]byte) error {
	info, err := h.Lstat(bootstrapDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return h.RemoveAll(bootstrapDir)
	}
	all, err := fs.ReadDir(h.FS(), bootstrapDir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if _, wanted := secrets[e.Name()]; wanted {
			continue
		}
		if err := h.RemoveAll(filepath.Join(bootstrapDir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// spawn starts the process. It inherits the lock of the machine's processes, which is free again when the last of them has ended. The kernel gives
// it no other way out: the lock is also held between fork and exec, when the process has no mark yet.
func (c *core) spawn(h *held, alive *os.File) error {
	if err := h.trim(0); err != nil {
		return err
	}
	console, err := h.OpenFile(consoleFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = console.Close() }() // the process has it then
	pidfd := -1
	cmd := c.command(h, &pidfd)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = console, console, []*os.File{alive}
	if err := cmd.Start(); err != nil {
		return c.failed(h, err)
	}
	c.at("forked")
	p, err := c.processOf(cmd.Process.Pid) // nobody has waited for it, so it is there
	if err == nil && pidfd < 0 {
		err = errors.New("the kernel gives no pidfd")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("machine %q: process %d: %w", h.token, cmd.Process.Pid, err), cmd.Process.Release())
	}
	c.reaper.add(pidfd, child{token: h.token, cmd: cmd, own: p})
	return h.runs(p)
}

// failed records that the program could not be started, or returns the error when it is for want of room.
func (c *core) failed(h *held, err error) error {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return provider.Errorf(provider.Stockout, "machine %q: %w", h.token, err)
	}
	h.Phase, h.Message = broken, fmt.Sprintf("could not be started: %v", err)
	return h.write()
}

// inside is what a machine with namespaces does first: it is the first process there, and /proc and the host name are still those of the host.
const inside = `mount -t proc proc /proc && echo "$BELAY_MACHINE" >/proc/sys/kernel/hostname && exec "$@"`

func (c *core) command(h *held, pidfd *int) *exec.Cmd {
	argv := slices.Clone(h.Config.Command)
	if strings.HasPrefix(argv[0], filesDir+"/") {
		argv[0] = filepath.Join(c.dir(h.token), argv[0])
	}
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: pidfd}
	if c.confined(h.Config) {
		argv = append([]string{"/bin/sh", "-c", inside, "sh"}, argv...)
		attr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWUTS
		attr.Unshareflags = unix.CLONE_NEWNS // with its mounts private
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = c.dir(h.token), c.environ(h), attr
	return cmd
}

// environ is the whole environment of a machine. Nothing of this process's own gets there but PATH.
func (c *core) environ(h *held) []string {
	dir := c.dir(h.token)
	env := []string{
		markToken + h.token, markDir + dir,
		"BELAY_PROVIDER_ID=" + c.id(h.token),
		"BELAY_ENDPOINT=" + h.Endpoint,
		"BELAY_BOOTSTRAP_DIR=" + filepath.Join(dir, bootstrapDir),
		"BELAY_DATA_DIR=" + filepath.Join(dir, dataDir),
		"BELAY_SETTINGS=" + filepath.Join(dir, settingsFile),
	}
	for _, name := range []string{"PATH", "HOME"} {
		if _, set := h.Config.Env[name]; !set {
			env = append(env, name+"="+map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}[name])
		}
	}
	for name, value := range h.Config.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// probe tries whether this process may make namespaces.
func probe(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", inside, "sh", "true")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), markToken + "probe"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWUTS, Unshareflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) > 0 {
		err = fmt.Errorf("%w: %.200s", err, strings.TrimSpace(string(out)))
	}
	return err
}
