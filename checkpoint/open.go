// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/belayproject/belay/internal/option"
)

// Open opens the store in a directory, which it makes, durably, where it is not there (0700, as are its parents). It
// takes the lock, removes what a crash left half done, reads and verifies every record, and sets aside what is
// damaged.
//
// Damage is no error: [Options.OnDamage] hears of it, and the streams that have it say so. Nor is a disk that can not
// be written: Open returns a Store that reads. One whose own entry in its parent could not be synced stays one that
// reads, with [ErrNotWritten] from Put and Delete, until it is opened again. Errors match [ErrLocked] (the text names
// the process), [ErrUntrusted] (a parent that everyone may write without the sticky bit, a directory of someone else,
// or one that is open to others and holds other things), or [errors.ErrUnsupported] (a network file system, or not
// Linux).
func Open(dir string, o Options) (*Store, error) {
	return openOn(hostFS(), dir, o)
}

// absolutePath returns the path of a store's directory, which must be named.
func absolutePath(call, dir string) (string, error) {
	check := option.For(call, nil)
	check.Require("dir", dir, "the directory of the store")
	if err := check.Err(); err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

func openOn(sys fsys, dir string, o Options) (*Store, error) {
	s, err := newStore(sys, dir, o)
	if err == nil {
		err = s.start()
	}
	if err != nil {
		if s != nil {
			err = errors.Join(err, s.closeFiles())
		}
		return nil, fmt.Errorf("opening the store in %q: %w", dir, err)
	}
	return s, nil
}

func newStore(sys fsys, dir string, o Options) (*Store, error) {
	o, err := o.complete()
	if sys == nil {
		err = errNoHost()
	}
	if err != nil {
		return nil, err
	}
	path, err := absolutePath("checkpoint.Open", dir)
	if err != nil {
		return nil, err
	}
	load := newLoader(sys, o)
	d := &directory{sys: sys, path: path, uid: load.uid, root: newFolder("", -1, fileID{}, sys)}
	b := &books{bytes: account{limit: o.MaxStore}, root: d.root, folders: map[string]*folder{}}
	room := &space{dir: d, books: b, ballast: ballast{dir: d, bytes: &b.bytes, size: o.Ballast}}
	kept := &evidence{dir: d, books: b, report: o.OnDamage}
	reader := &recordReader{load: load, books: b, evidence: kept}
	writer := &recordWriter{
		dir: d, books: b, space: room, author: o.Writer, machine: load.machine, keep: o.Generations, pause: pauseFor,
	}
	all := &recovery{dir: d, books: b, evidence: kept, space: room, reader: reader, writer: writer}
	return &Store{
		maxPayload: o.MaxPayload,
		dir:        d,
		lock:       storeLock{dir: d, fd: -1},
		books:      b,
		tree:       &tree{dir: d, books: b, space: room, recovery: all, turn: make(chan struct{}, 1)},
		reader:     reader,
		writer:     writer,
		remover:    &remover{dir: d, books: b},
	}, nil
}

// errNoHost refuses: the promises were tested on Linux only, and a rename and an fsync do not mean the same
// everywhere.
func errNoHost() error {
	return fmt.Errorf("a store on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func newLoader(sys fsys, o Options) loader {
	return loader{sys: sys, uid: uint32(os.Geteuid()), machine: o.machine(), limit: o.MaxStore}
}

func (s *Store) start() error {
	if err := s.dir.openRoot(); err != nil {
		return err
	}
	if err := s.lock.takeLock(); err != nil {
		return err
	}
	return s.tree.recovery.recoverStore()
}

// Defaults of [Options], in bytes where not said otherwise.
const (
	defaultGenerations = 3        // kept of each stream
	defaultMaxPayload  = 4 << 20  // of one record
	defaultMaxStore    = 64 << 20 // of all files together
	defaultBallast     = 1 << 20  // given back when the disk is full
)

const (
	// maxRecord bounds a payload whatever the options say.
	maxRecord = 1 << 30
	// asideStream and asideBytes bound what is kept as evidence: files a stream, and bytes in all.
	asideStream = 3
	asideBytes  = 16 << 20

	machineDigits  = 32
	machineFile    = "/etc/machine-id"
	writerMax      = 64
	minGenerations = 2
)

// Options are what a Store may be told. The zero value is the safe and usual choice.
type Options struct {
	// MachineID is any text that tells this machine from its clones. A digest of it is in each record, and a record with
	// another one is foreign. Empty = the content of /etc/machine-id. Where that is not there either, records carry no
	// machine, and none is foreign for it; nor is a record that carries none.
	MachineID string
	// Writer names the version of the program in each record, for people: up to 64 letters, digits and any of ".+_-".
	Writer string
	// Generations is how many records of a stream are kept, at least 2; 0 = 3.
	Generations int
	// MaxPayload is the largest payload that Put takes, in bytes; 0 = 4 MiB. It does not bound reading.
	MaxPayload int64
	// MaxStore bounds all files of the store together, in bytes; 0 = 64 MiB. A Put that would go above it returns ErrFull,
	// after everything below the two newest verified generations of each stream was dropped. The marks that keep the
	// numbers of deleted streams are not counted: they are empty, but for one that a crash left in the middle of a Delete.
	MaxStore int64
	// Ballast is how many bytes are set aside in a file that is given back when the disk is full, so that a pending record
	// still fits; 0 = 1 MiB, below 0 = none. It comes back by itself when there is room again.
	Ballast int64
	// OnDamage, if set, is told of each damaged, foreign, untrusted or unreadable file, once a Store. It is called by the
	// goroutine that found it, inside Open or the call, without a lock held; it must not call the Store.
	OnDamage func(Damage)
}

// complete fills in the defaults and refuses what can not be meant.
func (o Options) complete() (Options, error) {
	if o.Generations == 0 {
		o.Generations = defaultGenerations
	}
	if o.MaxPayload == 0 {
		o.MaxPayload = defaultMaxPayload
	}
	if o.MaxStore == 0 {
		o.MaxStore = defaultMaxStore
	}
	if o.Ballast == 0 {
		o.Ballast = defaultBallast
	}
	if o.OnDamage == nil {
		o.OnDamage = func(Damage) {}
	}
	if o.Writer == "" {
		o.Writer = none
	}
	return o, o.check()
}

func (o Options) check() error {
	switch {
	case o.Generations < minGenerations:
		return fmt.Errorf("option Generations is %d: must be at least %d", o.Generations, minGenerations)
	case o.MaxPayload < 0 || o.MaxPayload > maxRecord:
		return fmt.Errorf("option MaxPayload is %d: must be between 1 and %d", o.MaxPayload, maxRecord)
	case o.MaxStore < 0:
		return fmt.Errorf("option MaxStore is %d: must not be below 0", o.MaxStore)
	}
	if err := checkWriter(o.Writer); err != nil {
		return fmt.Errorf("option Writer: %w", err)
	}
	return nil
}

func checkWriter(w string) error {
	if w == "" || len(w) > writerMax {
		return fmt.Errorf("writer has %d characters: must have 1 to %d", len(w), writerMax)
	}
	for i := range len(w) {
		c := w[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(".+_-", c) >= 0) {
			return errors.New("writer must have letters, digits, and any of .+_- only")
		}
	}
	return nil
}

// machine gives what the records of this machine carry. The id itself is not written: systemd asks not to expose it.
func (o Options) machine() string { return o.machineOf(machineFile) }

func (o Options) machineOf(file string) string {
	id := o.MachineID
	if id == "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return none
		}
		id = strings.TrimSpace(string(content))
		if id == "" || id == "uninitialized" {
			return none
		}
	}
	sum := sha256.Sum256([]byte("belay checkpoint machine\n" + id))
	return hex.EncodeToString(sum[:])[:machineDigits]
}
