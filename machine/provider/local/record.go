// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A phase is what is being done with a machine. It is written before it is done.
type phase string

const (
	adopting   phase = "Adopting"   // the disks are moved here from record.From
	starting   phase = "Starting"   // a process may have been started, and may not be in the record yet
	running    phase = "Running"    // record.Process was started
	halting    phase = "Halting"    // is stopped, and goes on as record.Then
	stopped    phase = "Stopped"    // nothing of it runs
	retained   phase = "Retained"   // nothing of it runs, and nothing will
	destroying phase = "Destroying" // nothing of it runs, and its directory is being removed
	broken     phase = "Broken"     // could not be started
)

// A record is what is known of a machine: instance.json in its directory.
type record struct {
	Format int            `json:"format"`
	Token  string         `json:"token"`
	Owner  provider.Owner `json:"owner"`
	// Created is the digest that its Create or Adopt had.
	Created string           `json:"created"`
	Digest  string           `json:"digest"`
	Desired provider.Desired `json:"desired"`
	// Config is that of Desired, with defaults.
	Config   Config  `json:"config"`
	Endpoint string  `json:"endpoint,omitempty"`
	Disks    []disk  `json:"disks,omitempty"`
	Phase    phase   `json:"phase"`
	Then     phase   `json:"then,omitempty"`
	Process  process `json:"process,omitzero"`
	// Since is when it began to halt; Asked means that it was told so by the stop signal.
	Since time.Time `json:"since,omitzero"`
	Asked bool      `json:"asked,omitempty"`
	// Next is an update that is under way.
	Next *change `json:"next,omitempty"`
	// Reboot is the one under way, and Reboots are those that are done, the last ones.
	Reboot  string   `json:"reboot,omitempty"`
	Reboots []string `json:"reboots,omitempty"`
	// From is the token whose disks it was given, and To the one that its disks are being given to.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Until is when it may be destroyed, if it is retained.
	Until   time.Time `json:"until,omitzero"`
	Message string    `json:"message,omitempty"`
}

// A disk is a directory. Its ID stays with it when it is adopted.
type disk struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// A change is what a machine is updated to.
type change struct {
	Digest   string           `json:"digest"`
	Desired  provider.Desired `json:"desired"`
	Config   Config           `json:"config"`
	Endpoint string           `json:"endpoint,omitempty"`
}

// format is that of the records that this version writes. It reads no other one.
const format = 1

// parse reads a record of the machine with that token.
func parse(data []byte, token string) (record, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, fmt.Errorf("record of machine %q: %w", token, err)
	}
	if r.Format != format {
		return record{}, fmt.Errorf("record of machine %q: it has format %d: want %d, so it is another version's", token, r.Format, format)
	}
	if r.Token != token {
		return record{}, fmt.Errorf("record of machine %q: it is that of %q", token, r.Token)
	}
	if !r.Phase.known() || r.Phase == halting && !r.Then.known() || r.Phase == adopting && provider.CheckToken(r.From) != nil {
		return record{}, fmt.Errorf("record of machine %q: phase %q, then %q, from %q, can't be", token, r.Phase, r.Then, r.From)
	}
	if r.To != "" && provider.CheckToken(r.To) != nil {
		return record{}, fmt.Errorf("record of machine %q: its disks can't be given to %q", token, r.To)
	}
	if err := r.Config.Validate(); err != nil {
		return record{}, fmt.Errorf("record of machine %q: %w", token, err)
	}
	return r, nil
}

func (p phase) known() bool {
	switch p {
	case adopting, starting, running, halting, stopped, retained, destroying, broken:
		return true
	}
	return false
}

func (r record) encode() ([]byte, error) {
	r.Format = format
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// deleted reports whether the end of the machine was ordered.
func (r record) deleted() bool {
	return r.Phase == retained || r.Phase == destroying || r.Phase == halting && (r.Then == retained || r.Then == destroying)
}

// kept are the disks as others see them.
func (r record) kept() []provider.Disk {
	var disks []provider.Disk
	for _, d := range r.Disks {
		disks = append(disks, provider.Disk{ID: d.ID})
	}
	return disks
}

// wantDisks adds those of the config that are missing. None is ever taken away.
func (r *record) wantDisks() {
	have := map[string]bool{}
	for _, d := range r.Disks {
		have[d.Name] = true
	}
	for _, name := range r.Config.Disks {
		if !have[name] {
			r.Disks = append(r.Disks, disk{ID: r.Token + "/" + name, Name: name})
		}
	}
}

// halt orders a stop, after which the machine goes on as it says.
func (r *record) halt(then phase, now time.Time) {
	if r.Phase != halting {
		r.Phase, r.Since, r.Asked = halting, now, false
	}
	r.Then = then
}

// takeNext takes over what is being updated to.
func (r *record) takeNext() {
	if r.Next == nil {
		return
	}
	r.Digest, r.Desired, r.Config, r.Endpoint = r.Next.Digest, r.Next.Desired, r.Next.Config, r.Next.Endpoint
	r.Next = nil
	r.wantDisks()
}
