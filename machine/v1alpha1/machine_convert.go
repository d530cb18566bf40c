// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/strictjson"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// Core is what package machine sees of m. Conditions, and what else the status says for others alone, are no part of it. Times are UTC. An error names
// the field of what the API server can't check, and says what would be right.
func (m *Machine) Core() (machine.Machine, error) {
	spec, err := m.Spec.core()
	if err != nil {
		return machine.Machine{}, fmt.Errorf("machine %q: spec.%w", key(&m.ObjectMeta), err)
	}
	return machine.Machine{
		Key: key(&m.ObjectMeta), UID: string(m.UID), Version: m.ResourceVersion, Generation: m.Generation,
		Labels: maps.Clone(m.Labels), Annotations: maps.Clone(m.Annotations),
		Created: m.CreationTimestamp.UTC(), Deleted: timeOf(m.DeletionTimestamp),
		Finalizer: slices.Contains(m.Finalizers, Finalizer), Owner: ownerOf(&m.ObjectMeta), Spec: spec, Status: m.Status.core(),
	}, nil
}

// SetCore makes m what c is, but for the status: that is written by itself, see [Machine.SetStatus]. Finalizers and owners that are none of ours stay.
// An error names the field of c that an object can't have, and leaves m as it was.
func (m *Machine) SetCore(c machine.Machine) error {
	spec, err := specOf(c.Spec)
	if err != nil {
		return fmt.Errorf("machine %q: %w", c.Key, err)
	}
	m.APIVersion, m.Kind, m.Spec = GroupVersion.String(), MachineKind, spec
	m.Namespace, m.Name, m.UID, m.ResourceVersion, m.Generation = c.Namespace, c.Name, types.UID(c.UID), c.Version, c.Generation
	m.Labels, m.Annotations = maps.Clone(c.Labels), maps.Clone(c.Annotations)
	m.CreationTimestamp, m.DeletionTimestamp = metav1.NewTime(c.Created), timeRef(c.Deleted)
	setFinalizer(&m.ObjectMeta, c.Finalizer)
	setOwner(&m.ObjectMeta, c.Owner, MachineSetKind)
	return nil
}

func (s *MachineSpec) core() (machine.Spec, error) {
	c, err := s.MachineConfig.core()
	c.ProviderID, c.Adopt, c.Decommission, c.Paused = s.ProviderID, s.Adopt, s.Decommission, s.Paused
	return c, err
}

func specOf(c machine.Spec) (MachineSpec, error) {
	config, err := configOf(c)
	return MachineSpec{MachineConfig: config, ProviderID: c.ProviderID, Adopt: c.Adopt, Decommission: c.Decommission, Paused: c.Paused}, err
}

// core is a spec that has nothing but what machines of one kind have in common.
func (s *MachineConfig) core() (machine.Spec, error) {
	c := machine.Spec{
		Bootstrap: s.Bootstrap.name(), Credentials: s.Credentials.name(), UpdatePolicy: machine.UpdatePolicy(s.UpdatePolicy), Deletion: s.Deletion.core(),
	}
	c.Versions, c.Roles = s.Versions.core(), slices.Clone(s.Roles)
	if s.ProviderConfig != nil {
		c.Config = bytes.Clone(s.ProviderConfig.Raw)
	}
	for _, t := range s.Taints {
		c.Node.Taints = append(c.Node.Taints, provider.Taint{Key: t.Key, Value: string(t.Value), Effect: string(t.Effect)})
	}
	if n := s.NodeMetadata; n != nil {
		c.Node.Labels, c.Node.Annotations = textsOf[string](n.Labels), maps.Clone(n.Annotations)
	}
	if s.ConfigSource != nil {
		var err error
		if c.ConfigSource, err = json.Marshal(s.ConfigSource); err != nil {
			return c, fmt.Errorf("configSource: %w", err)
		}
	}
	return c, checkNames("nodeMetadata", c.Node.Labels, c.Node.Annotations)
}

func configOf(c machine.Spec) (MachineConfig, error) {
	s := MachineConfig{
		Versions: versionsOf(c.Versions), Roles: slices.Clone(c.Roles), Bootstrap: secretOf(c.Bootstrap), Credentials: secretOf(c.Credentials),
		UpdatePolicy: UpdatePolicy(c.UpdatePolicy), Deletion: deletionOf(c.Deletion),
	}
	for _, t := range c.Node.Taints {
		s.Taints = append(s.Taints, Taint{Key: t.Key, Value: LabelValue(t.Value), Effect: TaintEffect(t.Effect)})
	}
	if n := c.Node; len(n.Labels)+len(n.Annotations) > 0 {
		s.NodeMetadata = &NodeMetadata{Labels: textsOf[LabelValue](n.Labels), Annotations: maps.Clone(n.Annotations)}
	}
	if len(c.Config) > 0 {
		if err := json.Unmarshal(c.Config, new(map[string]json.RawMessage)); err != nil {
			return s, fmt.Errorf("config: want a JSON object: %w", err)
		}
		s.ProviderConfig = &runtime.RawExtension{Raw: bytes.Clone(c.Config)}
	}
	if len(c.ConfigSource) > 0 {
		s.ConfigSource = &configv1alpha1.NodeConfigSource{}
		// A source that lost a part would name something else.
		if err := strictjson.Decode(c.ConfigSource, s.ConfigSource); err != nil {
			return s, fmt.Errorf("config source: want a NodeConfigSource in JSON: %w", err)
		}
	}
	return s, nil
}

func (v *Versions) core() (c provider.Versions) {
	if v == nil {
		return c
	}
	c.Kubelet, c.Other = v.Kubelet, maps.Clone(v.Other)
	if v.Runtime != nil {
		c.Runtime = provider.Runtime(*v.Runtime)
	}
	return c
}

func versionsOf(c provider.Versions) *Versions {
	v := &Versions{Kubelet: c.Kubelet}
	if len(c.Other) > 0 {
		v.Other = maps.Clone(c.Other)
	}
	if c.Runtime != (provider.Runtime{}) {
		v.Runtime = (*Runtime)(&c.Runtime)
	}
	if v.Kubelet == "" && v.Runtime == nil && v.Other == nil {
		return nil
	}
	return v
}

func (s *SecretSource) name() string {
	if s == nil {
		return ""
	}
	return s.SecretRef.Name
}

func secretOf(name string) *SecretSource {
	if name == "" {
		return nil
	}
	return &SecretSource{SecretRef{name}}
}

func (d *Deletion) core() (c machine.Deletion) {
	if d == nil {
		return c
	}
	c = machine.Deletion{
		DrainTimeout: duration(d.DrainTimeout), NodeTimeout: duration(d.NodeTimeout), Disks: provider.Mode(d.DiskPolicy), RetainFor: duration(d.RetainFor),
	}
	for _, h := range d.Hooks {
		c.Hooks = append(c.Hooks, machine.Hook{Name: h.Name, Owner: h.Owner, Phase: machine.HookPhase(h.Phase), Timeout: duration(h.Timeout)})
	}
	return c
}

func deletionOf(c machine.Deletion) *Deletion {
	d := &Deletion{
		DrainTimeout: durationRef(c.DrainTimeout), NodeTimeout: durationRef(c.NodeTimeout), DiskPolicy: DiskPolicy(c.Disks), RetainFor: durationRef(c.RetainFor),
	}
	for _, h := range c.Hooks {
		d.Hooks = append(d.Hooks, Hook{Name: h.Name, Owner: h.Owner, Phase: HookPhase(h.Phase), Timeout: durationRef(h.Timeout)})
	}
	if d.DrainTimeout == nil && d.NodeTimeout == nil && d.DiskPolicy == "" && d.RetainFor == nil && d.Hooks == nil {
		return nil
	}
	return d
}
