// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machineqemu is a machine provider whose machines are virtual machines with a kernel, disks and a power switch of their own. It is a test tool: what
// needs another kernel, a power cut or a disk that outlives its machine is shown with it.
//
// # What a machine is
//
// A machine is one of package local whose process is qemu: machine type q35, emulated in software, without KVM. All that package promises holds here:
// one process for a token, found again after the controller was killed, known by PID, start time and boot; disks that stay with Retain, move with Adopt and go with
// Destroy. This package adds what the process is: boot.sh makes the disks (raw images with ext4, data/NAME/disk.raw), hands machine.json and the bootstrap
// Secret over on a small disk that lies in the bootstrap directory, and starts qemu.
//
// The kernel is an Image: a kernel of Debian, and an initial file system with the few modules that it needs and the program
// internal/testenv/cmd/guest, which registers the Node. An edit of Config.Kernel is an update in place: the machine is switched off, and on again with the
// other kernel. Update is done when the guest has joined after that: until then its Node may still be the one of the boot before.
//
// # Power
//
// A qemu that is killed is a power cut. The power comes back: boot.sh starts it again, as a server does that is set to switch itself on. What the guest has
// synced is on its disk then. A guest that switches itself off stays off, and the machine is Broken. To end a machine is to switch it off: the guest is not asked.
//
// # What it does not promise
//
// The guest reaches whatever the host's loopback serves, and shares no other network. Disks keep the size that they were made with.
package machineqemu
