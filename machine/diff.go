// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// A Difference is one field in which two machines differ.
type Difference struct {
	// Path is as in YAML, like "spec.versions.kubelet".
	Path string
	// A and B are the values; of data that may be long or secret, its length and digest. Empty where there is none.
	A, B string
}

// String returns "path: A -> B".
func (d Difference) String() string { return fmt.Sprintf("%s: %q -> %q", d.Path, d.A, d.B) }

// Diff returns what is wanted of one machine and not of the other, in the order of the paths. It compares what means the same in every cluster and
// cloud. What a machine is in one of them alone is left out: its name and owner, the provider's config, ProviderID, Adopt, what somebody has asked of
// it for the moment by an annotation of this group, and the status. So a machine and its copy in another cluster show no difference.
func Diff(a, b Machine) []Difference {
	d := &differ{}
	d.maps("metadata.labels", portable(a.Labels), portable(b.Labels))
	d.maps("metadata.annotations", portable(a.Annotations), portable(b.Annotations))
	d.desired(a.Spec.Desired, b.Spec.Desired)
	d.spec(a.Spec, b.Spec)
	d.deletion(a.Spec.Deletion, b.Spec.Deletion)
	slices.SortFunc(d.found, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
	return d.found
}

// portable leaves out labels and annotations that belong to one cluster: those that sets, checks and people put there for the moment, and what
// kubectl applied last.
func portable(m map[string]string) map[string]string {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(k, _ string) bool {
		return strings.HasPrefix(k, "machine.belay.dev/") || k == DeleteAnnotation || k == DeploymentLabel ||
			k == "kubectl.kubernetes.io/last-applied-configuration"
	})
	return m
}

type differ struct{ found []Difference }

func (d *differ) text(path, a, b string) {
	if a != b {
		d.found = append(d.found, Difference{path, a, b})
	}
}

func (d *differ) maps(path string, a, b map[string]string) {
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			d.found = append(d.found, Difference{path + "[" + k + "]", v, w})
		}
	}
	for k, w := range b {
		if _, ok := a[k]; !ok {
			d.found = append(d.found, Difference{path + "[" + k + "]", "", w})
		}
	}
}

// sets compares lists whose order means nothing.
func (d *differ) sets(path string, a, b []string) {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	if !slices.Equal(a, b) {
		d.found = append(d.found, Difference{path, strings.Join(a, ","), strings.Join(b, ",")})
	}
}

func (d *differ) desired(a, b provider.Desired) {
	d.text("spec.versions.kubelet", a.Versions.Kubelet, b.Versions.Kubelet)
	d.text("spec.versions.runtime.name", a.Versions.Runtime.Name, b.Versions.Runtime.Name)
	d.text("spec.versions.runtime.version", a.Versions.Runtime.Version, b.Versions.Runtime.Version)
	d.maps("spec.versions.other", a.Versions.Other, b.Versions.Other)
	d.sets("spec.roles", a.Roles, b.Roles)
	d.maps("spec.node.labels", a.Node.Labels, b.Node.Labels)
	d.maps("spec.node.annotations", a.Node.Annotations, b.Node.Annotations)
	d.sets("spec.node.taints", taintWords(a.Node.Taints), taintWords(b.Node.Taints))
}

// taintWords writes taints as kubectl does.
func taintWords(taints []provider.Taint) []string {
	var words []string
	for _, t := range taints {
		words = append(words, t.Key+"="+t.Value+":"+t.Effect)
	}
	return words
}

func (d *differ) spec(a, b Spec) {
	d.text("spec.bootstrap", a.Bootstrap, b.Bootstrap)
	d.text("spec.credentials", a.Credentials, b.Credentials)
	d.text("spec.configSource", dataWords(a.ConfigSource), dataWords(b.ConfigSource))
	d.text("spec.updatePolicy", string(cmp.Or(a.UpdatePolicy, ProviderDecides)), string(cmp.Or(b.UpdatePolicy, ProviderDecides)))
	d.text("spec.decommission", strconv.FormatBool(a.Decommission), strconv.FormatBool(b.Decommission))
	d.text("spec.paused", strconv.FormatBool(a.Paused), strconv.FormatBool(b.Paused))
}

func dataWords(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%d bytes, sha256:%s", len(data), hex.EncodeToString(sum[:8]))
}

func (d *differ) deletion(a, b Deletion) {
	d.text("spec.deletion.drainTimeout", a.DrainTimeout.String(), b.DrainTimeout.String())
	d.text("spec.deletion.nodeTimeout", or(a.NodeTimeout, DefaultNodeTimeout).String(), or(b.NodeTimeout, DefaultNodeTimeout).String())
	d.text("spec.deletion.disks", string(cmp.Or(a.Disks, provider.Retain)), string(cmp.Or(b.Disks, provider.Retain)))
	d.text("spec.deletion.retainFor", a.RetainFor.String(), b.RetainFor.String())
	d.sets("spec.deletion.hooks", hookWords(a.Hooks), hookWords(b.Hooks))
}

func hookWords(hooks []Hook) []string {
	var words []string
	for _, h := range hooks {
		words = append(words, fmt.Sprintf("%s/%s of %s within %s", h.Phase, h.Name, h.Owner, h.Timeout))
	}
	return words
}
