// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet's defaults that are not the same once another field is set.
const (
	defaultReportFrequency = 5 * time.Minute
	defaultEnforcement     = "pods"
)

// Filled returns what a kubelet with a directory of drop-ins adds to its own file before it lays the first drop-in
// over it: its defaults. Only those are in the result that a later drop-in would change: the kubelet decides
// serializeImagePulls before it sees maxParallelImagePulls of a drop-in, and nodeStatusReportFrequency before
// nodeStatusUpdateFrequency. An empty list of enforceNodeAllocatable is lost, and the default takes its place. If the
// file cannot be read, the result is empty: decoding says why.
func Filled(own []byte) []byte {
	var c struct {
		SerializeImagePulls       *bool
		MaxParallelImagePulls     *int32
		NodeStatusReportFrequency metav1.Duration
		NodeStatusUpdateFrequency metav1.Duration
		EnforceNodeAllocatable    []string
	}
	raw, err := toJSON(own)
	if err != nil || checkHead(raw) != nil || json.Unmarshal(raw, &c) != nil {
		return nil
	}
	filled := map[string]any{}
	if c.SerializeImagePulls == nil {
		filled["serializeImagePulls"] = c.MaxParallelImagePulls == nil || *c.MaxParallelImagePulls < 2
	}
	if c.NodeStatusReportFrequency.Duration == 0 {
		filled["nodeStatusReportFrequency"] = defaultReportFrequency.String()
		if d := c.NodeStatusUpdateFrequency.Duration; d != 0 {
			filled["nodeStatusReportFrequency"] = d.String()
		}
	}
	if c.EnforceNodeAllocatable != nil && len(c.EnforceNodeAllocatable) == 0 {
		filled["enforceNodeAllocatable"] = []string{defaultEnforcement}
	}
	doc, err := json.Marshal(filled)
	if err != nil {
		return nil // not for booleans and texts
	}
	return doc
}
