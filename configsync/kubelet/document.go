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
	text     []byte
	cgroups  []string // that the config names
	sockets  []string // of runtimes that the config names
	unserved []string // fields that name no socket
}

// endpoints are what a node says of its runtime besides the config that is judged: by a flag, and in the control
// document.
type endpoints struct{ flag, control string }

// defaultRuntimeSocket is where the kubelet looks for a runtime if nothing names one.
const defaultRuntimeSocket = "/run/containerd/containerd.sock"

// runtimeSocket is the path of the node's runtime under a document; empty if nothing serves there.
func (e endpoints) runtimeSocket(d sandboxDocument) string {
	for _, url := range append(d.sockets, strings.TrimPrefix(e.flag, "unix://"), strings.TrimPrefix(e.control, "unix://"), defaultRuntimeSocket) {
		if url != "" && isSocket(url) {
			return url
		}
	}
	return ""
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// cgroupFields name cgroups that must exist, or that are used if they do.
var cgroupFields = []string{"cgroupRoot", "systemCgroups", "kubeletCgroups", "systemReservedCgroup", "kubeReservedCgroup"}

// editDocument takes out of a document what a sandbox must not do: run static pods. The runtime of the sandbox stands
// in for the one that the config names, at its path if there is one.
func editDocument(doc []byte, socket string, node endpoints) (sandboxDocument, error) {
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
	if err := d.placeRuntime(fields, socket, node); err != nil {
		return d, err
	}
	d.text, err = json.Marshal(fields)
	return d, err
}

// placeRuntime has the stand-in serve where the config expects a runtime. A path at which nothing serves is left as
// it is: the kubelet refuses it.
func (d *sandboxDocument) placeRuntime(fields map[string]json.RawMessage, socket string, node endpoints) error {
	own, err := json.Marshal("unix://" + socket)
	if err != nil {
		return err
	}
	const endpoint = "containerRuntimeEndpoint"
	if node.flag != "" {
		delete(fields, endpoint) // a flag is stronger
	}
	for _, name := range []string{endpoint, "imageServiceEndpoint"} {
		var url string
		_ = json.Unmarshal(fields[name], &url) // the kubelet has decoded it already
		path, isPath := strings.CutPrefix(url, "unix://")
		switch {
		case url == "" && name == endpoint && (node.flag != "" || node.control == "" || isSocket(defaultRuntimeSocket)):
			fields[name] = own
		case url == "" && name == endpoint:
			d.unserved = append(d.unserved, name) // the node has its runtime elsewhere
		case url == "":
		case isPath && isSocket(path):
			d.sockets = append(d.sockets, path)
		default:
			d.unserved = append(d.unserved, name)
		}
	}
	return nil
}
