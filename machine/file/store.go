// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/belayproject/belay/internal/durable"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// state is the directory of what is remembered.
const state = ".belay"

var _ controller.Machines = (*Store)(nil)

// A Store is a directory of machines. Make it with [Open].
type Store struct {
	dir    string
	unlock func() error

	mu           sync.Mutex
	all          map[machine.Key]*v1alpha1.Machine
	unreferenced []machine.Key
}

// Open takes a directory. It fails where another process has it, and where a record can't be read. Close it in the end.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, state), 0o700); err != nil {
		return nil, fmt.Errorf("open machines in %q: %w", dir, err)
	}
	unlock, err := lock(filepath.Join(dir, state, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open machines in %q: %w", dir, err)
	}
	s := &Store{dir: dir, unlock: unlock, all: map[machine.Key]*v1alpha1.Machine{}}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return s, nil
}

// Close gives the directory back.
func (s *Store) Close() error {
	if s.unlock == nil {
		return option.NotMade("machine/file.Store.Close", "machine/file.Open")
	}
	return s.unlock()
}

// load reads the records.
func (s *Store) load() error {
	entries, err := os.ReadDir(filepath.Join(s.dir, state))
	if err != nil {
		return fmt.Errorf("open machines in %q: %w", s.dir, err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue // the lock, and what a crash has left of a write
		}
		data, err := os.ReadFile(filepath.Join(s.dir, state, e.Name()))
		if err != nil {
			return fmt.Errorf("open machines in %q: %w", s.dir, err)
		}
		m := &v1alpha1.Machine{}
		if err := json.Unmarshal(data, m); err != nil {
			return fmt.Errorf("record %q: it is no Machine: %w", filepath.Join(s.dir, state, e.Name()), err)
		}
		key := machine.Key{Namespace: m.Namespace, Name: m.Name}
		if want := filepath.Base(s.path(key)); e.Name() != want {
			return fmt.Errorf("record %q is of machine %q, whose record is %q: rename it, or remove it if that one is there", e.Name(), key, want)
		}
		s.all[key] = m
	}
	return nil
}

// Refresh reads the manifests, and takes over what is wanted. It returns the machines that are new or have changed. A
// manifest that can't be read is an error that names it; the others count.
func (s *Store) Refresh() ([]machine.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted, err := s.manifests()
	var changed []machine.Key
	errs := []error{err}
	for key, m := range wanted {
		did, err := s.want(key, m)
		errs = append(errs, err)
		if did {
			changed = append(changed, key)
		}
	}
	if err == nil { // else one that can't be read may be there
		s.unreferenced = nil
		for key := range s.all {
			if wanted[key] == nil {
				s.unreferenced = append(s.unreferenced, key)
			}
		}
	}
	return changed, errors.Join(errs...)
}

// want takes over what a manifest says: what was found out stays.
func (s *Store) want(key machine.Key, m *v1alpha1.Machine) (changed bool, err error) {
	old := s.all[key]
	next := m.DeepCopy()
	next.Status = v1alpha1.MachineStatus{}
	if old == nil {
		next.UID, next.Generation, next.CreationTimestamp = uuid.NewUUID(), 1, metav1.Now()
		return true, s.put(key, next)
	}
	if old.Spec.ProviderID != "" { // what a manifest says may be of an instance that was replaced
		next.Spec.ProviderID = old.Spec.ProviderID
	}
	if same(old, next) {
		return false, nil
	}
	next.ObjectMeta.UID, next.Generation, next.CreationTimestamp = old.UID, old.Generation+1, old.CreationTimestamp
	next.DeletionTimestamp, next.Finalizers, next.ResourceVersion, next.Status = old.DeletionTimestamp, old.Finalizers, old.ResourceVersion, old.Status
	return true, s.put(key, next)
}

// same compares what users write.
func same(a, b *v1alpha1.Machine) bool {
	text := func(m *v1alpha1.Machine) string {
		data, err := json.Marshal([]any{m.Labels, m.Annotations, m.Spec})
		return fmt.Sprint(string(data), err)
	}
	return text(a) == text(b)
}

// put stores a record in its next version. It is called with the lock.
func (s *Store) put(key machine.Key, m *v1alpha1.Machine) error {
	n, _ := strconv.ParseInt(m.ResourceVersion, 10, 64) // 0 before the first
	m.ResourceVersion = strconv.FormatInt(n+1, 10)
	m.APIVersion, m.Kind = v1alpha1.GroupVersion.String(), v1alpha1.MachineKind
	data, err := json.Marshal(m)
	if err == nil {
		err = durable.ReplaceFile(durable.OS{}, s.path(key), data, 0o600)
	}
	// What counts is what is read back after a restart: the bytes of a config, above all, from which its digest is made.
	stored := &v1alpha1.Machine{}
	if err == nil {
		err = json.Unmarshal(data, stored)
	}
	if err != nil {
		return fmt.Errorf("store machine %q: %w", key, err)
	}
	s.all[key] = stored
	return nil
}

// path is that of a record: "namespace_name.json". No two machines have one in common.
func (s *Store) path(key machine.Key) string {
	apart := strings.NewReplacer("%", "%25", "_", "%5F", "/", "_")
	return filepath.Join(s.dir, state, apart.Replace(key.String())+".json")
}

// Unreferenced are machines that no manifest names any more. They are kept as they are, with their instances, until
// somebody deletes them.
func (s *Store) Unreferenced() []machine.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.unreferenced)
}

// Delete asks for the end of a machine; absence is io/fs.ErrNotExist. Its manifest should go too, or it is made again.
func (s *Store) Delete(key machine.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.all[key]
	switch {
	case m == nil:
		return fmt.Errorf("delete machine %q: %w", key, fs.ErrNotExist)
	case m.DeletionTimestamp != nil:
		return nil
	}
	next, now := m.DeepCopy(), metav1.NewTime(time.Now())
	next.DeletionTimestamp, next.Generation = &now, m.Generation+1
	return s.finish(key, next)
}

// finish stores a machine, or removes it when nothing holds it any more.
func (s *Store) finish(key machine.Key, m *v1alpha1.Machine) error {
	if m.DeletionTimestamp == nil || len(m.Finalizers) > 0 {
		return s.put(key, m)
	}
	if err := durable.Remove(durable.OS{}, s.path(key)); err != nil {
		return fmt.Errorf("remove machine %q: %w", key, err)
	}
	delete(s.all, key)
	return nil
}

// Export returns the machines as they are to be created in a cluster: with their ProviderIDs, and without what belongs
// to this store. What is half-done is known to this store alone, and would be done again there: a machine that is being
// made, changed, replaced, decommissioned or deleted, or has a Node that is still to be removed, is an error that names
// it, and nothing is exported. Nobody may work at the machines of this store any more from then on: close it.
func (s *Store) Export() ([]v1alpha1.Machine, error) {
	if s.unlock == nil {
		return nil, option.NotMade("machine/file.Store.Export", "machine/file.Open")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all, errs := make([]v1alpha1.Machine, 0, len(s.all)), []error(nil)
	for key, m := range s.all {
		c, err := m.Core()
		if why := restless(c); err == nil && why != "" {
			err = fmt.Errorf("%s: wait until it is at rest", why)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("export machine %q: %w", key, err))
			continue
		}
		o := v1alpha1.Machine{TypeMeta: m.TypeMeta, Spec: *m.Spec.DeepCopy()}
		o.Namespace, o.Name, o.Labels, o.Annotations = m.Namespace, m.Name, m.Labels, m.Annotations
		all = append(all, o)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b v1alpha1.Machine) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all, nil
}

// restless says what keeps a machine from being found again by its spec alone; empty if nothing does.
func restless(m machine.Machine) string {
	own := func(r machine.Retained) bool { return r.Token == m.Token }
	stray := slices.IndexFunc(m.Strays, func(s machine.Stray) bool { return s.Left == "" })
	switch {
	case !m.Deleted.IsZero():
		return "it is being deleted"
	case stray >= 0:
		return fmt.Sprintf("a Node of the instance %q, which has ended, is still to be removed", m.Strays[stray].Token)
	case m.Update != nil, m.Release != nil:
		return fmt.Sprintf("its instance is being changed, at step %s", m.Step.Name)
	case m.Spec.Decommission != (m.Phase == machine.PhaseRetired):
		return fmt.Sprintf("spec.decommission is %t, and its phase is %s", m.Spec.Decommission, m.Phase)
	case m.Phase == machine.PhaseRetired && !slices.ContainsFunc(m.Retained, own):
		return "" // nothing is left of its instance
	case m.Token != provider.TokenOf(m.Spec.ProviderID):
		return fmt.Sprintf("spec.providerID is %q, and not yet that of the instance %q", m.Spec.ProviderID, m.Token)
	}
	return ""
}

// Get implements [controller.Machines].
func (s *Store) Get(ctx context.Context, key machine.Key) (machine.Machine, error) {
	return s.Live(ctx, key)
}

// Live implements [controller.Machines].
func (s *Store) Live(_ context.Context, key machine.Key) (machine.Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.all[key]; m != nil {
		return m.Core()
	}
	return machine.Machine{}, fmt.Errorf("machine %q: %w", key, fs.ErrNotExist)
}

// List implements [controller.Machines].
func (s *Store) List(context.Context) ([]machine.Machine, error) {
	if s.unlock == nil {
		return nil, option.NotMade("machine/file.Store.List", "machine/file.Open")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []machine.Machine
	var errs []error
	for _, m := range s.all {
		c, err := m.Core()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, c)
	}
	return all, errors.Join(errs...)
}

// ListLive implements [controller.Machines].
func (s *Store) ListLive(ctx context.Context) ([]machine.Machine, error) {
	if s.unlock == nil {
		return nil, option.NotMade("machine/file.Store.ListLive", "machine/file.Open")
	}
	return s.List(ctx)
}

// Twins implements [controller.Machines].
func (s *Store) Twins(_ context.Context, m machine.Machine, id string) ([]machine.Key, error) {
	if s.unlock == nil {
		return nil, option.NotMade("machine/file.Store.Twins", "machine/file.Open")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var twins []machine.Key
	for key, other := range s.all {
		if key != m.Key && (other.Spec.ProviderID == id || other.Status.Instance != nil && other.Status.Instance.ProviderID == id) {
			twins = append(twins, key)
		}
	}
	return twins, nil
}

// PutStatus implements [controller.Machines].
func (s *Store) PutStatus(_ context.Context, m machine.Machine) (machine.Machine, error) {
	return s.change(m, func(o *v1alpha1.Machine) { o.SetStatus(m, nil, time.Now()) })
}

// SetFinalizer implements [controller.Machines].
func (s *Store) SetFinalizer(_ context.Context, m machine.Machine, on bool) (machine.Machine, error) {
	return s.change(m, func(o *v1alpha1.Machine) {
		o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == v1alpha1.Finalizer })
		if on {
			o.Finalizers = append(o.Finalizers, v1alpha1.Finalizer)
		}
	})
}

// SetProviderID implements [controller.Machines].
func (s *Store) SetProviderID(_ context.Context, m machine.Machine, id string) (machine.Machine, error) {
	return s.change(m, func(o *v1alpha1.Machine) { o.Spec.ProviderID, o.Generation = id, o.Generation+1 })
}

func (s *Store) change(m machine.Machine, f func(o *v1alpha1.Machine)) (machine.Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.all[m.Key]
	switch {
	case is == nil:
		return m, fmt.Errorf("machine %q: %w", m.Key, fs.ErrNotExist)
	case is.ResourceVersion != m.Version || string(is.UID) != m.UID:
		return m, fmt.Errorf("machine %q is at version %s, not %s: %w", m.Key, is.ResourceVersion, m.Version, controller.ErrConflict)
	}
	next := is.DeepCopy()
	f(next)
	if err := s.finish(m.Key, next); err != nil {
		return m, err
	}
	if stored := s.all[m.Key]; stored != nil {
		next = stored
	}
	return next.Core()
}
