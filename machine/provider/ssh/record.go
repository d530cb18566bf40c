// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/internal/strictjson"
	"github.com/belayproject/belay/machine/provider"
)

// A phase is what is being done with a host. It is written before it is done.
type phase string

const (
	free      phase = ""          // there is no claim
	reserved  phase = "Reserved"  // for a token; nothing was done
	starting  phase = "Starting"  // bootstrap, or start after a reboot
	running   phase = "Running"   // it was started
	updating  phase = "Updating"  // to record.Next
	rebooting phase = "Rebooting" // the host is asked to; record.Boot is the ID of the boot before
	halting   phase = "Halting"   // is stopped, and goes on as record.Then
	stopped   phase = "Stopped"   // nothing of it runs
	retained  phase = "Retained"  // nothing of it runs, and nothing will
	cleaning  phase = "Cleaning"  // nothing of it runs, and its data is being wiped
	dirty     phase = "Dirty"     // cleaning has failed
	broken    phase = "Broken"    // could not be started
)

// A kind of step is the script that it runs.
type kind string

const (
	bootstrapStep kind = "bootstrap"
	updateStep    kind = "update"
	startStep     kind = "start"
	stopStep      kind = "stop"
	cleanupStep   kind = "cleanup"
	rebootStep    kind = "reboot"
)

// kindOf is the step that belongs to a phase; that of starting may also be [startStep].
func kindOf(p phase) kind {
	switch p {
	case updating:
		return updateStep
	case rebooting:
		return rebootStep
	case halting:
		return stopStep
	case cleaning:
		return cleanupStep
	default:
		return bootstrapStep
	}
}

// A step is a script that was ordered. The ID is written before it is begun; "" is none that could have begun.
type step struct {
	ID   string `json:"id,omitempty"`
	Kind kind   `json:"kind,omitempty"`
}

// A spec is what a machine is.
type spec struct {
	Token string         `json:"token"`
	Owner provider.Owner `json:"owner"`
	// Created is the digest that its Create or Adopt had.
	Created string           `json:"created"`
	Digest  string           `json:"digest"`
	Desired provider.Desired `json:"desired"`
	// Config is that of Desired, with defaults.
	Config   Config `json:"config"`
	Endpoint string `json:"endpoint,omitempty"`
	// From is the token that it was adopted from.
	From string `json:"from,omitempty"`
}

// A record is a claim: claim.json on a host.
type record struct {
	Format int `json:"format"`
	// Serial is another one at each write.
	Serial string `json:"serial"`
	Host   string `json:"host"`
	Phase  phase  `json:"phase"`
	spec
	// Next is what it is being updated to, or, with another token, what is adopting it.
	Next *spec `json:"next,omitempty"`
	Step step  `json:"step,omitzero"`
	Then phase `json:"then,omitempty"`
	// Until is that of the order to retain it.
	Until time.Time `json:"until,omitzero"`
	// Boot is the ID of the boot that is to end by Reboot. Reboots are those that are done, the last ones.
	Boot    string   `json:"boot,omitempty"`
	Reboot  string   `json:"reboot,omitempty"`
	Reboots []string `json:"reboots,omitempty"`
	Message string   `json:"message,omitempty"`
}

// format is that of the claims that this version writes. It reads no other one.
const format = 1

// maxReboots is how many IDs of reboots are remembered.
const maxReboots = 64

// parse reads the claim of a host. Hosts are not believed.
func parse(data []byte, host string) (record, error) {
	var r record
	if err := strictjson.Decode(data, &r); err != nil {
		return record{}, fmt.Errorf("the claim is no claim: %w", err)
	}
	if bytes.HasSuffix(data, []byte("\n")) {
		return record{}, fmt.Errorf("the claim has %d bytes, and not all of them are of one JSON object", len(data))
	}
	return r, r.check(host)
}

func (r record) check(host string) error {
	known := []phase{reserved, starting, running, updating, rebooting, halting, stopped, retained, cleaning, dirty, broken}
	switch {
	case r.Format != format:
		return fmt.Errorf("the claim has format %d: want %d", r.Format, format)
	case r.Host != host:
		return fmt.Errorf("the claim is of host %q: want %q: a host keeps its name", r.Host, host)
	case !slices.Contains(known, r.Phase):
		return fmt.Errorf("the claim has phase %q: want one of %q", r.Phase, known)
	case r.Serial == "" || r.Owner.Cluster == "" && r.Owner.UID == "" && r.Owner.Name == "":
		return fmt.Errorf("the claim has no serial or no owner")
	case r.Step.ID != "" && provider.CheckToken(r.Step.ID) != nil:
		return fmt.Errorf("the claim has step %q, which is no ID", r.Step.ID)
	}
	if err := provider.CheckToken(r.Token); err != nil {
		return err
	}
	return r.checkNext()
}

// checkNext checks what is said of what comes next.
func (r record) checkNext() error {
	if r.Phase == halting && !slices.Contains([]phase{stopped, retained, cleaning}, r.Then) {
		return fmt.Errorf("the claim goes on as %q: want Stopped, Retained or Cleaning", r.Then)
	}
	if r.Phase == updating && (r.Next == nil || r.Next.Token != r.Token) {
		return fmt.Errorf("the claim is being updated and does not say to what")
	}
	if r.Next == nil {
		return nil
	}
	return provider.CheckToken(r.Next.Token)
}

// encode gives the record a new serial. It is one line.
func (r *record) encode(serial string) (string, error) {
	r.Format, r.Serial = format, serial
	data, err := json.Marshal(r)
	return string(data), err
}

// adoption is what a token is adopting the host for, or nil.
func (r record) adoption() *spec {
	if r.Next != nil && r.Next.Token != r.Token {
		return r.Next
	}
	return nil
}

// of reports whether the claim is for a token, also one that is not committed.
func (r record) of(token string) bool {
	a := r.adoption()
	return r.Token == token || a != nil && a.Token == token
}

// committed reports whether a token's machine is there: something may have been done for it.
func (r record) committed(token string) bool { return r.Token == token && r.Phase != reserved }

// deleted reports whether the machine will not run any more.
func (r record) deleted() bool {
	return r.Phase == retained || r.Phase == cleaning || r.Phase == dirty || r.Phase == halting && r.Then != stopped
}

// takes reports whether a digest is that of the machine, or the one that it is being updated to.
func (s spec) takes(digest string) bool { return digest == s.Digest || digest == s.Created }

func (r record) takes(digest string) bool {
	return r.spec.takes(digest) || r.Next != nil && r.adoption() == nil && digest == r.Next.Digest
}
