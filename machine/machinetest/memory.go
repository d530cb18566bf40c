// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belayproject/belay/internal/strictjson"
	"github.com/belayproject/belay/machine/provider"
)

// Memory is a provider in memory, with every ability. The zero value is an empty one. It is the backend and a client of it at once: it keeps nothing
// for a client, so that any number of them may share it. Exported fields are set before the first call.
//
// Its config is a JSON object with the strings "zone", "image" and "size", each of which may be left out, and "apiVersion" and "kind", which it
// does not look at. An image and versions can be changed in place, which restarts the instance; another size needs a replacement, and
// another zone is not supported. A size "l" has four times the capacity.
//
// Adopting an instance that is alive leaves its ProviderID and its digest as they are.
type Memory struct {
	// OnCall, if set, is asked first by each call: its error is that of the call, and nothing is done. token is "" for calls without one. It may
	// wait, and it may call the Memory.
	OnCall func(ctx context.Context, method, token string) error
	// Polls is how often something that takes longer is asked for before it is done: an instance that starts, by Create, Get and List; an update,
	// a deletion, a stop, a reboot, each by its own method.
	Polls int
	// Latency is how long each call takes. It has its effect in the middle.
	Latency time.Duration
	// ListLag is how far List is behind.
	ListLag time.Duration
	// Limit is how many instances there can be at a time; more are Stockout. 0 is no limit.
	Limit int

	mu      sync.Mutex
	vms     map[string]*vm
	disks   map[string][]byte
	used    map[string]bool // tokens that make nothing any more
	faults  map[Fault]int
	calls   map[string]int
	serial  int
	history []snapshot
}

var (
	_ provider.Provider  = (*Memory)(nil)
	_ provider.Planner   = (*Memory)(nil)
	_ provider.Updater   = (*Memory)(nil)
	_ provider.Validator = (*Memory)(nil)
	_ provider.Power     = (*Memory)(nil)
	_ provider.Adopter   = (*Memory)(nil)
	_ provider.Capacity  = (*Memory)(nil)
	_ provider.Console   = (*Memory)(nil)
	_ provider.Group     = (*Memory)(nil)
)

// vm is what there is for one token.
type vm struct {
	provider.Instance
	config   memoryConfig
	made     provider.CreateRequest
	polls    map[string]int // how often each thing has to be asked for yet
	rebooted map[string]bool
	boots    int
}

// memoryConfig is what the config of a Memory decodes to.
type memoryConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Zone       string `json:"zone"`
	Image      string `json:"image"`
	Size       string `json:"size"`
}

// snapshot is what List shows of one time.
type snapshot struct {
	at  time.Time
	all []provider.Instance
}

func decodeConfig(raw []byte) (memoryConfig, error) {
	var c memoryConfig
	if len(raw) == 0 {
		return c, nil
	}
	if err := strictjson.Decode(raw, &c); err != nil {
		return c, provider.Errorf(provider.InvalidConfig, "config: %w", err)
	}
	return c, nil
}

// Calls returns how often each method was called, by name, as "Create". Calls that failed count.
func (m *Memory) Calls() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.calls)
}

// Instances returns what there is of all clusters, by token. It is not a call, never behind, and never fails.
func (m *Memory) Instances() []provider.Instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all()
}

// Made returns what the instance of a token was asked for with.
func (m *Memory) Made(token string) (provider.CreateRequest, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vms[token]
	if v == nil {
		return provider.CreateRequest{}, false
	}
	return v.made, true
}

// Lose has an instance and its disks vanish, as when somebody deletes them by hand.
func (m *Memory) Lose(token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.vms[token]; v != nil {
		m.remove(v)
		m.changed()
	}
}

// Break has an instance fail: it is Broken, with a message.
func (m *Memory) Break(token, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.vms[token]; v != nil {
		v.State, v.Message = provider.Broken, message
		m.changed()
	}
}

// all returns copies of the instances by token.
func (m *Memory) all() []provider.Instance {
	all := make([]provider.Instance, 0, len(m.vms))
	for _, token := range slices.Sorted(maps.Keys(m.vms)) {
		all = append(all, m.vms[token].copy())
	}
	return all
}

func (v *vm) copy() provider.Instance {
	i := v.Instance
	i.Disks, i.Addresses = slices.Clone(i.Disks), slices.Clone(i.Addresses)
	return i
}

func (m *Memory) add(v *vm) {
	if m.vms == nil {
		m.vms, m.disks = map[string]*vm{}, map[string][]byte{}
	}
	m.vms[v.Token] = v
}

// remove frees all that a token holds, and uses it up.
func (m *Memory) remove(v *vm) {
	for _, d := range v.Disks {
		delete(m.disks, d.ID)
	}
	m.useUp(v.Token)
}

func (m *Memory) useUp(token string) {
	delete(m.vms, token)
	if m.used == nil {
		m.used = map[string]bool{}
	}
	m.used[token] = true
}

// asked reports whether something has been asked for often enough.
func (m *Memory) asked(v *vm, what string) bool {
	left, begun := v.polls[what]
	if !begun {
		left = m.Polls
	}
	v.polls[what] = max(left-1, 0)
	return left == 0
}

// find returns the instance of a cluster.
func (m *Memory) find(call, token, cluster string) (*vm, error) {
	v := m.vms[token]
	if v == nil || v.Owner.Cluster != cluster {
		return nil, provider.Errorf(provider.NotFound, "%s: there is no instance %q in cluster %q", call, token, cluster)
	}
	return v, nil
}

// any returns the instance of any cluster.
func (m *Memory) any(call, token string) (*vm, error) {
	v := m.vms[token]
	if v == nil {
		return nil, provider.Errorf(provider.NotFound, "%s: there is no instance %q", call, token)
	}
	return v, nil
}

func (m *Memory) nextSerial() int {
	m.serial++
	return m.serial
}

func (m *Memory) address() []provider.Address {
	n := m.nextSerial()
	return []provider.Address{{Type: "InternalIP", Address: fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)}}
}
