// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/belayproject/belay/internal/strictjson"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// manifests are those in the directory.
func (s *Store) manifests() (map[machine.Key]*v1alpha1.Machine, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("read machines in %q: %w", s.dir, err)
	}
	all := map[machine.Key]*v1alpha1.Machine{}
	var errs []error
	for _, e := range entries {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) || e.IsDir() {
			continue
		}
		if err := manifest(filepath.Join(s.dir, e.Name()), all); err != nil {
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

// manifest reads the machines of one file.
func manifest(path string, into map[machine.Key]*v1alpha1.Machine) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	defer func() { _ = f.Close() }()
	documents := yaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		var raw json.RawMessage
		switch err := documents.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("manifest %q: %w", path, err)
		case len(raw) == 0 || string(raw) == "null":
			continue
		}
		m, err := decode(raw)
		if err != nil {
			return fmt.Errorf("manifest %q: %w", path, err)
		}
		if m.Kind != v1alpha1.MachineKind || m.APIVersion != v1alpha1.GroupVersion.String() || m.Name == "" {
			return fmt.Errorf("manifest %q: apiVersion %q, kind %q, name %q: want %s, %s, and a name", path, m.APIVersion, m.Kind, m.Name, v1alpha1.GroupVersion, v1alpha1.MachineKind)
		}
		key := machine.Key{Namespace: m.Namespace, Name: m.Name}
		if into[key] != nil {
			return fmt.Errorf("manifest %q: machine %q is there twice", path, key)
		}
		into[key] = m
	}
}

// decode reads a machine in the form in which an API server keeps it, keys in their order and numbers as it writes them: the bytes of a config, and so its digest, are
// the same before a move and after it.
func decode(raw []byte) (*v1alpha1.Machine, error) {
	var fields map[string]any
	if err := utiljson.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	kept, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	m := &v1alpha1.Machine{}
	return m, strictjson.Decode(kept, m)
}
