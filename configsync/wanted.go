// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/belayproject/belay/lkg"
)

// streamWanted is the record of what a [Steered] was told.
const streamWanted = "wanted"

// keptNames is how many configs are remembered by name: those that can be gone back to, and more than are ever listed
// as bad.
const keptNames = 64

// A record is what a [Steered] was told.
type record struct {
	Config string      `json:"config"`
	Spec   *wantedSpec `json:"spec,omitempty"` // nil for the local config
	// Names are the configs that it was told before, the last one last.
	Names []wantedName `json:"names,omitempty"`
}

// A wantedSpec is a [Spec] on record.
type wantedSpec struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	Key       string `json:"key,omitempty"`
	Digest    string `json:"digest,omitempty"`
}

// A wantedName is the name of a config.
type wantedName struct {
	Config string     `json:"config"`
	Spec   wantedSpec `json:"spec"`
}

func newWantedSpec(s Spec) *wantedSpec {
	return &wantedSpec{Namespace: s.Namespace, Name: s.Name, UID: s.UID, Key: s.Key, Digest: s.Digest}
}

// means reports whether a ref is of the object that is meant. An empty key is the usual one.
func (s wantedSpec) means(r lkg.Ref, key string) bool {
	if s.Key != "" {
		key = s.Key
	}
	return s.Namespace == r.Namespace && s.Name == r.Name && (s.UID == "" || s.UID == r.UID) && (s.Digest == "" || s.Digest == r.Digest) && key == r.Key
}

// addName is the record with one name more.
func (r record) addName(config string, spec wantedSpec) record {
	all := slices.DeleteFunc(slices.Clone(r.Names), func(n wantedName) bool { return n.Config == config })
	all = append(all, wantedName{config, spec})
	r.Names = all[max(0, len(all)-keptNames):]
	return r
}

// wanted is the [Source] of a [Steered].
type wanted struct {
	key  string    // of specs that name none
	turn semaphore // held while the record changes

	mu      sync.Mutex
	told    record
	changed func()
}

// load reads the record; without one what is assigned is wanted.
func (w *wanted) load(ctx context.Context, store Store, assigned lkg.Ref) {
	var r record
	raw, err := store.Get(ctx, streamWanted)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		r = record{}
		if !assigned.IsLocal() {
			r.Spec = &wantedSpec{Namespace: assigned.Namespace, Name: assigned.Name, UID: assigned.UID, Key: assigned.Key, Digest: assigned.Digest}
			r.Config = objectName(assigned)
		}
	}
	w.set(r)
}

func (w *wanted) set(r record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = r
	if w.changed != nil {
		w.changed()
	}
}

func (w *wanted) snapshot() record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told
}

// store makes a record the one that is followed.
func (w *wanted) store(ctx context.Context, store Store, r record) error {
	raw, err := json.Marshal(r)
	if err == nil {
		err = store.Put(ctx, streamWanted, raw)
	}
	if err != nil {
		return fmt.Errorf("configsync: recording that config %q is wanted: %w", r.Config, err)
	}
	w.set(r)
	return nil
}

// nameOf is the name by which a config was adopted last, or that of its object. The local one has none.
func (w *wanted) nameOf(r lkg.Ref) string {
	if r.IsLocal() {
		return ""
	}
	for _, n := range slices.Backward(w.snapshot().Names) {
		if n.Spec.means(r, w.key) {
			name, _, _ := strings.Cut(n.Config, "@")
			return name + "@" + r.Digest
		}
	}
	return objectName(r)
}

// objectName is the name of a config that was adopted under no other.
func objectName(r lkg.Ref) string { return r.Name + "@" + r.Digest }

// is reports whether a ref is the config of a name. One that pins nothing is any of its name.
func (w *wanted) is(config string, r lkg.Ref) bool {
	alike := func(other string) bool {
		name, digest, _ := strings.Cut(other, "@")
		return config == name || config == other || digest == "" && config == name+"@"+r.Digest
	}
	for _, n := range w.snapshot().Names {
		if alike(n.Config) && n.Spec.means(r, w.key) {
			return true
		}
	}
	return alike(objectName(r))
}

// Desired implements [Source].
func (w *wanted) Desired(context.Context) (*Spec, error) {
	s := w.snapshot().Spec
	if s == nil {
		return nil, nil //nolint:nilnil // the local config is wanted
	}
	return &Spec{Namespace: s.Namespace, Name: s.Name, UID: s.UID, Key: s.Key, Digest: s.Digest}, nil
}

// Watch implements [Source].
func (w *wanted) Watch(ctx context.Context, changed func()) error {
	w.mu.Lock()
	w.changed = changed
	w.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}
