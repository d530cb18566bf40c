// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controlplane starts a control plane for the demo and removes it again.
//
// It prints the path of an administrator's kubeconfig, alone on a line of standard output, once the API server is
// ready; everything else goes to standard error. It ends, and with it every server and file, on SIGINT or SIGTERM,
// when its parent dies, with -stdin when its standard input ends, and after a kill.
//
// With -fleet the servers of -with are set up for a thousand nodes.
//
// With -wait, beside -stdin, the path is printed at once, before any server is compiled, and the servers are started at
// the order start.
//
// With -stdin it takes orders, one a line, and answers each with a line of standard output:
//
//	stop                  kills the API server: "stopped"
//	start                 starts it, again on the same address and data: "started" when it is ready
//	kubelet NAME ADDRESS  readies this machine for a real kubelet that serves healthz at the address and has a file for --config
//	                      added to its command line: "kubelet" and that line as a JSON list, or "unsupported" and why
package main
