// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodetier lets tests run a real kubelet: it supplies a container runtime of its own, the kubelet program
// and a configuration with which that runs beside the machine's other work.
//
//	tier := nodetier.Start(t, env)             // containerd with the pause image
//	node, err := tier.NewNode("n1")            // credentials, directories, ports
//	config, err := node.Config(nil)            // a KubeletConfiguration to hand to an agent
//	kubelet, err := node.Kubelet(config)       // or run it directly
//
// It needs Linux, root and what "make kubelet-deps" installs (containerd, runc, CNI plugins); [Supported] says what
// is missing. Root may lack CAP_SYS_RESOURCE. It has been run on Debian 12 with hybrid cgroups; version 2 alone is
// provided for and has not been tried.
//
// Everything lies beneath the control plane's directory and in cgroups named after it, so that it is removed with
// the control plane, also after a kill. What kubelet and CNI plugins do at fixed places of the machine is undone
// too: directories that were not there before, and kernel settings. One tier runs at a time on a machine; a second
// one waits.
package nodetier
