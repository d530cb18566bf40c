// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
)

// Disk is a file system in memory with the calls of package os. It remembers which changes were made durable and in which order
// all came, so that a [Crash] can find every state that a power cut may leave; and it fails on demand, see [Disk.Inject].
// Code that is to run on it and on a real disk declares the few calls that it needs as an interface.
//
// It knows files, directories and modes, and no links, owners, times, or umask. Names are taken from the root, "/". Errors are
// those of package os: an [fs.PathError] with a [syscall.Errno], and [fs.ErrClosed] for a closed [File].
type Disk struct {
	mu    sync.Mutex
	root  *node
	ids   uint64
	start *model // what the disk had when the log began
	prior []any  // what was noted before
	log   []event
	quiet bool // nothing is logged

	fault Fault
	armed bool
	calls int
}

// node is a file or a directory, as reading shows it.
type node struct {
	id      uint64
	dir     bool
	mode    fs.FileMode // permissions
	data    []byte
	shared  bool // data belongs to others, too
	entries map[string]*node
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	d := &Disk{}
	d.root = d.make(true, 0o755)
	d.start = modelOf(d.root)
	return d
}

func (d *Disk) make(dir bool, mode fs.FileMode) *node {
	d.ids++
	n := &node{id: d.ids, dir: dir, mode: mode & fs.ModePerm}
	if dir {
		n.entries = map[string]*node{}
	}
	return n
}

// Note tells the record what the world outside was told, for example that a write was acknowledged: [Crash.Check] is given what
// was noted before the crash.
func (d *Disk) Note(v any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record(event{kind: evNote, note: v})
}

// Notes gives what was noted.
func (d *Disk) Notes() []any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.noted()
}

func (d *Disk) noted() []any {
	all := slices.Clone(d.prior)
	for _, e := range d.log {
		if e.kind == evNote {
			all = append(all, e.note)
		}
	}
	return all
}

// Settle makes everything durable, as a clean end of the machine would: a crash before it is not looked at. What was noted stays.
func (d *Disk) Settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.start, d.prior, d.log = modelOf(d.root), d.noted(), nil
}

// Stop ends the record: crashes in what comes later are not looked at. In [Crash.Check] it divides recovery from looking around.
func (d *Disk) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quiet = true
}

func (d *Disk) record(e event) {
	if !d.quiet {
		d.log = append(d.log, e)
	}
}

func clean(name string) string {
	if len(name) == 0 || name[0] != '/' {
		name = "/" + name
	}
	return path.Clean(name)
}

// find returns what has a name.
func (d *Disk) find(name string) (*node, error) {
	n := d.root
	for name = clean(name); name != "/"; {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		first, rest := cutFirst(name)
		next, ok := n.entries[first]
		if !ok {
			return nil, syscall.ENOENT
		}
		n, name = next, rest
	}
	return n, nil
}

// cutFirst cuts "/a/b/c" into "a" and "/b/c".
func cutFirst(name string) (first, rest string) {
	for i := 1; i < len(name); i++ {
		if name[i] == '/' {
			return name[1:i], name[i:]
		}
	}
	return name[1:], "/"
}

// parent returns the directory of a name, and the name in it.
func (d *Disk) parent(name string) (*node, string, error) {
	name = clean(name)
	if name == "/" {
		return nil, "", syscall.EBUSY
	}
	n, err := d.find(path.Dir(name))
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	return n, path.Base(name), err
}

// OpenFile opens a file or, for reading, a directory; flag is made of those of package os.
func (d *Disk) OpenFile(name string, flag int, perm fs.FileMode) (*File, error) {
	var f *File
	err := d.do(d.opening(name, flag), name, func() error {
		n, err := d.find(name)
		switch {
		case errors.Is(err, syscall.ENOENT) && flag&os.O_CREATE != 0:
			n, err = d.create(name, perm)
		case err == nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
			err = syscall.EEXIST
		case err == nil && n.dir && flag&(os.O_WRONLY|os.O_RDWR) != 0:
			err = syscall.EISDIR
		}
		if err != nil {
			return err
		}
		if flag&os.O_TRUNC != 0 && len(n.data) > 0 {
			d.resize(n, 0)
		}
		f = &File{d: d, n: n, name: name, flag: flag}
		return nil
	})
	if err != nil {
		return nil, err // also where the file was made before the call failed
	}
	return f, nil
}

// opening is the name of a call: whether it changes anything decides whether it fails on a disk that cannot be written.
func (d *Disk) opening(name string, flag int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return "openwrite"
	}
	if _, err := d.find(name); err != nil && flag&os.O_CREATE != 0 {
		return "create"
	}
	return "open"
}

func (d *Disk) create(name string, perm fs.FileMode) (*node, error) {
	dir, base, err := d.parent(name)
	if err != nil {
		return nil, err
	}
	n := d.make(false, perm)
	dir.entries[base] = n
	d.record(event{kind: evChange, what: "create " + base, to: dir, toName: base, n: n, mode: n.mode})
	return n, nil
}

// Mkdir makes a directory.
func (d *Disk) Mkdir(name string, perm fs.FileMode) error {
	return d.do("mkdir", name, func() error {
		dir, base, err := d.parent(name)
		if err != nil {
			return err
		}
		if _, ok := dir.entries[base]; ok {
			return syscall.EEXIST
		}
		n := d.make(true, perm)
		dir.entries[base] = n
		d.record(event{kind: evChange, what: "mkdir " + base, to: dir, toName: base, n: n, mode: n.mode})
		return nil
	})
}

// Rename gives a file another name, and replaces a file that has it. It is one change of the directory; where there are two
// directories it is one in each, and a crash may keep either.
func (d *Disk) Rename(from, to string) error { return d.rename(from, to, true) }

// RenameNew is Rename that replaces nothing: where the name is taken, the error is [syscall.EEXIST].
func (d *Disk) RenameNew(from, to string) error { return d.rename(from, to, false) }

func (d *Disk) rename(from, to string, replace bool) error {
	return d.do("rename", from, func() error {
		dir, base, err := d.parent(from)
		if err != nil {
			return err
		}
		toDir, toBase, err := d.parent(to)
		if err != nil {
			return err
		}
		n, ok := dir.entries[base]
		if !ok {
			return syscall.ENOENT
		}
		if old, taken := toDir.entries[toBase]; taken {
			switch {
			case !replace:
				return syscall.EEXIST
			case old.dir || n.dir:
				return syscall.EISDIR // enough for those who keep files
			}
		}
		delete(dir.entries, base)
		toDir.entries[toBase] = n
		d.record(event{kind: evChange, what: "rename " + base + " " + toBase, from: dir, fromName: base, to: toDir, toName: toBase, n: n})
		return nil
	})
}

// Remove removes a file or an empty directory.
func (d *Disk) Remove(name string) error {
	return d.do("remove", name, func() error {
		dir, base, err := d.parent(name)
		if err != nil {
			return err
		}
		n, ok := dir.entries[base]
		if !ok {
			return syscall.ENOENT
		}
		if len(n.entries) > 0 {
			return syscall.ENOTEMPTY
		}
		delete(dir.entries, base)
		d.record(event{kind: evChange, what: "remove " + base, from: dir, fromName: base})
		return nil
	})
}

// ReadDir lists a directory, sorted by name.
func (d *Disk) ReadDir(name string) ([]fs.DirEntry, error) {
	var list []fs.DirEntry
	err := d.do("readdir", name, func() error {
		n, err := d.find(name)
		if err == nil && !n.dir {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return err
		}
		for _, base := range slices.Sorted(maps.Keys(n.entries)) {
			list = append(list, fs.FileInfoToDirEntry(infoOf(base, n.entries[base])))
		}
		return nil
	})
	return list, err
}

// Stat says what has a name. Its Sys is a number, a uint64, that no other file of the disk ever has.
func (d *Disk) Stat(name string) (fs.FileInfo, error) {
	var i fs.FileInfo
	err := d.do("stat", name, func() error {
		n, err := d.find(name)
		if err == nil {
			i = infoOf(path.Base(clean(name)), n)
		}
		return err
	})
	return i, err
}

// Chmod changes permissions. A crash does not undo that.
func (d *Disk) Chmod(name string, perm fs.FileMode) error {
	return d.do("chmod", name, func() error {
		n, err := d.find(name)
		if err == nil {
			d.chmod(n, perm)
		}
		return err
	})
}

func (d *Disk) chmod(n *node, perm fs.FileMode) {
	n.mode = perm & fs.ModePerm
	d.record(event{kind: evMode, n: n, mode: n.mode})
}

// write changes the content of a file; data that a crash image shares stays as it is.
func (d *Disk) write(n *node, p []byte, off int64) {
	d.own(n, max(len(n.data), int(off)+len(p)))
	copy(n.data[off:], p)
	if !d.quiet {
		d.record(event{kind: evWrite, n: n, data: slices.Clone(p), off: off})
	}
}

func (d *Disk) resize(n *node, size int64) {
	d.own(n, int(size))
	d.record(event{kind: evResize, n: n, off: size})
}

// own makes the content the node's alone, of a given size.
func (d *Disk) own(n *node, size int) {
	if n.shared {
		n.data, n.shared = slices.Clone(n.data), false
	}
	old := len(n.data)
	n.data = slices.Grow(n.data, max(0, size-old))[:size]
	if size > old {
		clear(n.data[old:])
	}
}
