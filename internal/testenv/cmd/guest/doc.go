// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command guest is the whole user space of a virtual machine of package machineqemu: the first process of its kernel, and a small node agent. It is no
// kubelet, and runs no pods.
//
// It loads the modules of its initial file system, mounts the first disk of the machine, configures the network of qemu's user mode, and registers a Node
// with the rights of that node alone: the provider ID, what uname and the kernel say of this boot, the machine ID that is on the disk, and Ready. Then it keeps
// the Lease of the Node. What a test wants to know of the disk is in annotations.
//
// Where it can't go on it switches the machine off, and says why on the console.
package main
