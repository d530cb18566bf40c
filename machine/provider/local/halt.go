// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/machine/provider"
)

// patience is how long a call waits for processes. What takes longer is asked for again.
const patience = 500 * time.Millisecond

// halt goes on stopping a machine whose order to stop is on the disk. It reports proof: no process of it is found, twice, and none holds their lock.
// Without proof, the message says what is waited for.
func (c *core) halt(ctx context.Context, h *held) (proof bool, message string, err error) {
	pressed, refused, err := c.pressAll(h)
	defer closeAll(pressed)
	if err != nil {
		return false, "", err
	}
	if len(pressed) > 0 {
		if !h.Asked {
			h.Asked = true
			if err := h.write(); err != nil {
				return false, "", err
			}
		}
		if left := await(ctx, pressed); len(left) > 0 {
			return false, c.waiting(h, left, refused), nil
		}
	}
	return c.prove(ctx, h)
}

// prove looks once more, while nobody can hold the lock that every process of the machine has from its parent: one that is forked while the
// processes are listed is found one or the other way.
func (c *core) prove(ctx context.Context, h *held) (bool, string, error) {
	alive, err := h.OpenFile(aliveFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = alive.Close() }() // frees the lock
	free, err := c.settle(ctx, alive)
	if err != nil {
		return false, "", err
	}
	if !free {
		return false, "a process that can't be seen holds the lock of the machine: it may run with other rights, or without its mark", nil
	}
	members, err := c.members(h.token, h.Process)
	closeAll(members)
	if err != nil || len(members) > 0 {
		return false, c.waiting(h, members, nil), err
	}
	return true, "", nil
}

// pressAll asks or kills all processes, and those that they start meanwhile.
func (c *core) pressAll(h *held) (all []member, refused, err error) {
	seen := map[int]bool{}
	for range 3 {
		members, err := c.members(h.token, h.Process)
		if err != nil {
			return all, refused, err
		}
		var fresh []member
		for _, m := range members {
			if seen[m.pid] {
				closeAll([]member{m})
				continue
			}
			seen[m.pid] = true
			fresh = append(fresh, m)
		}
		if len(fresh) == 0 {
			break
		}
		all = append(all, fresh...)
		refused = errors.Join(refused, c.press(h, fresh))
	}
	return all, refused, nil
}

// press asks processes to end, once, or kills them when the grace is over.
func (c *core) press(h *held, members []member) error {
	var refused []error
	switch {
	case c.graceLeft(h) <= 0:
		for _, m := range members {
			refused = append(refused, c.signal(m, unix.SIGKILL))
		}
	case !h.Asked:
		for _, m := range members {
			refused = append(refused, c.signal(m, unix.SignalNum(h.Config.StopSignal)))
		}
	}
	return errors.Join(refused...)
}

// graceLeft is how long the processes may still take. A clock that was set back does not make it longer.
func (c *core) graceLeft(h *held) time.Duration {
	grace := time.Duration(h.Config.GraceSeconds) * time.Second
	return min(grace, h.Since.Add(grace).Sub(c.now()))
}

// await waits for the end of processes, for a while, and returns those that have not ended.
func await(ctx context.Context, members []member) (left []member) {
	end := time.Now().Add(patience)
	for _, m := range members {
		if !ended(ctx, m, end) {
			left = append(left, m)
		}
	}
	return left
}

func ended(ctx context.Context, m member, end time.Time) bool {
	for {
		wait := min(time.Until(end), 50*time.Millisecond)
		if ctx.Err() != nil {
			wait = 0
		}
		fds := []unix.PollFd{{Fd: int32(m.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(wait, 0).Milliseconds()))
		if n > 0 || wait <= 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// waiting says what is in the way.
func (c *core) waiting(h *held, members []member, refused error) string {
	var pids []string
	for _, m := range members {
		if len(pids) == 8 {
			pids = append(pids, "…")
			break
		}
		pids = append(pids, fmt.Sprint(m.pid))
	}
	message := fmt.Sprintf("%d processes have not ended: %s", len(members), strings.Join(pids, ", "))
	if left := c.graceLeft(h); left > 0 {
		message += fmt.Sprintf("; they are killed in %s", left.Round(time.Second))
	} else {
		message += "; they were killed"
	}
	if refused != nil {
		message += ": " + strings.ReplaceAll(refused.Error(), "\n", "; ")
	}
	return message
}

// halted takes a machine that is proven to be stopped to its next phase, on the disk.
func (c *core) halted(h *held) error {
	h.Phase, h.Then, h.Process, h.Message = h.Then, "", process{}, ""
	h.Since, h.Asked = time.Time{}, false
	if h.Phase == starting {
		h.takeNext()
		if h.Reboot != "" {
			h.Reboots = append(h.Reboots, h.Reboot)
			h.Reboots = h.Reboots[max(0, len(h.Reboots)-maxReboots):]
			h.Reboot = ""
		}
	}
	if h.Phase != starting {
		if err := h.RemoveAll(bootstrapDir); err != nil {
			return err
		}
	}
	return h.write()
}

// maxReboots is how many IDs of reboots are remembered.
const maxReboots = 64

// advance goes on with what was ordered, as far as it goes without waiting for long.
func (c *core) advance(ctx context.Context, h *held) (provider.Progress, error) {
	if h.Phase == halting {
		proof, message, err := c.halt(ctx, h)
		if err != nil {
			return provider.Progress{}, err
		}
		if !proof {
			return provider.Progress{Message: message, AfterSeconds: 1}, nil
		}
		c.at("proven")
		if err := c.halted(h); err != nil {
			return provider.Progress{}, err
		}
	}
	switch h.Phase {
	case starting:
		err := c.start(ctx, h, false)
		if err == nil && h.Phase == broken {
			err = provider.Errorf(provider.Internal, "machine %q: %s", h.token, h.Message)
		}
		return provider.Progress{Done: true}, err
	case destroying:
		return c.destroy(h)
	case retained:
		return provider.Progress{Done: true, Stopped: true, Retained: h.kept()}, nil
	case stopped:
		return provider.Progress{Done: true, Stopped: true}, nil
	}
	return provider.Progress{Done: true}, nil
}
