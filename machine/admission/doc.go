// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission says for an API server whether machines may end: the checks of github.com/belayproject/belay/machine.CheckEnd as an admission function.
//
// A [Reviewer] judges one AdmissionReview, and is an http.Handler for those who have a server. It has no server, no certificate and no configuration of
// its own: point a ValidatingWebhookConfiguration at where you serve it. It judges
//
//   - the deletion of a Machine, and spec.decommission that is set to true;
//   - the deletion of a MachineSet or MachineDeployment, unless its machines are orphaned, and one that gets fewer replicas, also by its scale subresource.
//
// Everything else is allowed. Which machines a smaller set would lose is judged by github.com/belayproject/belay/machine.ScaleIn.
//
// # Promise
//
//   - It fails closed: what can't be read, and machines or members that can't be asked, refuse the request. With [Reviewer].WarnOnly nothing is refused, and
//     the same is said in a warning.
//   - It writes nothing, so that a dry run is judged as the request would be.
//   - A machine whose instance is gone already, or whose end can't be taken back any more, may be deleted.
//
// # No promise
//
// Between this answer and the end of a machine there is time: github.com/belayproject/belay/machine/controller.EndGate asks again when the end begins. The API server
// decides what happens when nobody answers: set failurePolicy to Fail where an unanswered review must refuse, and leave out the namespace of whatever serves it, or
// nothing can be mended.
//
// # Concurrency and crashes
//
// All methods may be called concurrently. Nothing is kept.
package admission
