// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prove has a program judge a config before a node adopts it: a trial run of what is configured, say, that only reads its config and exits.
//
// A [Program] is one of the Proofs of configsync.Options. It is asked last, after the gate, the decoder, the validators and the field policy. What it
// runs, with which arguments and in which environment, is in [Options] alone; an object has no say in that. The payload reaches it on its standard
// input, or, where an argument holds [PayloadFile], in a private file. How it exits is the answer:
//
//	exit status 0             the config may be adopted
//	exit status [Refusal]     the config is refused, and listed as bad
//	anything else             nothing is known: the config waits, and the program is run again, with back-off
//
// A shell makes the one refusal out of the many of a stock program, where those are never trouble of its own:
//
//	Options{Path: "/bin/sh", Args: []string{"-c", `agentd --check --config "$0" || exit 65`, prove.PayloadFile}}
//
// # Promise
//
//   - The program runs at most for [Options].Timeout. Then, and when it has ended, what is left of the process group that it led is killed. When the agent
//     is killed, the kernel kills it (Linux).
//   - It is run once for a config and a version, over any number of restarts: an answer is on record before it is given. No answer is never kept.
//   - An answer is believed if its sum fits, and it is about the same version, program, arguments, environment, object digest, entry and payload. All
//     else in the record is as if it were not there.
//   - Errors hold the digest, the exit status and how long it took. What the program wrote is thrown away, unless [Options].ShowOutput says that no
//     payload is in it.
//   - The file is in a directory of the agent's own, for the agent's user alone, and removed before an answer is given; one that a killed agent has left is
//     removed by the next run.
//
// # No promise
//
// The program has the rights of the agent: to take them away is for the program, or a wrapper around it. One that leaves its process group is not
// followed. Without [Options].Secret, who may write to the store can plant an answer.
//
// # Concurrency
//
// All may be called from several goroutines. One program runs at a time.
//
// # Crash behaviour
//
// A kill before an answer is on record means that the program is run again. So does the loss of the record: a start with a config on trial then waits for
// the program, for at most Options.Timeout, and uses the last known good config where nothing is decided by then.
package prove
