// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// minFree is how much space a directory that a kubelet writes to must have left, in bytes.
const minFree = 1 << 20

// A Witness asks what lies below every config of a kubelet: whether the container runtime answers, whether the disks
// can be written, and whether the program can be executed. So an end of the kubelet for a reason that no config can
// mend is not blamed on one. Make it with [NewWitness]. It keeps nothing on disk.
type Witness struct {
	subject Subject

	mu       sync.Mutex
	answered map[string]bool // the endpoints at which a runtime has answered
	failed   bool            // something below has failed since the last end of the kubelet
}

// NewWitness returns a Witness. The error is a *belay.OptionError.
func NewWitness(s Subject) (*Witness, error) {
	check := option.For("configsync/kubelet.NewWitness", nil)
	if len(s.Command) == 0 || s.Command[0] == "" {
		check.Require("Subject.Command", nil, "the command line of the kubelet")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	return &Witness{subject: s, answered: map[string]bool{}}, nil
}

// AttributeExit completes what is known about an end of the kubelet that was not asked for, and that nothing else
// explains. If something below fails now, that is a [lkg.FaultEnvironment], and the signature names it. If all of it
// answers, and has answered at each look since the end before, the end is Witnessed. It returns within the deadline
// of ctx. It is made for Options.Attribute of package restart.
func (w *Witness) AttributeExit(ctx context.Context, e lkg.Exit) lkg.Exit {
	if w == nil || len(w.subject.Command) == 0 || e.Kind == lkg.ExitPlanned || e.Kind == lkg.ExitCounted || e.Fault != "" {
		return e
	}
	err := errors.Join(w.checkHost(), w.checkRuntime(ctx))
	w.mu.Lock()
	failed := w.failed
	w.failed = false
	w.mu.Unlock()
	var below *finding
	switch {
	case errors.Is(err, configsync.ErrBelow) && errors.As(err, &below):
		e.Fault, e.Signature = lkg.FaultEnvironment, below.signature
		e.Detail += "; not the config: " + below.Error()
	case err == nil && !failed:
		e.Witnessed = true
	}
	return e
}

// checkRuntime returns nil if the container runtime answers. At an endpoint that only the config in use names, no
// answer is that config's own fault, unless one has answered there before.
func (w *Witness) checkRuntime(ctx context.Context) error {
	endpoint, shared := w.subject.runtimeEndpoint()
	_, err := askRuntime(ctx, endpoint)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.answered[endpoint] = true
		return nil
	}
	text := fmt.Sprintf("the container runtime does not answer at %v", err)
	if !shared && !w.answered[endpoint] {
		return &finding{text: text + "; nothing but the config in use names this endpoint, and no runtime has answered there"}
	}
	w.failed = true
	return &finding{text: text, is: configsync.ErrBelow, signature: "container runtime away: " + endpoint}
}

// checkHost returns nil if the kubelet's program can be executed and what it writes to is not full.
func (w *Witness) checkHost() error {
	err := checkProgram(w.subject.Command[0])
	for _, dir := range w.subject.writtenDirectories() {
		if err != nil {
			break
		}
		err = checkDirectory(dir)
	}
	if err != nil {
		w.mu.Lock()
		w.failed = true
		w.mu.Unlock()
	}
	return err
}

// checkProgram looks at the program: what it begins with, and whether it may be executed.
func checkProgram(path string) error {
	broken := func(format string, args ...any) error {
		return &finding{
			text: fmt.Sprintf("the program %s ", path) + fmt.Sprintf(format,
				args...), is: configsync.ErrBelow, signature: "program can't be executed: " + path,
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return broken("can't be looked at: %v", errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return broken("has mode %s, want a file that may be executed", info.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return broken("can't be read: %v", errors.Unwrap(err))
	}
	defer func() { _ = f.Close() }() // opened for reading only
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	switch text := string(head[:n]); {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return broken("can't be read: %v", err)
	case strings.HasPrefix(text, "#!"):
		return nil
	case text != "\x7fELF":
		return broken("has %d bytes and begins with %q, want an ELF file or a script", info.Size(), text)
	}
	want, err := elfSize(f)
	switch {
	case err != nil:
		return broken("has %d bytes and is no whole ELF file: %v", info.Size(), err)
	case uint64(info.Size()) < want: //nolint:gosec // a file has no negative size
		return broken("has %d bytes, want %d: it is cut off", info.Size(), want)
	}
	return nil
}

// elfSize returns how many bytes a program has at least, by what its headers say about its parts.
func elfSize(r io.ReaderAt) (size uint64, err error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return 0, err
	}
	for _, p := range f.Progs {
		size = max(size, p.Off+p.Filesz)
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS {
			size = max(size, s.Offset+s.FileSize)
		}
	}
	return size, nil
}

// checkDirectory looks at the file system of a directory, or of the nearest one above it that is there.
func checkDirectory(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		why, err := fullDisk(dir)
		switch {
		case errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir):
			continue
		case err != nil:
			why = fmt.Sprintf("can't be looked at: %v", err)
		case why == "":
			return nil
		}
		return &finding{text: fmt.Sprintf("the disk of %s %s", dir, why), is: configsync.ErrBelow,
			signature: "disk full or broken: " + dir}
	}
}
