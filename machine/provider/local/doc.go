// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local is a machine provider that makes machines of processes on this host: each has a directory and one process, and as root PIDs, mounts
// and a host name of its own. It is for development, labs of one host and CI. It needs Linux 5.4 or later; elsewhere [New] is NotSupported.
//
// # What a machine is
//
// Its config is a [Config]: a command, its environment, files, and disks, which are directories. In the directory of a machine,
// ROOT/machines/TOKEN, are
//
//	instance.json   the record: what was ordered, and how far it is
//	machine.json    token, owner, endpoint, versions, roles, and how the Node should register, for the process
//	files/          the files of the config
//	data/           the disks
//	bootstrap/      the content of the bootstrap Secret, a file for each key
//	console.log     what it prints; console.1.log is what it printed before
//
// The process is started in that directory, with nothing of the caller's environment but PATH. Besides what the config says it finds
//
//	BELAY_MACHINE         the token
//	BELAY_MACHINE_DIR     its directory; both variables are also how its processes are found
//	BELAY_PROVIDER_ID     its ProviderID
//	BELAY_ENDPOINT        the address of the API server
//	BELAY_SETTINGS        the path of machine.json
//	BELAY_DATA_DIR        the path of data
//	BELAY_BOOTSTRAP_DIR   the path of bootstrap
//
// Secrets are in bootstrap alone: its directory has mode 0700 and its files 0600. They are there before the process starts, and are removed when the
// machine was stopped or deleted; a process should remove them as soon as it has joined. A machine that is started again by Reboot finds
// those that it left, and none after a Stop.
//
// With namespaces the command is the first process of its PID namespace: it reaps orphans, and a signal that it doesn't handle doesn't end it. They
// are set up by /bin/sh and mount.
//
// # What the provider promises
//
//   - Never two processes for a token. A machine's processes inherit a lock from their parent, held from before the fork until the last of them has
//     ended. Where it is held, the process is looked for by its mark and not started again, also when the caller was killed between the fork and
//     the record.
//   - A machine outlives the caller: it has a session of its own and no pipe to anybody. Its process is known again by PID, start time and boot.
//   - Stopped means: no process with the mark or of the session was found, twice, and nobody holds the lock. A process that can't be killed or not be
//     seen keeps Delete from being done. Asked to end by the stop signal, processes are killed when the grace is over. No signal reaches a process
//     that got the PID of another one.
//   - Retain keeps data and the record. Adopt moves data to the machine of a new token; a machine that is alive keeps its token, and only its owner
//     can be changed. Destroy removes the directory and follows no link: where something is mounted in it, or data is a link, it says so and waits.
//   - A token that was deleted with Destroy, adopted from, or deleted before there was a machine, is used up: a small file in ROOT/used says so for
//     ever.
//
// An update in place writes the files. Where the config has a reloadSignal and env stays the same, the process is sent that; otherwise it is
// restarted. Another command, other namespaces or disks take a replacement, which may adopt the disks. What versions the program can run is for the
// config to say, in offers: a change to another one is Unsupported, and nothing is touched.
//
// # What it does not promise
//
// A process that ends by itself is not started again: its machine is Broken, and Reboot starts it. A console is cut when somebody looks at the machine,
// and can grow until then. There are no limits of CPU or memory, no network of its own and no addresses. Machines are not safe from each other: all
// have the rights of the caller. Without namespaces a process that leaves its session, clears its environment and closes the files it has inherited,
// all three, is not found any more.
//
// # Concurrency and crashes
//
// Everything may be called concurrently, by several processes on the same root, and killed at any moment: what was ordered is on the disk before it
// is done, and the same call goes on with it. No call waits for a machine longer than about a second. A root whose disk is not mounted is an error,
// not an empty one, as far as that can be seen. Of its goroutines one is left between calls: see [Provider.Close].
package local
