// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/option"
)

// ErrUnguarded says that the API server would let an agent write what belongs to another node: the policy is missing, is not
// bound, or is aimed at another service account. An agent that gets it must not act.
var ErrUnguarded = errors.New("the agent is not held to its own node")

// A Probe asks the API server whether the policy holds, by a write for another node that is only tried. It goes with the agent's own
// token. Its fields are set once.
//
// It proves what it tries: that one operation on that one kind is refused. An agent that also wants to know of a policy that somebody has edited, or
// that is older than its options, runs one probe for each kind that it writes. The server names only the first policy that denies a write: where
// another one guards the same account and has the earlier name, every probe says that nothing is known, and the agent does not start.
type Probe struct {
	// Policy is the name of the policy, [Options].Name.
	Policy string
	// Try makes the write, as a dry run: [TryLease] or [TryPatch].
	Try func(ctx context.Context) error
	// Every is the time between two probes of Run. 0 or less means an hour.
	Every time.Duration
	// Timeout bounds each probe. 0 means 5 s.
	Timeout time.Duration
	// Report, if not nil, gets the result of each probe of Run, for an event and a metric.
	Report func(err error)
}

// Once probes once. It returns nil if the policy has refused the write, and an error with [ErrUnguarded] if it would have been accepted, or would have
// been but for an object that has the name already.
// Any other error says that nothing is known: the API server did not answer, or refused the write before it asked the policy, because
// the agent lacks the right to write at all. At its start an agent goes on after nil only.
func (p Probe) Once(ctx context.Context) error {
	check := option.For("identity/nodeauth.Probe.Once", nil)
	check.Require("Probe.Try", p.Try, "see TryLease and TryPatch")
	if err := check.Err(); err != nil {
		return err
	}
	_, err := ask(ctx, p.Timeout, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.Try(ctx) })
	if err = judge(p.Policy, err); err != nil {
		return fmt.Errorf("probing the policy %q: %w", p.Policy, err)
	}
	return nil
}

// Run calls work once the policy has answered a probe, and probes on while work is under way; work may be nil. The context of work ends
// when ctx ends, or with a cause that has [ErrUnguarded] as soon as a probe finds the guard missing.
//
// A probe without a result neither begins work nor ends it: it is logged, and repeated after 1 s, then 2 s, and so on up to a minute. Run returns
// after work has returned: with its error, together with what has ErrUnguarded if that was found, and nil when ctx has ended and work returned
// nil or the context's error. If the guard is missing from the start, work is not called at all.
func (p Probe) Run(ctx context.Context, work func(ctx context.Context) error) error {
	if p.Try == nil {
		return p.Once(ctx) // says so
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var ended chan error // work's, once it has begun
	retry := backoff.Backoff{First: time.Second, Most: time.Minute}
	for ctx.Err() == nil {
		err := p.once(ctx)
		wait := cmp.Or(max(p.Every, 0), time.Hour)
		switch {
		case ctx.Err() != nil:
			continue
		case errors.Is(err, ErrUnguarded):
			stop(err)
			return errors.Join(err, outcome(ended))
		case err != nil:
			wait = min(wait, retry.Next())
		default:
			retry.Reset()
			if ended == nil {
				ended = begin(working, work)
			}
		}
		if worked, err := pause(ctx, wait, ended); worked {
			return err
		}
	}
	return outcome(ended)
}

// once probes and tells of it, unless ctx has ended meanwhile.
func (p Probe) once(ctx context.Context) error {
	err := p.Once(ctx)
	if ctx.Err() != nil {
		return err
	}
	if p.Report != nil {
		p.Report(err)
	}
	if err != nil && !errors.Is(err, ErrUnguarded) {
		klog.FromContext(ctx).Error(err, "Failed to find out whether the agent is held to its own node")
	}
	return err
}

// begin calls work beside the probes.
func begin(ctx context.Context, work func(ctx context.Context) error) chan error {
	ended := make(chan error, 1)
	if work != nil {
		go func() { ended <- work(ctx) }()
	} else {
		go func() { <-ctx.Done(); ended <- nil }()
	}
	return ended
}

// outcome waits for work, if it has begun. That it ended as it was told to is no error.
func outcome(ended chan error) error {
	if ended == nil {
		return nil
	}
	if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// pause waits up to a tenth longer than d, so that agents which were started together don't probe together for ever. worked says that work has
// ended meanwhile, with that error.
func pause(ctx context.Context, d time.Duration, ended chan error) (worked bool, err error) {
	timer := time.NewTimer(backoff.Jitter(d, 1, 1.1, nil))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, nil
	case err := <-ended:
		return true, err
	case <-timer.C:
		return false, nil
	}
}

// judge says what the answer to a write for another node means. A refusal by the policy names it in its first cause; one by RBAC
// has no cause, and comes before admission. That an object is there already is said by the storage, behind all admission.
func judge(policy string, answer error) error {
	if answer == nil {
		return fmt.Errorf("a write for another node would be accepted: %w", ErrUnguarded)
	}
	if apierrors.IsAlreadyExists(answer) {
		return fmt.Errorf("a write for another node was stopped by nothing but an object of the name: %w: %w", ErrUnguarded, answer)
	}
	var status apierrors.APIStatus
	if errors.As(answer, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if strings.HasPrefix(cause.Message, "ValidatingAdmissionPolicy '"+policy+"' ") && strings.Contains(cause.Message, " denied request: ") {
				return nil
			}
		}
	}
	return fmt.Errorf("nothing is known of it, as something else refused the write: %w", answer)
}

// A LeaseCreator creates Leases. The LeaseInterface of client-go satisfies it.
type LeaseCreator interface {
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
}

// TryLease tries to create a Lease with a name that no node gives: [Resource].Prefix and a node that doesn't exist.
// An agent that may create Leases can always be probed by it.
func TryLease(leases LeaseCreator, name string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		check := option.For("identity/nodeauth.TryLease", nil)
		check.Require("leases", leases, "see client-go's CoordinationV1().Leases(namespace)")
		if err := check.Err(); err != nil {
			return err
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := leases.Create(ctx, lease, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// A Patcher patches objects of type T. The typed clients of client-go satisfy it, and those of its package dynamic.
type Patcher[T any] interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// TryPatch tries a patch that changes nothing of the object of another node, which must exist, or of a subresource of it.
func TryPatch[T any](objects Patcher[T], name string, subresources ...string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		check := option.For("identity/nodeauth.TryPatch", nil)
		check.Require("objects", objects, "a typed client of client-go")
		if err := check.Err(); err != nil {
			return err
		}
		_, err := objects.Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
		return err
	}
}
