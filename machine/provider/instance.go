// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import "time"

// A State is what an instance does.
type State string

// States of an [Instance].
const (
	// Pending is being made; there may be no ProviderID yet.
	Pending State = "Pending"
	// Running was started. Whether it has joined is for its Node to say.
	Running State = "Running"
	// Stopping is being deleted.
	Stopping State = "Stopping"
	// Stopped holds its disks, does not run, and can be started again.
	Stopped State = "Stopped"
	// Retained was deleted with [Retain]: disks and tags alone are left.
	Retained State = "Retained"
	// Broken can't become Running any more, as after a failed start. It still holds resources.
	Broken State = "Broken"
)

// Alive reports whether the instance runs or may come to run by itself: everything but Stopped and Retained.
func (s State) Alive() bool { return s != Stopped && s != Retained }

// An Instance is what a provider has made for one token.
type Instance struct {
	Token string `json:"token"`
	// ProviderID is as in Node.spec.providerID. Its last path segment is the token.
	ProviderID string `json:"providerID,omitempty"`
	Owner      Owner  `json:"owner"`
	State      State  `json:"state"`
	// Digest is that of what the instance was made of, or was last updated to.
	Digest    string    `json:"digest,omitempty"`
	Addresses []Address `json:"addresses,omitempty"`
	Disks     []Disk    `json:"disks,omitempty"`
	// Until is that of the [DeleteRequest] that retained it.
	Until time.Time `json:"until,omitzero"`
	// Message says why it is in its state, without secrets.
	Message string `json:"message,omitempty"`
}

// An Address is one of a Node: Type is a corev1.NodeAddressType, as "InternalIP".
type Address struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// A Disk holds data of an instance.
type Disk struct {
	ID string `json:"id"`
	// Bytes is its size, 0 where that is not known.
	Bytes int64 `json:"bytes,omitempty"`
}

// Ref returns the reference of the instance.
func (i Instance) Ref() Ref { return Ref{Token: i.Token, ProviderID: i.ProviderID} }
