// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/machine/provider"
)

// A tombstone keeps a token from being used again.
type tombstone struct {
	Token string         `json:"token"`
	Owner provider.Owner `json:"owner,omitzero"`
	// To is the token that its disks were given to.
	To string `json:"to,omitempty"`
}

// bury uses up a token. Several may do so at a time, as nobody can hold a machine that is not there: one writes after
// the other, and the last one stands.
func (s *store) bury(t tombstone) error {
	if gone, err := s.buried(t.Token); err != nil {
		return err
	} else if gone {
		return syncDir(s.used, ".") // who wrote it may not have come so far
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return put(s.used, t.Token, append(data, '\n'), 0o600)
}

// buried reports whether a token is used up.
func (s *store) buried(token string) (bool, error) {
	_, err := s.used.Lstat(token)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// destroy removes the directory of a machine that is proven to be stopped. The token is used up before.
func (c *core) destroy(h *held) (provider.Progress, error) {
	progress := provider.Progress{Stopped: true, AfterSeconds: 1}
	mounts, err := mountsBelow(c.dir(h.token))
	if err != nil {
		return provider.Progress{}, err
	}
	if len(mounts) > 0 {
		progress.Message = fmt.Sprintf("%d file systems are mounted in its directory, as %q: they must be unmounted, as what is in them may be "+
			"somebody else's", len(mounts), mounts[0])
		return progress, nil
	}
	if info, err := h.Lstat(dataDir); err == nil && !info.IsDir() {
		progress.Message = fmt.Sprintf("%q is no directory: what it leads to is not removed, and must be taken care of by hand",
			filepath.Join(c.dir(h.token), dataDir))
		return progress, nil
	}
	if err := c.bury(tombstone{Token: h.token, Owner: h.Owner, To: h.To}); err != nil {
		return provider.Progress{}, err
	}
	c.at("buried")
	if err := c.remove(h); err != nil {
		return provider.Progress{}, err
	}
	return provider.Progress{Done: true, Stopped: true}, nil
}

// remove empties the directory, the record and the lock last: after a crash it is gone on with.
func (c *core) remove(h *held) error {
	names, err := readNames(h.Root)
	if err != nil {
		return err
	}
	last := []string{recordFile, lockFile}
	for _, name := range names {
		if !slices.Contains(last, name) {
			if err := h.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	c.at("emptied")
	for _, name := range last {
		if err := h.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	c.at("unlocked")
	c.reaper.forget(h.token)
	if err := c.machines.Remove(h.token); err != nil && !errors.Is(err, fs.ErrNotExist) && !occupied(err) {
		return err
	}
	return syncDir(c.machines, ".")
}

func readNames(root *os.Root) ([]string, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}

// mountsBelow lists the mount points in a directory.
func mountsBelow(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(data, dir), nil
}

// parseMounts reads the fifth field of each line, in which blanks and the like are written in octal.
func parseMounts(mountinfo []byte, dir string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var found []string
	for line := range bytes.Lines(mountinfo) {
		fields := bytes.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if at := unescape.Replace(string(fields[4])); strings.HasPrefix(at, dir+"/") {
			found = append(found, at)
		}
	}
	return found
}

// occupied reports whether a directory could not be removed as something is in it again: a lock of somebody who looks
// for it.
func occupied(err error) bool { return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) }
