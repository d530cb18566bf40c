// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

const (
	// MaxSizeAnnotation is on a deployment, or a set without one, that the cluster-autoscaler scales.
	MaxSizeAnnotation = "belay.dev/cluster-api-autoscaler-node-group-max-size"
	// capacityAnnotation on a deployment or set has the record of what was written there of its capacity.
	capacityAnnotation = "machine.belay.dev/capacity"
	// capacityPrefix begins what the cluster-autoscaler reads of a Node that there is none of yet.
	capacityPrefix = "capacity.cluster-autoscaler.kubernetes.io/"
)

// capacityNames are the resources that have an annotation of their own.
var capacityNames = map[string]string{"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeral-disk", "pods": "maxPods"}

// CapacityAnnotations say to the cluster-autoscaler what a Node would have: quantities by resource name, as of [provider.Capacity], and what the Node is given. They
// are empty without cpu and memory, which it needs. Of devices, as "nvidia.com/gpu", it knows one kind: the first by name.
func CapacityAnnotations(quantities map[string]string, n provider.NodeSettings) map[string]string {
	if quantities["cpu"] == "" || quantities["memory"] == "" {
		return nil
	}
	all := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		if short, ok := capacityNames[name]; ok {
			all[capacityPrefix+short] = quantities[name]
		} else if strings.Contains(name, "/") && all[capacityPrefix+"gpu-type"] == "" {
			all[capacityPrefix+"gpu-type"], all[capacityPrefix+"gpu-count"] = name, quantities[name]
		}
	}
	var words []string
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		words = append(words, k+"="+n.Labels[k])
	}
	if len(words) > 0 {
		all[capacityPrefix+"labels"] = strings.Join(words, ",")
	}
	if len(n.Taints) > 0 {
		all[capacityPrefix+"taints"] = strings.Join(taintWords(n.Taints), ",")
	}
	return all
}

// CapacityChange is what to write so that annotations say what CapacityAnnotations do, with the record of it; nil takes one away, and empty means that
// nothing is to be written. What somebody else has written there counts, and stays.
func CapacityChange(is, want map[string]string) map[string]*string {
	var wrote map[string]string
	if json.Unmarshal([]byte(is[capacityAnnotation]), &wrote) != nil {
		wrote = nil // there is none, or it can't be read: then nothing there is ours
	}
	change, record := map[string]*string{}, map[string]string{}
	for k, v := range want {
		now, there := is[k]
		if there && now != wrote[k] {
			continue
		}
		if record[k] = v; !there || now != v {
			change[k] = &v
		}
	}
	for k, v := range wrote {
		if _, stays := want[k]; !stays && is[k] == v {
			change[k] = nil
		}
	}
	data, _ := json.Marshal(record) // strings can always be encoded
	switch text := string(data); {
	case len(record) == 0 && is[capacityAnnotation] != "":
		change[capacityAnnotation] = nil
	case len(record) > 0 && is[capacityAnnotation] != text:
		change[capacityAnnotation] = &text
	}
	return change
}
