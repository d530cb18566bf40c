// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"encoding/json"
	"fmt"

	"github.com/belayproject/belay/internal/strictjson"
	"github.com/belayproject/belay/rollout/protocol"
)

// recordStream is the record of an agent on its [Disk].
const recordStream = "rollout-attempt"

// format is what the record means. A record of another one is not read.
const format = 1

// A record is all that must outlive the agent, in one write.
type record struct {
	Format int `json:"format"`
	// UID is that of the Node's incarnation whose shadow Status was meant for.
	UID string `json:"uid"`
	// Status is the last one that was tried to be stored; its Report is what the protocol calls the disk.
	Status Status `json:"status"`
	// Key names the attempt to the updater; Revert is as it was ordered at the commit.
	Key    string `json:"key,omitempty"`
	Revert bool   `json:"revert,omitempty"`
	// Boot is the boot in which the intent to apply was recorded, Back the one in which that to go back after a failed verification was.
	Boot string `json:"boot,omitempty"`
	Back string `json:"back,omitempty"`
	// Trial is how far the verification is.
	Trial trial `json:"trial"`
	// Why is the reason of the phase at hand.
	Why why `json:"why"`
}

// why is a reason for people.
type why struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func decodeRecord(payload []byte) (record, error) {
	var r record
	if err := strictjson.Decode(payload, &r); err != nil { // a newer agent may mean something by a field that is unknown
		return record{}, fmt.Errorf("decoding the record %q: %w", recordStream, err)
	}
	if r.Format != format {
		return record{}, fmt.Errorf("decoding the record %q: format is %d, want %d", recordStream, r.Format, format)
	}
	return r, nil
}

func (r record) encode() ([]byte, error) {
	r.Format = format
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the record %q: %w", recordStream, err)
	}
	return payload, nil
}

// of is the record of the attempt that the shadow speaks of, after what the disk knew better was told. Where the disk knows nothing of that attempt
// the shadow is all that is left: what has begun of it counts as begun in another boot.
func (r record) of(sh Shadow) record {
	if !r.isOf(sh) {
		k := sh.Status.Report.Attempt
		return record{
			Format: format, UID: sh.UID, Status: sh.Status, Key: keyOf(sh.UID, k), Revert: sh.Orders.Revert && sh.Orders.Grant == k,
			Why: why{sh.Status.Reason, sh.Status.Message},
		}
	}
	r.Status.Report = sh.Status.Report
	return r
}

// isOf reports whether the record is of the attempt that the shadow speaks of.
func (r record) isOf(sh Shadow) bool {
	return r.UID == sh.UID && r.Status.Report.Attempt == sh.Status.Report.Attempt
}

// isQuick reports whether the shadow need not be told that the attempt begins: it takes no boot, which would hide for how long the node is away, and
// does not go back.
func (r record) isQuick() bool {
	switch r.Status.Disruption {
	case DisruptionNone, DisruptionRestart, DisruptionDrain:
		return !r.Revert
	}
	return false // nobody knows, or the worst
}

// report is what the disk has to say to this shadow. What another incarnation of the Node was granted is of no interest, unless the node is not at
// rest since. Its number is made one of the new shadow's ledger, which knows nothing of the old one's.
func (r record) report(sh protocol.Shadow) protocol.Report {
	rep := r.Status.Report
	switch {
	case r.UID == "" || r.UID == sh.UID:
	case rep.Phase.AtRest() || rep.Phase == protocol.PhaseCommitted:
		rep = protocol.Report{Staged: rep.Staged}
	default:
		rep.Attempt = min(rep.Attempt, sh.Orders.Revoked)
	}
	return rep
}

// target is what the attempt is to bring the node to.
func (r record) target() protocol.Revision {
	return protocol.ParseRevision(r.Status.Report.Revision)
}

// attempt is what the updater is told of the attempt, and goingBack of the way back after a failed verification.
func (r record) attempt() Attempt {
	return Attempt{Key: r.Key, Revision: r.target(), Revert: r.Revert}
}

func (r record) goingBack() Attempt {
	return Attempt{Key: r.Key, Revision: r.Status.From, Revert: true}
}

func keyOf(uid string, k protocol.Attempt) string { return fmt.Sprintf("%s-%d", uid, k) }
