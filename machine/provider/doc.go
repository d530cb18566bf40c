// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider is the contract between machines and whatever makes them: a cloud, a pool of hosts, a program.
//
// A [Provider] has four methods. It may have more abilities ([Planner], [Updater], [Validator], [Power], [Adopter], [Capacity], [Console]), which
// are found by assertion: see [AbilitiesOf]. One that can only create and delete is made whole by [Minimal]. [Typed] decodes the opaque part of
// a machine strictly into the provider's own type. Decorators ([RateLimit], [CoalesceGet], [Breaker], [Timeout], [Observe]) work for any provider.
//
// # What a provider promises
//
// Package github.com/belayproject/belay/machine/machinetest checks each of these, with crash points and injected faults:
//
//   - A token makes one instance. Create with a token that is known returns its instance, whatever state it is in, however many calls run at a
//     time, and also after the process was killed between the effect and the reply. With another digest it is [Conflict], and has no effect.
//     Delete uses a token up, also one that nothing was made of: a Create that comes after it, from a controller that was frozen, makes nothing
//     and is [Conflict], as long as the provider can know.
//   - What an instance is for is written on it: token and [Owner] come back from Get and List after a restart of everything.
//   - A ProviderID is never given twice, and its last path segment is the token.
//   - Get says [NotFound] only when that is authoritative: not for a list that is behind, and not for missing rights.
//   - List returns all that the scope ever made and that still holds anything: starting, running, stopped and retained instances.
//   - Delete works from a [Ref] alone: with no config, a broken config, or one that has changed since. It may be called again at any time. Done
//     implies that the instance is stopped and can't write to anything any more. With [Retain] its disks stay, with [Destroy] nothing stays.
//     Delete of what isn't there is Done, and uses its token up.
//   - A config that is not understood is [InvalidConfig] before there is any effect.
//   - No call waits for an instance: what takes longer is Pending, and is asked for again. A call returns soon after its ctx has ended.
//   - Secrets (Bootstrap, Credentials) appear in no error, no message and no instance.
//
// # What the caller promises
//
// Intent before effect: the token is stored before Create, and the order to delete before Delete. Only one token of a machine is alive at a time.
// A Pending instance is looked at by Get every few seconds, and asked for by Create again, every half a minute or more often, so that a start that was cut
// off goes on; Get may be a look alone.
//
// # Decorators
//
// Each is a [Provider] around another one. What a decorator is put around need not be able to do anything, and what it can is kept: ask
// [AbilitiesOf] the outermost one, never the provider inside. Their order matters; this one is usual:
//
//	p = provider.Timeout(acme, 0)                           // each attempt has a deadline
//	p = provider.Observe(p, metrics)                        // sees what acme does
//	p = provider.RateLimit(p, provider.RateLimitOptions{})  // waiting is no failure of acme
//	p = provider.Breaker(p, provider.BreakerOptions{})      // while it is open no turn is used up
//	p = provider.CoalesceGet(p, scope, provider.CoalesceOptions{})
//
// The zero value of all options is safe. Decorators keep what they know in memory alone: two processes have two rates, and one that was started again
// begins with a full bucket and a closed breaker. None of them makes a call twice, or starts a goroutine.
//
// # Errors and when to try again
//
// Every error has a [Class], and none of them is for ever. [Class.Backoff] doubles with each try; an error may ask for more ([AfterOf]). After a
// [Stockout] another zone may do ([RetryElsewhere]).
//
//	class          first  most  what helps
//	InvalidConfig  1m     10m   another config, which is tried at once
//	Unauthorized   30s    10m   other credentials, or more rights
//	Stockout       30s    10m   another zone, quota, time
//	RateLimited    5s     5m    time; a lower rate
//	Conflict       10s    10m   the next incarnation of the machine
//	Unavailable    1s     2m    time
//	NotSupported   5m     10m   another provider, or another way
//	NotFound       1s     1m    nothing: there is no such instance
//	Internal       2s     5m    time, or a look at the message
//
// # What is not promised
//
// A [Typed] config is judged for its form; whether the environment can make it is for Create to say. An answer from [CoalesceGet] may be a window
// old. [Timeout] can't end a call that does not look at its ctx.
//
// # Concurrency and crashes
//
// All methods may be called concurrently, by several processes, and cut off at any moment.
package provider
