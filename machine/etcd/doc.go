// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd knows the members of an etcd cluster, and takes machines out of it before they are switched off: what github.com/belayproject/belay/machine/controller asks
// for as Members and as MemberList.
//
// A [Client] speaks the JSON gateway that every etcd since 3.4 serves beside gRPC, with the standard library alone: whoever needs it does not take over the
// modules of etcd's own client.
//
//	package example
//
//	import (
//		"crypto/tls"
//		"github.com/belayproject/belay/machine/controller"
//		"github.com/belayproject/belay/machine/etcd"
//	)
//
//	func guard(options *controller.Options, endpoints []string, config *tls.Config) error {
//		members, err := etcd.New(etcd.Options{Endpoints: endpoints, TLS: config})
//		if err != nil {
//			return err
//		}
//		options.Members = members
//		fleet := controller.Fleet{Machines: options.Machines, Members: members}
//		options.Gates = []controller.Gate{controller.EndGate{Fleet: fleet}}
//		return nil
//	}
//
// # Promise
//
//   - A member is removed only if those that would remain have a quorum that is healthy, by their own answers, at that time. etcd itself agrees by consensus, or the
//     member stays.
//   - Leave is idempotent by the machine: a member that is gone, and a machine that never had one, are done. What was cut off is found again by asking.
//   - No redirect is followed, no answer is larger than 4 MiB, and every call has a deadline.
//
// # No promise
//
// Which member runs on which machine is told by name and peer address: see [Options].Runs. A member of none is shown without a machine, and gates refuse the end
// of machines that it may run on. Data on disks stays as it is.
//
// # Concurrency and crashes
//
// All methods may be called concurrently. Nothing is kept.
package etcd
