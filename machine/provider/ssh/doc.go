// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ssh is a machine provider for hosts that are there already: a pool of them, reached by the system's ssh, that nobody creates or deletes.
//
// A machine claims a free host, and keeps it until it is destroyed. What is done on the host is in scripts of its [Config]: bootstrap, update, start, stop,
// cleanup. The claim is on the host itself, in claim.json of its [Host.Directory]: it outlives the controller and all that is known elsewhere. A host is
// Free, Reserved, InUse, Retained or Dirty: see [Provider.Hosts].
//
// # What it promises
//
//   - A host has one claim. It is changed by comparing and exchanging it under a lock on the host, whoever does it and however many at a time.
//   - A token has one host, also when several processes call Create at a time with it. See Create in the source for the proof.
//   - Delete of a token that has no claim uses it up, so that a Create that comes late makes nothing.
//   - A script is begun once for each order, is recorded before, and runs on when the connection is cut. No call waits for it. One that was cut off, as
//     by a reboot, is run again.
//   - A machine is stopped when its stop script has succeeded, so has the script that checks it, and no process that was begun by bootstrap, update or
//     start holds descriptor 8 any more. Nothing is released before.
//   - Retain leaves the data directory as it is. Destroy wipes it, and nothing else, without leaving its file system or following links. If that fails
//     the host is Dirty and is not offered until Destroy was called again, or Clean, and succeeded.
//   - Secrets are sent on standard input and kept in files that the user of the host alone can read, until the script that needs them has ended. They are
//     never arguments, and what scripts print is never part of an error or a message; [provider.Console] has it.
//   - A host key that is not known, or a login that is refused, is [provider.Unauthorized]. What does not answer is [provider.Unavailable].
//
// # What it asks for
//
// Every call that looks for a token asks all hosts, but for those with a ProviderID: a host that does not answer may have it. So Create, List, and Get
// of what is not there fail as long as one host of the pool is away. Taking a host out of the inventory is the administrator's word that nothing runs
// on it and that it won't come back by itself with what it had. All controllers of a pool have the same inventory. A host has one name in it.
//
// A host has flock, setsid, timeout, find, base64 and the core utilities, and a sh with printf built in: any usual Linux. Where a login's processes are
// killed when it ends (KillUserProcesses of logind) the user has to be root or to linger. The stop script also keeps the host from starting the machine
// again: a host that is Retained may be rebooted.
//
// # What it does not promise
//
// Nothing is done to keep a host out of the hands of others that log in there. Tokens that were used up are known as long as their host is in the pool,
// and are the last 4096 of it. Join.Credentials are not used: how to log in is for [Options]. A call about the whole pool takes as long as one exchange
// with each host, 16 at a time; with [Options.ControlDir] an exchange takes some ten milliseconds, and what the login shell of the user does when it
// starts. There are at most 4 exchanges with a host at a time for each provider: sshd allows 10 over one connection, unless MaxSessions says otherwise.
//
// # Concurrency and crashes
//
// All methods may be called concurrently, by several processes, and cut off at any moment, as may the host. A call that has found its claim changed looks
// again, ten times at most. The processes of a provider that is killed are ssh clients, which end by themselves.
package ssh
