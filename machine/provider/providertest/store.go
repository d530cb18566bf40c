// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A store is the state: in memory for readers, in files for ever. An instance is changed by who holds the lock of its token, and not before
// its file has it.
type store struct {
	files files
	locks locks
	own   *os.File

	mu        sync.RWMutex // guards the maps and failed
	instances map[string]record
	used      map[string]used
	groups    map[string]int
	failed    error
}

// group is the file of one.
type group struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// openStore reads the state in a directory, and finishes what a crash has cut off.
func openStore(f files) (*store, error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, err
	}
	own, err := lock(f.dir)
	if err != nil {
		return nil, err
	}
	st := &store{
		files: f, own: own,
		instances: map[string]record{}, used: map[string]used{}, groups: map[string]int{},
	}
	if err := errors.Join(st.files.make(), st.load()); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	if err := st.finish(); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return st, nil
}

func (st *store) close() error { return st.own.Close() }

func (st *store) load() error {
	err := errors.Join(
		loadAll(&st.files, instanceDir, st.instances, func(r record) string { return r.Token }),
		loadAll(&st.files, usedDir, st.used, func(u used) string { return u.Token }),
	)
	groups := map[string]group{}
	err = errors.Join(err, loadAll(&st.files, groupDir, groups, func(g group) string { return g.Name }))
	for name, g := range groups {
		st.groups[name] = g.Size
	}
	return err
}

// loadAll reads a directory. A file that is not what its name says is an error: the state is not guessed at.
func loadAll[T any](f *files, dir string, into map[string]T, key func(T) string) error {
	names, err := f.names(dir, true)
	if err != nil {
		return err
	}
	for _, name := range names {
		var value T
		if err := f.read(dir, name, &value); err != nil {
			return err
		}
		if key(value) != name {
			return fmt.Errorf("the file %q in %q is of %q: want the name of what it holds", name, dir, key(value))
		}
		into[name] = value
	}
	return nil
}

// finish carries out what was decided before a crash: the file of a used-up token, or of an instance that took over another one, decides.
func (st *store) finish() error {
	for _, r := range st.instances {
		if old, there := st.instances[r.From]; there {
			if err := st.use(old.Token, old.Owner.Cluster); err != nil {
				return err
			}
		}
	}
	disks := map[string]bool{}
	for token, r := range maps.Clone(st.instances) {
		if _, gone := st.used[token]; gone {
			if err := st.forget(token); err != nil {
				return err
			}
			continue
		}
		for _, d := range r.Disks {
			disks[d.ID] = true
		}
	}
	return st.sweep(disks)
}

// sweep removes the disks that no instance has, and misses the others.
func (st *store) sweep(owned map[string]bool) error {
	there, err := st.files.names(diskDir, true)
	if err != nil {
		return err
	}
	for _, id := range there {
		if !owned[id] {
			if err := st.files.remove(diskDir, id); err != nil {
				return err
			}
		}
		delete(owned, id)
	}
	for id := range owned {
		return fmt.Errorf("the file of disk %q is missing in %q", id, st.files.dir)
	}
	return nil
}

// get returns an instance as it was last written.
func (st *store) get(token string) (record, bool) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	r, ok := st.instances[token]
	return r, ok
}

// all returns the instances, by token.
func (st *store) all() []record {
	st.mu.RLock()
	defer st.mu.RUnlock()
	all := make([]record, 0, len(st.instances))
	for _, token := range slices.Sorted(maps.Keys(st.instances)) {
		all = append(all, st.instances[token])
	}
	return all
}

// isUsed reports whether a token is used up.
func (st *store) isUsed(token string) bool {
	st.mu.RLock()
	defer st.mu.RUnlock()
	_, is := st.used[token]
	return is
}

// usedUp counts the tokens that are.
func (st *store) usedUp() int {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return len(st.used)
}

// broken returns why nothing can be written any more.
func (st *store) broken() error {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.failed
}

// wrote takes over in memory what was written. After an error nobody knows what the files hold, and the state ends until it is read again.
func (st *store) wrote(err error, apply func()) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err != nil {
		st.failed = errors.Join(st.failed, err)
		return provider.Errorf(provider.Unavailable, "the state can't be written: %w", err)
	}
	apply()
	return nil
}

// put writes an instance. The caller holds the lock of its token.
func (st *store) put(r record) error {
	return st.wrote(st.files.write(instanceDir, r.Token, r), func() { st.instances[r.Token] = r })
}

// make writes a new instance, after its disks: before the file of the instance is there, they are nobody's.
func (st *store) make(r record) error {
	if err := st.makeDisks(r, nil); err != nil {
		return st.wrote(err, func() {})
	}
	return st.put(r)
}

func (st *store) makeDisks(r record, old []disk) error {
	for _, d := range r.Disks {
		if slices.Contains(old, d) {
			continue
		}
		if err := st.files.write(diskDir, d.ID, diskFile{disk: d}); err != nil {
			return err
		}
	}
	return nil
}

// takeOver writes a new instance that has the disks of an old one, whose token is used up. Readers see both steps at once. The caller holds the
// locks of both.
func (st *store) takeOver(r, old record) error {
	err := st.makeDisks(r, old.Disks)
	if err == nil {
		err = st.files.write(instanceDir, r.Token, r)
	}
	u := used{Token: old.Token, Cluster: old.Owner.Cluster}
	if err == nil {
		err = st.files.write(usedDir, u.Token, u)
	}
	if err == nil {
		err = st.files.remove(instanceDir, u.Token)
	}
	return st.wrote(err, func() {
		st.instances[r.Token] = r
		st.used[u.Token] = u
		delete(st.instances, u.Token)
	})
}

// use uses a token up. For an instance, that decides its end.
func (st *store) use(token, cluster string) error {
	u := used{Token: token, Cluster: cluster}
	return st.wrote(st.files.write(usedDir, token, u), func() { st.used[token] = u })
}

// forget removes the file of an instance whose token is used up.
func (st *store) forget(token string) error {
	return st.wrote(st.files.remove(instanceDir, token), func() { delete(st.instances, token) })
}

// destroy leaves nothing of an instance but its token. The caller holds the lock of that.
func (st *store) destroy(r record) error {
	u := used{Token: r.Token, Cluster: r.Owner.Cluster}
	err := st.files.write(usedDir, u.Token, u)
	if err == nil {
		err = st.files.remove(instanceDir, u.Token)
	}
	for _, d := range r.Disks {
		if err == nil {
			err = st.files.remove(diskDir, d.ID)
		}
	}
	return st.wrote(err, func() {
		st.used[u.Token] = u
		delete(st.instances, u.Token)
	})
}

// current returns an instance as it is now, after what time has made of it was written. The caller holds the lock of its token.
func (st *store) current(token string, now time.Time) (record, bool, error) {
	r, ok := st.get(token)
	if !ok || !r.due(now) {
		return r, ok, nil
	}
	if r.settle(now) {
		return record{}, false, st.destroy(r)
	}
	return r, true, st.put(r)
}

// settle writes what time has made of the instances.
func (st *store) settle(ctx context.Context, now time.Time) error {
	for _, r := range st.all() {
		if !r.due(now) {
			continue
		}
		unlock, err := st.locks.lock(ctx, r.Token)
		if err != nil {
			return err
		}
		_, _, err = st.current(r.Token, now)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// resize writes the size of a group. The caller holds its lock.
func (st *store) resize(name string, size int) error {
	return st.wrote(st.files.write(groupDir, name, group{name, size}), func() { st.groups[name] = size })
}

// room reports whether a group has room for one more. One that was never given a size has.
func (st *store) room(name string) (size int, room bool) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	size, known := st.groups[name]
	if !known || name == "" {
		return 0, true
	}
	n := 0
	for _, r := range st.instances {
		if r.Config.Group == name && r.Phase != retained {
			n++
		}
	}
	return size, n < size
}
