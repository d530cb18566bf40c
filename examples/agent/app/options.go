// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/appoption"
	"github.com/belayproject/belay/rollout/nodeagent"
)

// Config is the config of a kubelet, as validators and codecs see it. Its Document holds all fields.
type Config = kubelet.Config

// An Option adds a part to the command that NewCommand makes.
type Option func(*parts)

// parts are what the program adds to the agent.
type parts struct {
	config      settings.Parts
	updaterName string
	updater     nodeagent.Updater
	log         *klog.Logger
	problems    appoption.Problems
}

// WithUpdater has u bring the node to the revisions that its NodeShadow orders, in place of the programs in --hooks,
// for agent update and agent run. The name is for the log. There is one updater at most.
func WithUpdater(name string, u nodeagent.Updater) Option {
	return func(p *parts) {
		const option = "WithUpdater"
		if p.updater != nil {
			p.problems.Wrong(option, "the updater %q is there already (a node has one)", p.updaterName)
		}
		appoption.Named(&p.problems, option, name, u, map[string]bool{}, "images")
		p.updaterName, p.updater = name, u
	}
}

// WithValidator has v judge each config after the agent's own rules: before it is adopted, at each start, and in agent
// check. It may be given more than once.
func WithValidator(v configsync.Validator[*Config]) Option {
	return func(p *parts) {
		p.problems.Given("WithValidator", v)
		p.config.Validators = append(p.config.Validators, v)
	}
}

// WithCodec has c decode configs in place of the agent's codec, so that an object may hold another format than a
// KubeletConfiguration in YAML. The child reads the bytes of the object. --config-dir, --node-config and
// --field-policy, which take a config apart, can't be used then.
func WithCodec(c configsync.Codec[*Config]) Option {
	return func(p *parts) {
		p.problems.Given("WithCodec", c)
		if p.config.Codec != nil {
			p.problems.Wrong("WithCodec", "a codec is there already (an agent has one)")
		}
		p.config.Codec = c
	}
}

// WithProbe has a config on trial pass one more probe before it is promoted. It may be given more than once.
func WithProbe(probe configsync.Probe) Option {
	return func(p *parts) {
		p.problems.Given("WithProbe", probe)
		p.config.Probes = append(p.config.Probes, probe)
	}
}

// WithLogger has the agent log to l. The flags for the log are left out.
func WithLogger(l klog.Logger) Option {
	return func(p *parts) { p.log = &l }
}
