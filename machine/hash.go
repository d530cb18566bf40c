// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// hashVersion is the first part of every [Template.Hash]. It changes with what goes into it.
const hashVersion = "1"

// Hash returns what a template is told by, as "1-" and 16 hex digits. Two that say the same have the same: nil and empty, and a default and its name, make
// no difference. Labels of hashes, and what belongs to one machine alone, do not count. That a hash of another version is another does not start a
// rollout: sets are told by what their template is, see [DecideDeployment].
func (t Template) Hash() string {
	sum := t.digest()
	return hashVersion + "-" + hex.EncodeToString(sum[:8])
}

// digest is that of a fixed encoding, in which what is added later is left out where it is zero: names of fields here never change.
func (t Template) digest() [sha256.Size]byte {
	labels := maps.Clone(t.Labels)
	delete(labels, hashLabel)
	delete(labels, DeploymentLabel)
	s := t.Spec
	h := hashed{
		Labels: labels, Annotations: t.Annotations, Desired: s.Desired,
		Bootstrap: s.Bootstrap, Credentials: s.Credentials, ConfigSource: s.ConfigSource,
		DrainTimeout: s.Deletion.DrainTimeout, NodeTimeout: s.Deletion.NodeTimeout, RetainFor: s.Deletion.RetainFor,
	}
	if s.UpdatePolicy != ProviderDecides {
		h.UpdatePolicy = s.UpdatePolicy
	}
	if s.Deletion.NodeTimeout == DefaultNodeTimeout {
		h.NodeTimeout = 0
	}
	if s.Deletion.Disks != provider.Retain {
		h.Disks = s.Deletion.Disks
	}
	for _, k := range s.Deletion.Hooks {
		h.Hooks = append(h.Hooks, hashedHook(k))
	}
	data, _ := json.Marshal(h) // strings, numbers, maps of strings and bytes can always be encoded
	return sha256.Sum256(data)
}

type hashed struct {
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	Desired      provider.Desired  `json:"desired"`
	Bootstrap    string            `json:"bootstrap,omitempty"`
	Credentials  string            `json:"credentials,omitempty"`
	ConfigSource []byte            `json:"configSource,omitempty"`
	UpdatePolicy UpdatePolicy      `json:"updatePolicy,omitempty"`
	DrainTimeout time.Duration     `json:"drainTimeout,omitempty"`
	NodeTimeout  time.Duration     `json:"nodeTimeout,omitempty"`
	Disks        provider.Mode     `json:"disks,omitempty"`
	RetainFor    time.Duration     `json:"retainFor,omitempty"`
	Hooks        []hashedHook      `json:"hooks,omitempty"`
}

type hashedHook struct {
	Name    string        `json:"name,omitempty"`
	Owner   string        `json:"owner,omitempty"`
	Phase   HookPhase     `json:"phase,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
}
