// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/option"
)

// MarkAnnotation holds, on a Node, who has cordoned it, why, since when, and what it was before: JSON, written only together with
// the cordon that it speaks of.
const MarkAnnotation = "drain.belay.dev/cordon"

// outOfServiceTaint makes the cluster force pods and volumes off a node that is off.
const outOfServiceTaint = "node.kubernetes.io/out-of-service"

// A mark is the content of [MarkAnnotation].
type mark struct {
	// Unschedulable is what the node was before its first holder.
	Unschedulable bool `json:"unschedulable"`
	// Cordoned is when a holder last cordoned the node. CordonedBy is the field manager of that write, as soon as it is
	// known: by it the cordon of a holder is told from one that another client has set since.
	Cordoned   time.Time `json:"cordoned,omitzero"`
	CordonedBy string    `json:"cordonedBy,omitempty"`
	Holders    []holder  `json:"holders"`
	extra      map[string]json.RawMessage
}

// A holder is one entry of a mark.
type holder struct {
	Holder      string    `json:"holder"`
	Maintenance string    `json:"maintenance,omitempty"`
	Run         string    `json:"run,omitempty"` // see Request.Run
	Mode        Mode      `json:"mode"`
	Since       time.Time `json:"since"`
	// Drained latches the result; Forced says that budgets were passed on the way.
	Drained time.Time `json:"drained,omitzero"`
	Forced  bool      `json:"forced,omitempty"`
	// Until ends a hold; Abandoned says that this came before its time.
	Until     time.Time `json:"until,omitzero"`
	Abandoned bool      `json:"abandoned,omitempty"`
	// Released is when the node was given back and its watch began: such a holder holds nothing. Frozen says what went wrong then.
	Released time.Time `json:"released,omitzero"`
	Frozen   string    `json:"frozen,omitempty"`
	// Recalls: it was given back, is not watched, and is here until its responders were told.
	Recalls bool `json:"recalls,omitempty"`
	// OutOfService says that the taint is ours to remove.
	OutOfService bool `json:"outOfService,omitempty"`
	// Hooks names the responders of the policy's rules: a later process that releases the node does not have that policy.
	Hooks []string `json:"hooks,omitempty"`
	extra map[string]json.RawMessage
}

// markOf reads the mark of a node. A node without one has the zero mark.
func markOf(node *corev1.Node) (mark, error) {
	text, ok := node.Annotations[MarkAnnotation]
	if !ok {
		return mark{}, nil
	}
	var m mark
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return mark{}, fmt.Errorf("reading annotation %q of node %q: it must be the JSON object that a drain has written; restore it, or remove it and uncordon the node by hand: %w",
			MarkAnnotation, node.Name, err)
	}
	return m, nil
}

// HoldersOf returns the holders that a Node's mark names, in its order: those that have cordoned it, and those that
// watch it after its return. A Node without a mark has none. An error says that the mark is not what a drain
// writes, or that node is nil.
func HoldersOf(node *corev1.Node) ([]string, error) {
	if err := option.CheckRequired("drain.HoldersOf", "node", node, "see Cache.Node"); err != nil {
		return nil, err
	}
	m, err := markOf(node)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(m.Holders))
	for i := range m.Holders {
		names[i] = m.Holders[i].Holder
	}
	return names, nil
}

// of returns the entry of a holder, or nil.
func (m mark) of(name string) *holder {
	for i := range m.Holders {
		if m.Holders[i].Holder == name {
			return &m.Holders[i]
		}
	}
	return nil
}

// held reports whether anybody holds the cordon; those who only watch do not.
func (m mark) held() bool {
	return slices.ContainsFunc(m.Holders, func(h holder) bool { return h.Released.IsZero() })
}

// with returns m with the holder's entry added or replaced.
func (m mark) with(h holder) mark {
	holders := slices.DeleteFunc(slices.Clone(m.Holders), func(o holder) bool { return o.Holder == h.Holder })
	m.Holders = append(holders, h)
	return m
}

// without returns m without the holder's entry.
func (m mark) without(name string) mark {
	holders := slices.DeleteFunc(slices.Clone(m.Holders), func(o holder) bool { return o.Holder == name })
	m.Holders = holders
	return m
}

// A nodeChange is one write to a Node. It is decided on the node as it was read, and fails where that has changed since.
type nodeChange struct {
	mark          mark
	unschedulable *bool
	taints        *[]corev1.Taint
	conditions    []corev1.NodeCondition // the whole list; only with the status subresource
	anyVersion    bool                   // also where the node has changed since it was read; the mark is left as it is
	annotations   map[string]*string     // of others; nil values are removed
}

// cordonWith enters the holder: mark and cordon in one write. What the node was before is kept from the first holder
// on, as long as the cordon of that time is on the node: an open node was opened since, and a cordon that another
// client has set since was there before this holder.
func cordonWith(node *corev1.Node, m mark, h holder, now time.Time) nodeChange {
	switch {
	case !node.Spec.Unschedulable:
		m.Unschedulable, m.Cordoned, m.CordonedBy = false, now, ""
	case !m.held() || m.cordonReplaced(node):
		m.Unschedulable = true
	}
	yes := true
	return nodeChange{mark: m.with(h), unschedulable: &yes}
}

// completeEntry fills in what the request says of an entry, and what stays of the holder's earlier one.
func completeEntry(h holder, r Request, earlier *holder, now time.Time) holder {
	h.Holder, h.Maintenance, h.Run, h.Since = r.Holder, r.Maintenance, r.Run, now
	if h.Mode == Drain {
		h.Hooks = r.Policy.responders()
	}
	if earlier != nil { // a freeze stands until Resume
		h.OutOfService, h.Frozen, h.extra = earlier.OutOfService, earlier.Frozen, earlier.extra
	}
	return h
}

// fieldOwners are the field managers, by the managedFields of a Node, that own its cordon and its mark. Of a Node
// without managedFields, and of a cache that drops them, none is known.
func fieldOwners(node *corev1.Node) (cordon, mark []string) {
	for i := range node.ManagedFields {
		entry := &node.ManagedFields[i]
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		var fields struct {
			Spec     map[string]json.RawMessage `json:"f:spec"`
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal([]byte(entry.FieldsV1.String()), &fields) != nil {
			continue
		}
		if _, ok := fields.Spec["f:unschedulable"]; ok {
			cordon = append(cordon, entry.Manager)
		}
		if _, ok := fields.Metadata.Annotations["f:"+MarkAnnotation]; ok {
			mark = append(mark, entry.Manager)
		}
	}
	return cordon, mark
}

// sharedOwners are the field managers under which the API server gathers the fields of several clients.
var sharedOwners = []string{"ancient-changes", "before-first-apply"}

// cordonReplaced reports whether the cordon on the node is not the one that the mark speaks of: another client has
// opened the node and cordoned it again. A holder's cordon has the owner that the mark names. Where the mark names
// none yet, it has an owner of the mark, since both are one write. Without evidence the mark is believed.
func (m mark) cordonReplaced(node *corev1.Node) bool {
	cordon, owners := fieldOwners(node)
	if m.CordonedBy != "" {
		owners = []string{m.CordonedBy}
	}
	isOurs := func(by string) bool { return slices.Contains(owners, by) || slices.Contains(sharedOwners, by) }
	return len(cordon) > 0 && len(owners) > 0 && !slices.ContainsFunc(cordon, isOurs)
}

// withOwner names the owner of a holder's cordon, which tells it from others also when another holder's client has
// written the mark.
func (m mark) withOwner(node *corev1.Node) mark {
	if m.CordonedBy != "" || m.Unschedulable || !m.held() || m.cordonReplaced(node) {
		return m
	}
	cordon, owners := fieldOwners(node)
	isOurs := func(by string) bool { return slices.Contains(owners, by) && !slices.Contains(sharedOwners, by) }
	if i := slices.IndexFunc(cordon, isOurs); i >= 0 {
		m.CordonedBy = cordon[i]
	}
	return m
}

// releaseOf takes the holder out, or leaves it watching. The last one out gives back what the first one found, but
// for a cordon that another client has set since.
func releaseOf(node *corev1.Node, m mark, name string, watching *holder) nodeChange {
	c := nodeChange{mark: m.without(name)}
	if watching != nil {
		c.mark = m.with(*watching)
	}
	if m.of(name).OutOfService {
		rest := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == outOfServiceTaint })
		c.taints = &rest
	}
	if m.opensNode(node, c.mark) && !m.cordonReplaced(node) {
		no := false
		c.unschedulable = &no
	}
	return c
}

// opensNode reports whether the node is to be schedulable after the mark has become rest.
func (m mark) opensNode(node *corev1.Node, rest mark) bool {
	return m.held() && !rest.held() && node.Spec.Unschedulable && !m.Unschedulable
}

// outOfServiceBy taints the node and records that the taint is the holder's.
func outOfServiceBy(node *corev1.Node, m mark, h holder) nodeChange {
	h.OutOfService = true
	taints := append(slices.Clone(node.Spec.Taints), corev1.Taint{Key: outOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	return nodeChange{mark: m.with(h), taints: &taints}
}

// patch renders the change as a JSON merge patch that the server refuses if the node is not the one that was read.
func (c nodeChange) patch(node *corev1.Node) ([]byte, error) {
	var annotation *string
	if len(c.mark.Holders) > 0 {
		text, err := json.Marshal(c.mark)
		if err != nil {
			return nil, fmt.Errorf("writing the mark of node %q: %w", node.Name, err)
		}
		s := string(text)
		annotation = &s
	}
	meta := map[string]any{"uid": node.UID}
	if !c.anyVersion {
		meta["resourceVersion"] = node.ResourceVersion
		all := map[string]*string{}
		maps.Copy(all, c.annotations)
		all[MarkAnnotation] = annotation
		meta["annotations"] = all
	}
	patch := map[string]any{"metadata": meta}
	spec := map[string]any{}
	if c.unschedulable != nil {
		spec["unschedulable"] = *c.unschedulable
	}
	if c.taints != nil {
		spec["taints"] = *c.taints
	}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	if c.conditions != nil {
		patch["status"] = map[string]any{"conditions": c.conditions}
	}
	return json.Marshal(patch)
}

// frozenBy names the first node, in the order given, whose return froze the holder's fleet.
func frozenBy(nodes []*corev1.Node, name string) (node, message string) {
	for _, n := range nodes {
		// Every pass looks at every node: only a mark that says so is worth decoding.
		if !strings.Contains(n.Annotations[MarkAnnotation], `"frozen"`) {
			continue
		}
		m, err := markOf(n)
		if err != nil {
			continue
		}
		if h := m.of(name); h != nil && h.Frozen != "" {
			return n.Name, h.Frozen
		}
	}
	return "", ""
}

// A key is one holder's business with one node.
type key struct {
	node, holder string
}

// uidOf is the Node that a request means, as far as anybody knows.
func uidOf(r Request, remembered types.UID) types.UID {
	switch {
	case r.NodeUID != "":
		return r.NodeUID
	case remembered != "":
		return remembered
	case r.Last != nil && r.Last.Maintenance == r.Maintenance:
		return r.Last.NodeUID
	}
	return ""
}
