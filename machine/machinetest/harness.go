// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A Harness connects the suite with a provider. New, Config and Inventory are required. All else may be left out: rules that need it are skipped,
// and the report says so.
type Harness struct {
	// Name is that of the provider in the report.
	Name string

	// New returns a client of the provider under test. Each call is another process: it shares nothing with the others but the backend.
	New func(ctx context.Context) (provider.Provider, error)
	// Config is a valid [provider.Desired.Config].
	Config []byte
	// OtherConfig is another valid one, for conflicts and updates.
	OtherConfig []byte
	// UnknownField is Config with a field that the provider does not know; nil: Config with one more field, if it is a JSON object.
	UnknownField []byte
	// Undecodable is a config that makes no sense; nil: a JSON object that ends early.
	Undecodable []byte
	// Zones are valid configs, each in another zone.
	Zones [][]byte
	// Desired is the rest of what is desired of each instance. Its Config is not used.
	Desired provider.Desired
	// Updates are what instances of Config are updated to; nil: OtherConfig.
	Updates []provider.Desired
	// Join is given to each instance, with a secret of the suite's own added to Bootstrap and to Credentials under the key "canary".
	Join provider.Join

	// Inventory counts all that the backend holds, without asking the provider.
	Inventory func(ctx context.Context) (Inventory, error)
	// Clean empties the backend. It is called after each rule, when what was left has been counted.
	Clean func(ctx context.Context) error
	// Running reports whether an instance runs, also one that was deleted. It does not ask the provider.
	Running func(ctx context.Context, ref provider.Ref) (bool, error)
	// Boots is how often an instance was started.
	Boots func(ctx context.Context, ref provider.Ref) (int, error)
	// WriteSentinel writes data to the disks of a running instance.
	WriteSentinel func(ctx context.Context, i provider.Instance, data []byte) error
	// ReadSentinel reads it back, also from a retained instance. It is empty if there is none, or no disk.
	ReadSentinel func(ctx context.Context, i provider.Instance) ([]byte, error)

	// Crash makes a call in a process that dies at a point of it, and reports whether it did: false means that the call has come to its end
	// before that point. Point 0 is the first; the last should be between the effect and the reply.
	Crash func(ctx context.Context, c Call, point int) (died bool, err error)
	// Inject begins a fault and returns what ends it, or nil if it can't be injected.
	Inject func(f Fault) (end func())

	// Forgets says why the provider can't know tokens that were used up; "" if it can.
	Forgets string
	// Many is how many instances the rule about long lists makes. 0 is 1000; less than 0 skips it.
	Many int
	// Wait is how long an instance takes at most to start, to be updated or to be deleted. 0 is 30 seconds.
	Wait time.Duration
	// Skips are the names of the rules that are known to be skipped. With it [Run] fails if another one is skipped, or one of these is not; nil
	// makes each rule that is skipped a skipped test.
	Skips []string
	// Report is the file to which [Run] writes the report, as JSON; "" is none.
	Report string
}

// An Inventory is what a backend holds.
type Inventory struct {
	// Instances are those that are not retained: pending, running, stopped and broken ones.
	Instances int
	// Disks hold data, those of retained instances included.
	Disks int
}

// A Fault is one of the backend or of the way to it. It lasts until it is ended.
type Fault string

// Faults. A harness injects those that its backend can have.
const (
	// RateLimit refuses each call as one too many.
	RateLimit Fault = "RateLimit"
	// RateLimitAfter is RateLimit, and the caller is told to wait for 7 seconds.
	RateLimitAfter Fault = "RateLimitAfter"
	// Unavailable refuses each call, or nobody answers.
	Unavailable Fault = "Unavailable"
	// LostReply carries the next call that changes something out and loses its reply.
	LostReply Fault = "LostReply"
	// StaleList keeps what is changed from now on out of the lists of the backend, though not out of what is asked for by its name.
	StaleList Fault = "StaleList"
	// Stockout is when nothing more can be created.
	Stockout Fault = "Stockout"
	// Unauthorized refuses the credentials.
	Unauthorized Fault = "Unauthorized"
	// Latency lets each call take a minute.
	Latency Fault = "Latency"
	// SlowStart keeps instances that are created from now on from running until it is ended.
	SlowStart Fault = "SlowStart"
)

// A Call is one call of a provider as data, so that another process can make it. One of its fields is set.
type Call struct {
	Create *provider.CreateRequest `json:"create,omitempty"`
	Delete *provider.DeleteRequest `json:"delete,omitempty"`
	Update *provider.UpdateRequest `json:"update,omitempty"`
	Adopt  *provider.AdoptRequest  `json:"adopt,omitempty"`
}

// Do makes the call.
func (c Call) Do(ctx context.Context, p provider.Provider) error {
	var (
		err error
		can = provider.AbilitiesOf(p)
	)
	switch {
	case c.Create != nil:
		_, err = p.Create(ctx, *c.Create)
	case c.Delete != nil:
		_, err = p.Delete(ctx, *c.Delete)
	case c.Update != nil && can.Updater != nil:
		_, err = can.Updater.Update(ctx, *c.Update)
	case c.Adopt != nil && can.Adopter != nil:
		_, err = can.Adopter.Adopt(ctx, *c.Adopt)
	default:
		err = provider.Errorf(provider.NotSupported, "call: it is empty, or the provider can't do it")
	}
	return err
}
