// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"encoding/json"
	"time"

	"github.com/belayproject/belay/configsync"
)

// The kubelet's defaults that are not the same once another field is set.
const (
	defaultReportFrequency = 5 * time.Minute
	defaultEnforcement     = "pods"
)

// Part checks a drop-in of others as far as a kubelet needs it: one document, not empty, that names its apiVersion and kind. Fields that are
// not known, which a kubelet passes over, are refused. The error holds no value.
func Part(doc []byte) error {
	_, err := decode(doc)
	return err
}

// Filled is what a kubelet that is given a directory of drop-ins adds to its own file before it lays the first of them over it: its defaults.
// Only those are here that make a difference, as they depend on a field that a drop-in may set later: serializeImagePulls is decided before
// maxParallelImagePulls of a drop-in is seen, and nodeStatusReportFrequency before nodeStatusUpdateFrequency. An empty list of
// enforceNodeAllocatable is lost on that way, and the default takes its place. Where the file can't be read nothing is added: decoding says why.
func Filled(own []byte) []byte {
	c, err := decode(own)
	if err != nil {
		return nil
	}
	filled := map[string]any{}
	if c.SerializeImagePulls == nil {
		filled["serializeImagePulls"] = valueOr(c.MaxParallelImagePulls, 1) < 2
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

// decode is strict, and asks for apiVersion and kind.
func decode(doc []byte) (Config, error) {
	c, _, err := configsync.YAML[Config](yamlOptions()).Decode(Key, configsync.Object{Data: map[string]string{Key: string(doc)}})
	return c, err
}

func yamlOptions() configsync.YAMLOptions {
	return configsync.YAMLOptions{APIVersion: APIVersion, Kind: Kind}
}
