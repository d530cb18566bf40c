// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/option"
)

// The names under which a directory's config appears in references and status.
const (
	namespace  = "local"
	objectName = "directory"
)

// A Source takes the wanted config from a directory. It is a configsync.Source and a configsync.Fetcher.
type Source struct {
	// Dir is the directory.
	Dir string
	// Interval is the time between two looks: 10 s by default.
	Interval time.Duration
}

// Desired names the config that the directory holds now, by its digest; nil where it holds none.
func (s *Source) Desired(context.Context) (*configsync.Spec, error) {
	data, err := s.read()
	if err != nil || len(data) == 0 {
		return nil, err
	}
	digest := configsync.DigestOf(data)
	return &configsync.Spec{Namespace: namespace, Name: objectName, UID: uid(digest), Digest: digest}, nil
}

// Fetch returns the entries of the directory. The error is configsync.ErrMismatch if they are not those that spec names.
func (s *Source) Fetch(_ context.Context, spec configsync.Spec) (configsync.Object, error) {
	data, err := s.read()
	if err != nil {
		return configsync.Object{}, err
	}
	digest := configsync.DigestOf(data)
	if spec.Digest != "" && spec.Digest != digest {
		return configsync.Object{}, fmt.Errorf("reading directory %q: %w: it holds digest %s now", s.Dir, configsync.ErrMismatch, digest)
	}
	return object(data, digest)
}

// Watch calls changed once when it begins, for what was changed before it looked, and then whenever the directory holds something
// else than before. It looks every Interval, and returns nil when ctx ends.
func (s *Source) Watch(ctx context.Context, changed func()) error {
	if err := option.CheckRequired("configsync/file.Source.Watch", "changed", changed, "what looks again"); err != nil {
		return err
	}
	interval := s.Interval
	if interval <= 0 {
		interval = 10 * time.Second
	}
	t := time.NewTicker(interval)
	defer t.Stop()
	last := s.look()
	changed()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if now := s.look(); now != last {
			last = now
			changed()
		}
	}
}

// read gives the entries of the directory. What is wrong with them as a source keeps its own words.
func (s *Source) read() (map[string]string, error) {
	data, err := snapshot(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading directory %q: %w", s.Dir, err)
	}
	return data, nil
}

// look is a text that differs when the directory does.
func (s *Source) look() string {
	data, err := s.read()
	if err != nil {
		return err.Error()
	}
	return configsync.DigestOf(data)
}

// uid makes a content's digest serve as the object's UID: other content is another object.
func uid(digest string) string { return "file-" + strings.TrimPrefix(digest, "sha256:")[:32] }

// object is the ConfigMap that the entries stand for.
func object(data map[string]string, digest string) (configsync.Object, error) {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": data,
		"metadata": map[string]string{"namespace": namespace, "name": objectName, "uid": uid(digest)},
	})
	if err != nil {
		return configsync.Object{}, fmt.Errorf("encoding the entries: %w", err)
	}
	return configsync.ParseObject(raw)
}
