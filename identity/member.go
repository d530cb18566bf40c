// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/option"
)

// An Epoch is one hold of a name: a fencing token. Of two epochs of the same name the later has the greater Number.
type Epoch struct {
	// Number is at least 1 more than that of the epoch before, also where the Lease was deleted in between, or was moved with its annotations
	// to another cluster. It starts from the resourceVersion of the Lease. Two things it cannot know of: epochs after the backup from
	// which a cluster was restored, unless the restore has raised the revision (etcdutl --bump-revision); and those of a Lease that somebody
	// deleted in another cluster before the versions there were past its number. A Member does not delete it until then. It is less than
	// 2^62: a greater one in a Lease was forged and is not believed.
	Number uint64
	// Holder is the holderIdentity, made up for this hold.
	Holder string
	// UID is that of the Lease.
	UID types.UID
}

// Options of a [Member] that are not part of what it is.
type Options struct {
	// Clock; nil means [SystemClock].
	Clock Clock
	// Metrics may be the zero value.
	Metrics MemberMetrics
}

// A Member keeps the Lease of one process.
type Member struct {
	leases  LeaseClient
	spec    Spec
	clock   Clock
	metrics MemberMetrics
	// waitsForDuration makes the member take a Lease by takeoverByDuration, and not by its Liveness alone. NewLeader sets
	// it.
	waitsForDuration bool

	// holder is the one of the latest acquisition, former the one before; number is that of the latest epoch. Only the goroutine of Run
	// uses them.
	holder, former string
	number         uint64
	// locked is the file that Run has locked, see idOf, "" if none. Only the goroutine of Run uses it.
	locked string

	mu    sync.Mutex
	known known
}

// New returns a Member. It makes no request. An error names the field of spec, its value's shape and what would be right.
func New(leases LeaseClient, spec Spec, o Options) (*Member, error) {
	check := option.For("identity.New", nil)
	check.Require("leases", leases, "see client-go's CoordinationV1().Leases(namespace)")
	if err := check.Err(); err != nil {
		return nil, err
	}
	spec, err := spec.complete()
	if err != nil {
		return nil, fmt.Errorf("the Spec of a member: %w", err)
	}
	if o.Clock == nil {
		o.Clock = SystemClock()
	}
	return &Member{leases: leases, spec: spec, clock: o.Clock, metrics: o.Metrics, known: known{phase: Stopped}}, nil
}

// Run acquires the Lease, calls work, and gives the Lease back once work has returned. work may be nil: then Run keeps the Lease until
// ctx ends.
//
// The context of work ends when ctx ends, or with the cause [ErrLost] when the Lease is lost. After a loss Run waits for work to
// return, logs its error, acquires the Lease again and calls work again, with a new epoch. It returns when work has returned while the Lease was
// held or after ctx has ended, with its error; nil when ctx has ended and work returned nil or the context's error; a [*DuplicateError] as
// [Spec].OnDuplicate has it; [ErrNodeGone]. While the API server does not answer, Run goes on trying. The Lease is not released if it is not held.
//
// After the end of ctx Run returns as soon as work has, and at most [Timing].Stop later.
func (m *Member) Run(ctx context.Context, work func(ctx context.Context, e Epoch) error) error {
	if !m.start() {
		return fmt.Errorf("the member of Lease %q: %w", m.Key(), ErrRunning)
	}
	defer m.stop()
	if work == nil {
		work = func(ctx context.Context, _ Epoch) error {
			<-ctx.Done()
			return nil
		}
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer unlock()
	for {
		t, err := m.acquire(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if done, err := t.run(ctx, work); done {
			return unlessEnded(ctx, err)
		}
	}
}

// unlessEnded is nil in place of an error that says no more than that ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// newHolder makes up a holder for an acquisition, and remembers the one before.
func (m *Member) newHolder() string {
	m.former, m.holder = m.holder, m.spec.Name+"_"+string(uuid.NewUUID())
	return m.holder
}

// ours reports whether this process made up the holder of a Lease. Nobody else can have.
func (m *Member) ours(l *coordinationv1.Lease) bool {
	holder := holderOf(l)
	return holder != "" && (holder == m.holder || holder == m.former)
}

// shortNap is the shortest wait: a timer that fires a little early must not make a loop spin.
const shortNap = time.Millisecond

// wait waits by the member's clock.
func (m *Member) wait(ctx context.Context, d time.Duration) error {
	c, stop := m.clock.Timer(max(d, shortNap))
	defer stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c:
		return nil
	}
}

// takeoverOf returns when this member may take a Lease from a holder that is silent.
func (m *Member) takeoverOf(l *coordinationv1.Lease) takeover {
	if m.waitsForDuration {
		return takeoverByDuration(l, m.spec.Timing.Liveness)
	}
	return takeoverByLiveness(m.spec.Timing.Liveness)
}

// foundDuplicate makes a duplicate known that is waited for. It logs the first one, and each that changes the wait.
func (m *Member) foundDuplicate(ctx context.Context, err *DuplicateError) {
	first := false
	m.know(func(k *known) {
		first = k.duplicate == nil || k.duplicate.takeover != err.takeover
		k.phase, k.duplicate = Watching, err
	})
	if first {
		klog.FromContext(ctx).Info("Waiting for another process of the same name", "lease", klog.KRef(m.spec.Namespace, m.spec.Name), "err", err.Error())
	}
}
