// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Verb is a kind of request.
type Verb string

// The verbs. AnyWrite stands, in a [Fault], for those that change something: Evict, Delete and PatchNode.
const (
	Evict     Verb = "Evict"
	Delete    Verb = "Delete"
	PatchNode Verb = "PatchNode"
	GetNode   Verb = "GetNode"
	ListPods  Verb = "ListPods"
	Renew     Verb = "Renew"
	AnyWrite  Verb = "AnyWrite"
)

// A Call is one request that reached the server, or would have.
type Call struct {
	Verb Verb
	// Object is the node's name, or the pod's as namespace/name.
	Object string
	// UID is the precondition.
	UID                types.UID
	GracePeriodSeconds *int64
	DryRun             bool
	// Patch is that of PatchNode, Status whether it was for the status.
	Patch  string
	Status bool
	// Started is when it was sent, Answered when the caller had its answer.
	Started, Answered time.Time
	// Err is the answer. Wrote says whether the server has carried it out, which the caller may not know.
	Err   error
	Wrote bool
}

// String is one line for a failure message.
func (c Call) String() string {
	s := fmt.Sprintf("%s %s %s", c.Answered.Format(time.TimeOnly), c.Verb, c.Object)
	if c.UID != "" {
		s += " uid=" + string(c.UID)
	}
	if c.Patch != "" {
		s += " " + c.Patch
	}
	if c.Err != nil {
		return s + ": " + c.Err.Error()
	}
	return s + ": ok"
}
