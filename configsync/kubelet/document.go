// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"os"
	"strings"
)

// A sandboxDocument is a config for a kubelet in a sandbox.
type sandboxDocument struct {
	text          []byte
	cgroups       []string // that the config names
	endpoint      string   // of the runtime, a path or another URL; empty if the config leaves it open
	runtimeServed bool     // endpoint is the path of a socket
}

// cgroupFields name cgroups that must exist, or that are used if they do.
var cgroupFields = []string{"cgroupRoot", "systemCgroups", "kubeletCgroups", "systemReservedCgroup", "kubeReservedCgroup"}

// editDocument takes out of a document what a sandbox must not do: run static pods. The runtime of the sandbox stands in for the one that the
// config names, at its path if there is one.
func editDocument(doc []byte, socket, endpointFlag string) (sandboxDocument, error) {
	var d sandboxDocument
	raw, err := toJSON(doc)
	if err != nil {
		return d, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return d, err
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	for _, name := range []string{"staticPodPath", "staticPodURL", "staticPodURLHeader"} {
		delete(fields, name) // the kubelet has validated them already
	}
	for _, name := range cgroupFields {
		var cgroup string
		if json.Unmarshal(fields[name], &cgroup) == nil && cgroup != "" {
			d.cgroups = append(d.cgroups, cgroup)
		}
	}
	own, err := json.Marshal("unix://" + socket)
	if err != nil {
		return d, err
	}
	const endpoint, images = "containerRuntimeEndpoint", "imageServiceEndpoint"
	_ = json.Unmarshal(fields[endpoint], &d.endpoint) // the kubelet has decoded it already
	if endpointFlag != "" || d.endpoint == "" {
		d.endpoint, fields[endpoint] = "", own // a flag is stronger
	}
	if path, ok := strings.CutPrefix(d.endpoint, "unix://"); ok {
		info, err := os.Stat(path)
		d.runtimeServed = err == nil && info.Mode()&os.ModeSocket != 0
		if d.runtimeServed {
			d.endpoint = path
		}
	}
	var image string
	if json.Unmarshal(fields[images], &image) == nil && image != "" {
		fields[images] = fields[endpoint]
	}
	d.text, err = json.Marshal(fields)
	return d, err
}
