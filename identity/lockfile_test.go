// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/identity"
)

// TestLockExcludesASecondProcess at once, and names the first, by what stands in the file.
func TestLockExcludesASecondProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.lock")
	locks := func(s *identity.Spec) { s.LockFile = path }
	inBubble(t, func(b *bed) {
		first := b.process("h", locks).start()
		b.passes(time.Second)
		first.holds(1)
		second := b.process("h", locks, func(s *identity.Spec) { s.Fingerprint.PodUID = "second" }).start()
		var dup *identity.DuplicateError
		if err := second.returns(); !errors.As(err, &dup) {
			b.Fatalf("Run returned %v, want a DuplicateError", err)
		}
		if dup.LockFile != path || dup.Theirs.BootID != "boot-h" || dup.Ours.PodUID != "second" || dup.Holder != fmt.Sprintf("process %d", os.Getpid()) {
			b.Errorf("the error is %+v", dup)
		}
		if !strings.Contains(dup.Error(), path) {
			b.Errorf("the error does not name the file: %v", dup)
		}
		if len(second.asked()) != 0 {
			b.Errorf("the second has made requests: %v", second.asked())
		}
		if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
			b.Fatal(err)
		}
		third := b.process("h", locks).start()
		if err := third.returns(); !errors.As(err, &dup) || dup.Theirs != (identity.Fingerprint{}) {
			b.Errorf("with garbage in the file Run returned %v, want a DuplicateError", err)
		}
	})
}

// TestLockIsWaitedFor is the hand-over on one host: the second takes over within a second after the first has released, or has died.
func TestLockIsWaitedFor(t *testing.T) {
	for what, end := range map[string]func(*process){"released": func(p *process) { _ = p.stop() }, "killed": (*process).kill} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.lock")
			locks := func(s *identity.Spec) { s.LockFile, s.OnDuplicate = path, identity.WaitOnDuplicate }
			inBubble(t, func(b *bed) {
				first := b.process("h", locks).start()
				b.passes(time.Second)
				e := first.holds(1)
				second := b.process("h", locks).start()
				b.passes(time.Hour)
				second.waits(identity.Watching)
				if len(second.asked()) != 0 {
					b.Errorf("requests while the lock is waited for: %v", second.asked())
				}
				var dup *identity.DuplicateError
				if err := second.member.Healthy(); !errors.As(err, &dup) || dup.LockFile != path {
					b.Errorf("Healthy returns %v, want the DuplicateError", err)
				}
				end(first)
				b.passes(time.Second)
				if next := second.holds(1); next.Number <= e.Number {
					b.Errorf("epoch %d after %d", next.Number, e.Number)
				}
				third := b.process("h", locks).start()
				b.passes(time.Second)
				if err := third.stop(); err != nil {
					b.Errorf("R-ID-16: stopped while it waits for the lock: %v", err)
				}
			})
		})
	}
}

// TestLockFileThatWasReplaced: who holds the lock of a file that is no longer there excludes nobody, and a file that is replaced while it is
// locked is locked anew.
func TestLockFileThatWasReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.lock")
	locks := func(s *identity.Spec) { s.LockFile = path }
	inBubble(t, func(b *bed) {
		first := b.process("h", locks).start()
		b.passes(time.Second)
		_ = first.stop()
		if err := os.Remove(path); err != nil {
			b.Fatalf("R-ID-16: the file is kept, since it cannot be removed safely: %v", err)
		}
		b.process("h", locks).start()
		second := b.process("h", locks).start()
		var dup *identity.DuplicateError
		if err := second.returns(); !errors.As(err, &dup) {
			b.Errorf("Run returned %v, want a DuplicateError", err)
		}
	})
}

// TestLockFileThatCannotBe is an error of Run that names it. A link is not followed.
func TestLockFileThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, link)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{filepath.Join(dir, "none", "m.lock"): fs.ErrNotExist, link: nil, dir: nil} {
		inBubble(t, func(b *bed) {
			p := b.process("h", func(s *identity.Spec) { s.LockFile = path })
			err := p.member.Run(context.WithoutCancel(b.Context()), nil)
			if err == nil || !strings.Contains(err.Error(), path) || want != nil && !errors.Is(err, want) {
				b.Errorf("LockFile %q: %v, want an error that names it, %v", path, err, want)
			}
		})
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
		t.Errorf("the file behind the link holds %q, %v", b, err)
	}
}

// TestLockOfAnotherFile: a file that was removed while a process has its lock excludes nobody, and proves nothing: the next one at the path is
// another one. Whoever locks that watches the Lease, and finds the one who lives; once that is killed it may take over.
func TestLockOfAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.lock")
	locks := func(s *identity.Spec) { s.LockFile = path }
	inBubble(t, func(b *bed) {
		first := b.process("h", locks).start()
		b.passes(time.Minute)
		e := first.holds(1)
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
		second := b.process("h", locks).start()
		b.passes(time.Second)
		second.waits(identity.Watching)
		var dup *identity.DuplicateError
		if err := second.returns(); !errors.As(err, &dup) || dup.Holder != e.Holder || dup.LockFile != "" {
			b.Errorf("Run returned %v, want a DuplicateError of the Lease's holder", err)
		}
		if first.holds(1) != e {
			b.Error("the first was disturbed")
		}
		first.kill()
		third := b.process("h", locks).start()
		b.passes(39 * time.Second)
		third.waits(identity.Watching)
		b.passes(2 * time.Second)
		third.holds(1)
	})
}
