// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity says which processes are alive, by Lease, without being fooled by clocks or clones.
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/identity"
//		"k8s.io/client-go/rest"
//	)
//
//	func lead(ctx context.Context, config *rest.Config, work func(context.Context, identity.Epoch) error) error {
//		o := identity.LeadOptions{Namespace: "kube-system", Name: "my-controller"}
//		return identity.Lead(ctx, config, o, work)
//	}
//
// A [Member] keeps the Lease of one process: it acquires it, renews it, and gives it back. While it is held, and only then, the
// process does its work. A [View] watches the Leases of all members and says who is alive. A [Collector] deletes the Leases of those
// who have been gone for long. The three need nothing of each other but the Leases, and can run in different processes.
//
// # Promise
//
//   - A name is held by one process at a time, as long as the clock of a holder runs no slower against that of its observers
//     than [Timing].Hold to [Timing].Liveness, and nobody else deletes or empties its Lease. What the clocks say does not matter, only
//     how fast they run.
//   - A second process under a name that is in use is told so, with both hosts, in a [DuplicateError]. It never overwrites the first.
//   - Work starts after the Lease is held, its context ends before an observer may call the member lost, and the Lease is given
//     back after the work has returned. A machine that was suspended counts the time that it slept; the work's context ends after the
//     resume then, by the smaller of 1 s and a tenth of [Timing].Hold at most, and [Member.Epoch] is exact at once.
//   - Each time the Lease is acquired the [Epoch] grows, so that whoever stores it can refuse what an earlier holder sends late.
//   - A member is called lost only while the view proves that it is up to date, by seeing the writes of a member of its own process, and
//     only when they prove that nothing was written for Liveness. So a loss is told at most two of that member's renewals after Liveness is
//     over, and as a rule at the first: see [ViewConfig].
//   - A Lease is deleted only if nobody has written it for the whole of [CollectorConfig].GCAfter, and only in the very version
//     that was watched. A renewal that lands in between keeps it.
//   - A quiet hour costs one PUT per renewal and no GET.
//
// # No promise
//
// A Lease is no lock: work that goes on after its context ended, or a write that left before and arrives late, is not stopped by it. Check
// the [Epoch] where it matters. Who deletes or empties the Lease of a living holder frees its name: another process may begin at once, while
// the holder goes on until its next renewal, or until the end of its hold if it reaches nobody. The other has the greater [Epoch].
//
// Who may write a Lease may pretend to be its holder: see package nodeauth. Collection starts anew with each view: a view that
// is restarted more often than GCAfter deletes nothing.
//
// # Time
//
// Nothing compares the clocks of two machines. The renew time in the Lease is written for people and never compared with a clock. An observer
// counts its own monotonic time since the resourceVersion of a Lease last changed, and only time in which it was up to date. A
// holder counts from before it sent its last successful write, by a clock that goes on while the machine sleeps.
//
// # Names
//
// [Name] is the name that KEP-1965 gives to kube-apiservers: a prefix and a hash of host and component. [NodeName] is a prefix and
// the name of a node, for members whose name an admission policy has to check: CEL has no hash function.
//
// # Concurrency
//
// All methods may be called from several goroutines. A Member and a View have one Run each, which owns their goroutines and returns
// after all of them. The handler of one [View.Subscribe] is called for one event at a time, and beside those of others.
//
// # Crash behaviour
//
// Nothing is kept outside the Lease. A member that is killed finds its Lease again at the next start, under the same name and UID: at once
// where [Spec].LockFile shows that the process before is gone, else after it has watched it for [Timing].Liveness. A View and a
// Collector know nothing at their start and learn it by watching: until then members are [Unconfirmed], and nothing is deleted.
//
// # Rights
//
// A Member needs get, create, update and delete on leases in its namespace (and get on its Node, with [Spec].Nodes). A View needs list and
// watch on leases there; a Collector needs delete besides.
package identity
