// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
	"github.com/belayproject/belay/lkg"
)

// CodecOptions say what a node asks of a config besides the rules.
type CodecOptions struct {
	// Trial and CrashLoopThreshold are the limits of a config that carries none.
	Trial              time.Duration
	CrashLoopThreshold int
	// NeedsHealthz refuses a config from a source that switches the kubelet's health endpoint off: it could never be promoted.
	NeedsHealthz bool
	// Around gives what the node lays around every config, as it is now: what is validated is the merged result. Nil is nothing. What is
	// read anew here is read anew at each start.
	Around func() (layers.Stack, error)
	// DropIn says that the kubelet merges by itself, from a directory of drop-ins: see [Text].
	DropIn bool
}

// Codec decodes kubelet configs strictly. A config from a source, which nodes share, must be a whole document with apiVersion and kind,
// and may not hold values that belong to one node; the init config and what is laid around may.
func Codec(o CodecOptions) configsync.Codec[*Config] {
	return codec{o: o, inner: configsync.YAML[Config](yamlOptions())}
}

type codec struct {
	o     CodecOptions
	inner configsync.Codec[Config]
}

// Decode implements configsync.Codec.
func (c codec) Decode(key string, o configsync.Object) (*Config, lkg.Limits, error) {
	cfg, limits, err := c.inner.Decode(key, o)
	if err != nil {
		return nil, lkg.Limits{}, err
	}
	used := cfg
	if c.o.Around != nil {
		if used, err = c.merged(key, o); err != nil {
			return nil, lkg.Limits{}, err
		}
	}
	if o.UID != "" {
		if err := shared(&cfg, &used, c.o.NeedsHealthz); err != nil {
			return nil, lkg.Limits{}, &configsync.DecodeError{Key: key, Err: err}
		}
	}
	if limits.Trial == 0 {
		limits.Trial = c.o.Trial
	}
	if _, said := o.Data[configsync.KeyCrashLoopThreshold]; !said {
		limits.CrashLoopThreshold = c.o.CrashLoopThreshold
	}
	return &used, limits, nil
}

// shared checks what only a config for several nodes must keep: a value that belongs to one node is a flag of that node's
// kubelet, or part of its init config or overlay. c is the config itself, used what becomes of it on this node.
func shared(c, used *Config, needsHealthz bool) error {
	var p Problems
	const why = "must not be set in a config that nodes share: it belongs to one node, as a flag of its kubelet"
	p.need(c.ProviderID == "", "providerID", why)
	p.need(c.PodCIDR == "", "podCIDR", why)
	_, _, served := Healthz(used)
	p.need(served || !needsHealthz, "healthzPort", "must not be 0: the node's agent asks there whether the kubelet is well")
	return p.err()
}
