// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/belayproject/belay/lkg"
)

// A Payload is what an entry of a ConfigMap holds. The World knows its text.
type Payload string

// The payloads. Local stands for the local config of the node and is in no ConfigMap.
const (
	Local       Payload = "local"
	GoodA       Payload = "good-a"
	GoodB       Payload = "good-b"
	Undecodable Payload = "undecodable"
	Invalid     Payload = "invalid"
	Crashing    Payload = "crashing" // decodes, is valid, and ends what runs with it
)

// ErrInvalid stands for a *configsync.InvalidError in [Step.Err].
var ErrInvalid = errors.New("source is invalid")

// Key is the entry that sources without a key mean.
const Key = "kubelet"

// A ConfigMap is what a World is asked to make.
type ConfigMap struct {
	Name      string
	Payloads  map[string]Payload
	Immutable bool
	Hidden    bool // in a namespace that the node may not read
	// Brief says that the trial is so short that a live node promotes the config at once. Otherwise nothing is promoted.
	Brief bool
}

// A Ref is the configMapRef of a source. Empty fields are left out.
type Ref struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
	Key       string `json:"key,omitempty"`
	Digest    string `json:"digest,omitempty"`
	Policy    string `json:"policy,omitempty"`
}

// Source is r as the JSON of a NodeConfigSource.
func (r Ref) Source() string {
	raw, err := json.Marshal(map[string]Ref{"configMapRef": r})
	if err != nil {
		return err.Error() // can't happen: strings marshal
	}
	return string(raw)
}

// A World is an API server with one node.
type World interface {
	// Create makes c and returns a reference with its namespace, name, UID and digest.
	Create(ctx context.Context, c ConfigMap) (Ref, error)
	// Edit replaces the payloads of c.
	Edit(ctx context.Context, c ConfigMap) (Ref, error)
	// Delete removes the ConfigMap with that name from the namespace that the node may read.
	Delete(ctx context.Context, name string) error
	// Assign makes the JSON the source of the node; "" removes it. The API server may refuse it.
	Assign(ctx context.Context, source string) error
}

// A Row is one story.
type Row struct {
	Name  string
	Steps []Step
}

// A Step is one thing that happens, and what must hold afterwards.
type Step struct {
	Name string
	Do   func(ctx context.Context, w World) error

	// Unchecked says that a schema can't see what is wrong, or drops it: the row is for sources without one.
	Unchecked bool

	// Err is what source and fetcher say: nil, [ErrInvalid] or a sentinel of package configsync.
	Err error
	// Cause must be part of the error.
	Cause string
	// Fetched is what is fetched if there is no error; empty for an empty source.
	Fetched Payload

	// Node is what a live node does.
	Node Node
}

// Node is what a live node reports after a step.
type Node struct {
	Active Payload
	Status lkg.Status
	// Good is the last known good config; empty means that it doesn't matter.
	Good Payload
	// Error says that the status names an error.
	Error bool
}
