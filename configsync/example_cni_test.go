// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/lkg"
)

// A confList is a CNI network configuration list. The runtime reads its text, so that is what is rendered, byte
// for byte.
type confList struct {
	CNIVersion   string           `json:"cniVersion"`
	Name         string           `json:"name"`
	DisableCheck bool             `json:"disableCheck"`
	Plugins      []map[string]any `json:"plugins"` // each plugin has fields of its own
	text         string
}

// confLists decodes them.
type confLists struct{}

var networkName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Decode implements configsync.Codec. Errors name fields, never values.
func (confLists) Decode(key string, o configsync.Object) (confList, lkg.Limits, error) {
	limits, err := configsync.LimitsOf(o)
	if err != nil {
		return confList{}, lkg.Limits{}, err
	}
	l := confList{text: o.Data[key]}
	doc, err := configsync.Gate([]byte(l.text), configsync.GateLimits{}) // no key twice, no depth without bound
	switch {
	case err != nil:
	case !json.Valid([]byte(l.text)):
		err = errors.New("a list must be JSON: the runtime reads no YAML")
	default:
		err = configsync.DecodeStrict(doc, &l)
	}
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return confList{}, lkg.Limits{}, &configsync.DecodeError{Key: key, Err: err}
	}
	return l, limits, nil
}

func (l confList) check() error {
	switch {
	case !slices.Contains([]string{"0.4.0", "1.0.0", "1.1.0"}, l.CNIVersion):
		return errors.New(`field "cniVersion" must be 0.4.0, 1.0.0 or 1.1.0`)
	case !networkName.MatchString(l.Name):
		return errors.New(`field "name" must be a network name`)
	case len(l.Plugins) == 0:
		return errors.New(`field "plugins" must not be empty`)
	}
	for i, p := range l.Plugins {
		if name, ok := p["type"].(string); !ok || !networkName.MatchString(name) {
			return fmt.Errorf(`field "plugins[%d].type" must be the name of a program`, i)
		}
	}
	return nil
}

// A cniNode is an agent that keeps the list of a node, and the directory that the runtime watches.
type cniNode struct {
	dir    string
	server *configsynctest.Server
	disk   *configsynctest.Disk
}

func (n cniNode) file() string { return filepath.Join(n.dir, "10-pods.conflist") }

// render puts a list where the runtime looks for it: whole or not at all, and under no name that the runtime would
// read before.
func (n cniNode) render(l confList) error {
	if old, err := os.ReadFile(n.file()); err == nil && string(old) == l.text {
		return nil
	}
	temp := filepath.Join(n.dir, ".10-pods.temp")
	if err := os.WriteFile(temp, []byte(l.text), 0o600); err != nil {
		return err
	}
	fmt.Printf("%s: network %s\n", filepath.Base(n.file()), l.Name)
	return os.Rename(temp, n.file())
}

// Name implements configsync.Probe.
func (n cniNode) Name() string { return "network" }

// Check stands for the runtime's own word on its network.
func (n cniNode) Check(context.Context) error {
	var l confList
	text, err := os.ReadFile(n.file())
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err == nil && l.Plugins[0]["type"] != "bridge" {
		err = fmt.Errorf("the first plugin is not installed")
	}
	return err
}

// until is a Reporter that stops the agent.
type until struct {
	stop func()
	done func(configsync.Status) bool
}

func (u until) Report(_ context.Context, s configsync.Status) error {
	if u.done(s) {
		u.stop()
	}
	return nil
}

// assign names a new list for the node, and runs its agent, start after start, until the status is as it is to be.
func (n cniNode) assign(name, text string, done func(configsync.Status) bool) error {
	o := n.server.Put("kube-system", name, map[string]string{"cni": text,
		configsync.KeyTrialDuration: "20ms", configsync.KeyProbeDeadline: "20ms"}, true)
	n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, UID: o.UID})
	err := errExit
	for errors.Is(err, errExit) {
		err = n.life(done)
	}
	return err
}

func (n cniNode) life(done func(configsync.Status) bool) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	s, err := configsync.New(ctx, configsync.Options[confList]{
		Version: "v1.0.0", Key: "cni", Codec: confLists{}, Store: n.disk, Source: n.server, Fetcher: n.server, Restarter: exit{},
		Init: func(context.Context) (configsync.Object, error) {
			return configsync.Object{Data: map[string]string{"cni": `{"cniVersion":"1.0.0","name":"provisioned","plugins":[{"type":"bridge"}]}`}}, nil
		},
		Probes: []configsync.Probe{n}, Reporter: until{stop, done},
		Bounds: lkg.Bounds{MinTrial: time.Millisecond}, ProbeInterval: 5 * time.Millisecond, // minutes and seconds in production
	})
	if err != nil {
		return err
	}
	active, err := s.Bootstrap(ctx, lkg.Exit{})
	if err != nil {
		return err
	}
	if err := n.render(active.Config); err != nil {
		return err
	}
	return s.Run(ctx)
}

// Another consumer than a kubelet: the list of CNI plugins of a node, in JSON, with a codec of its own. A good one
// is adopted and becomes the last known
// good one; one that can't be decoded never reaches the runtime; one with which there is no network is left again.
func Example_cni() {
	dir, err := os.MkdirTemp("", "cni")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	n := cniNode{dir, &configsynctest.Server{}, &configsynctest.Disk{}}
	for _, step := range []struct {
		name, text string
		done       func(configsync.Status) bool
	}{
		{"good", `{"cniVersion":"1.0.0","name":"blue","plugins":[{"type":"bridge","mtu":1450},{"type":"portmap"}]}`,
			func(s configsync.Status) bool { return s.LastKnownGood.Name == "good" }},
		{"bad", `{"cniVersion":"1.0.0","name":"red","plugins":[{"type":"bridge"}],"plugin":[]}`,
			func(s configsync.Status) bool { return len(s.Rejected) == 1 && s.Assigned.Name == "bad" }},
		{"broken", `{"cniVersion":"1.0.0","name":"green","plugins":[{"type":"overlay"}]}`,
			func(s configsync.Status) bool { return len(s.Rejected) == 2 && s.Active.Name == "good" }},
	} {
		var last configsync.Status
		err := n.assign(step.name, step.text, func(s configsync.Status) bool { last = s; return step.done(s) })
		fmt.Printf("%s: in use %s, last known good %s\n", step.name, last.Active.Name, last.LastKnownGood.Name)
		for _, r := range last.Rejected {
			fmt.Printf("  rejected: %s: %s: %s\n", r.Ref.Name, r.Reason, r.Evidence)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 10-pods.conflist: network provisioned
	// 10-pods.conflist: network blue
	// good: in use good, last known good good
	// bad: in use good, last known good good
	//   rejected: bad: failed to load current (UID: 00000000-0000-4000-8000-000000000002): decoding "cni": field "plugin" is not known: want "cniVersion", "disableCheck", "name", "plugins"
	// 10-pods.conflist: network green
	// 10-pods.conflist: network blue
	// 10-pods.conflist: network green
	// 10-pods.conflist: network blue
	// broken: in use good, last known good good
	//   rejected: broken: failed to run current (UID: 00000000-0000-4000-8000-000000000003), required probe "network" failed for more than 20ms: counted starts: 0; the config in its place was healthy for 20ms; tried again, required probe "network" failed for more than 20ms
	//   rejected: bad: failed to load current (UID: 00000000-0000-4000-8000-000000000002): decoding "cni": field "plugin" is not known: want "cniVersion", "disableCheck", "name", "plugins"
}
