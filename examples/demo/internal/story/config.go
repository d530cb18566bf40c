// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// A Config is one version of the config that the fleet is given.
type Config struct {
	// Name is short and for people: v1.
	Name string
	// What says in a few words what kind of config it is.
	What string
	// Payload is the KubeletConfiguration, as it goes into the ConfigMap.
	Payload string
	// Trial and CrashLoopThreshold travel with the payload.
	Trial              time.Duration
	CrashLoopThreshold int
	// Ref is how the cluster knows it; zero until it was pushed.
	Ref Ref
}

// Sum is the SHA-256 of the payload in hex: what a node process that runs it writes into its journal.
func (c Config) Sum() string {
	sum := sha256.Sum256([]byte(c.Payload))
	return hex.EncodeToString(sum[:])
}

// Settings are the numbers of a story.
type Settings struct {
	// HealthzPort is the port on which every node process serves healthz, each at an address of its own.
	HealthzPort int
	// TakenPort is a port that another program has, on every node.
	TakenPort int
	// Trial is the healthy time after which a config is promoted.
	Trial time.Duration
	// CrashLoopThreshold is how many crashes the crashing config is allowed.
	CrashLoopThreshold int
}

// Init is the config that every node was provisioned with.
func Init(s Settings) Config {
	return Config{Name: "init", What: "from disk", Payload: payload(s, "maxPods: 30")}
}

// payload is a KubeletConfiguration with what every version has in common, and one thing of its own.
func payload(s Settings, own string) string {
	return "apiVersion: kubelet.config.k8s.io/v1beta1\n" +
		"kind: KubeletConfiguration\n" +
		"healthzPort: " + strconv.Itoa(s.HealthzPort) + "\n" + own + "\n"
}

// configs are the versions in the order in which they are pushed. The bad ones are mistakes that people make.
func configs(s Settings) []Config {
	version := func(name, what, own string) Config {
		return Config{Name: name, What: what, Payload: payload(s, own), Trial: s.Trial, CrashLoopThreshold: s.CrashLoopThreshold}
	}
	return []Config{
		version("v1", "good", "maxPods: 110"),
		version("v2", "undecodable", "maxPods:120"),
		version("v3", "invalid", "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 80"),
		version("v4", "crashing", "port: "+strconv.Itoa(s.TakenPort)),
		version("v5", "good", "maxPods: 120"),
	}
}
