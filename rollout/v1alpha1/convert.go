// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/belayproject/belay/rollout/protocol"
)

// ShadowOf is what the protocol sees of a NodeShadow.
func ShadowOf(s *NodeShadow) protocol.Shadow {
	if s == nil {
		return protocol.Shadow{}
	}
	return protocol.Shadow{Node: s.Name, UID: s.Spec.NodeUID, Orders: OrdersOf(s.Spec), Report: ReportOf(s.Status)}
}

// OrdersOf is what the protocol sees of a spec.
func OrdersOf(s NodeShadowSpec) protocol.Orders {
	return protocol.Orders{
		Stage: s.Stage.String(), Revision: s.Revision.String(), Revert: s.Revert,
		Grant: protocol.Attempt(s.Grant), Revoked: protocol.Attempt(s.Revoked), Proceed: protocol.Attempt(s.Proceed), Undo: protocol.Attempt(s.Undo),
	}
}

// SetOrders makes o the orders of the spec, and leaves the rest of it as it is.
func (s *NodeShadowSpec) SetOrders(o protocol.Orders) {
	s.Stage, s.Revision, s.Revert = RefOf(o.Stage), RefOf(o.Revision), o.Revert
	s.Grant, s.Revoked, s.Proceed, s.Undo = int64(o.Grant), int64(o.Revoked), int64(o.Proceed), int64(o.Undo)
}

// ReportOf is what the protocol sees of a status.
func ReportOf(s NodeShadowStatus) protocol.Report {
	return protocol.Report{
		Staged: s.Staged.String(), Attempt: protocol.Attempt(s.Attempt), Phase: protocol.Phase(s.Phase), Revision: s.Revision.String(),
		Broken: s.Broken, Known: s.Known,
	}
}

// SetReport makes r the report of the status, and leaves what else the agent says as it is.
func (s *NodeShadowStatus) SetReport(r protocol.Report) {
	s.Staged, s.Attempt, s.Phase, s.Revision = RefOf(r.Staged), int64(r.Attempt), Phase(r.Phase), RefOf(r.Revision)
	s.Broken, s.Known = r.Broken, r.Known
}

// RefOf reads "name@digest", or a name alone. Nothing is nil. A text that has another form becomes a name, which the API server refuses.
func RefOf(text string) *RevisionRef {
	if text == "" {
		return nil
	}
	name, digest, _ := strings.Cut(text, "@")
	if r := (&RevisionRef{Name: name, Digest: digest}); r.String() == text {
		return r
	}
	return &RevisionRef{Name: text}
}

// String is "name@digest", as the protocol spells it; the name alone if nothing is pinned. Nil is empty.
func (r *RevisionRef) String() string {
	switch {
	case r == nil:
		return ""
	case r.Digest == "":
		return r.Name
	}
	return r.Name + "@" + r.Digest
}

// LedgerOf is the ledger that the spec holds.
func LedgerOf(s DisruptionLedgerSpec) protocol.Ledger {
	l := protocol.Ledger{Epoch: protocol.Attempt(s.Epoch), Fence: protocol.Attempt(s.Fence)}
	for _, c := range s.Closures {
		l.Closures = append(l.Closures, protocol.Closure(c))
	}
	for _, o := range s.Slots {
		l.Slots = append(l.Slots, protocol.Slot{
			Node: o.Node, UID: o.UID, Attempt: protocol.Attempt(o.Attempt), Rollout: o.Rollout, Keys: slices.Clone(o.Keys), State: protocol.SlotState(o.State),
		})
	}
	return l
}

// LedgerSpecOf is the spec that holds a ledger.
func LedgerSpecOf(l protocol.Ledger) DisruptionLedgerSpec {
	s := DisruptionLedgerSpec{Epoch: int64(l.Epoch), Fence: int64(l.Fence), Count: int64(len(l.Slots))}
	for _, c := range l.Closures {
		s.Closures = append(s.Closures, Closure(c))
	}
	for _, o := range l.Slots {
		s.Slots = append(s.Slots, Slot{
			Node: o.Node, UID: o.UID, Attempt: int64(o.Attempt), Rollout: o.Rollout, Keys: slices.Clone(o.Keys), State: SlotState(o.State),
		})
	}
	return s
}

// Ref names the revision and its content.
func (r *Revision) Ref() RevisionRef { return RevisionRef{Name: r.Name, Digest: r.Spec.Digest} }

// OpaqueDigest is the digest of an opaque content.
func OpaqueDigest(opaque string) string {
	sum := sha256.Sum256([]byte(opaque))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Check reports a digest that is not that of the content, which the API server can't see. Of a config it is as good as the reference, which
// whoever fetches the ConfigMap checks.
func (s *RevisionSpec) Check() error {
	want := OpaqueDigest(s.Opaque)
	if s.ConfigMapRef != nil {
		want = s.ConfigMapRef.Digest
	}
	if s.Digest != want {
		return fmt.Errorf("spec.digest is %q, the content has %q", s.Digest, want)
	}
	return nil
}
