// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"errors"
	"fmt"

	"github.com/belayproject/belay/configsync"
)

// A config of an agent's own, in the entry "agent" of a ConfigMap, with the limits of its trial beside it.
func ExampleYAML() {
	type Config struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Workers    int    `json:"workers"`
	}
	codec := configsync.YAML[Config](configsync.YAMLOptions{APIVersion: "example.org/v1", Kind: "AgentConfig"})

	object := configsync.Object{Data: map[string]string{
		"agent":                          "apiVersion: example.org/v1\nkind: AgentConfig\nworkers: 4\n",
		configsync.KeyTrialDuration:      "30m",
		configsync.KeyCrashLoopThreshold: "2",
	}}
	cfg, limits, err := codec.Decode("agent", object)
	fmt.Println(cfg.Workers, limits.Trial, limits.CrashLoopThreshold, err)

	object.Data["agent"] = "apiVersion: example.org/v1\nkind: AgentConfig\nWorkers: 4\n"
	_, _, err = codec.Decode("agent", object)
	var undecodable *configsync.DecodeError
	fmt.Println(errors.As(err, &undecodable), err)
	// Output:
	// 4 30m0s 2 <nil>
	// true decoding "agent": field "Workers" is not known: want "workers"
}
