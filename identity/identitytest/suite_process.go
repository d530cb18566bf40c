// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity"
)

const component = "suite"

// errCut is what a process that was killed gets for its requests.
var errCut = errors.New("the process is dead")

// A wire is the way of a process to the server. It can be cut.
type wire struct {
	Leases
	cut       atomic.Bool
	deletions atomic.Int32 // how many were sent
}

func send[T any](w *wire, request func() (T, error)) (T, error) {
	if w.cut.Load() {
		var none T
		return none, errCut
	}
	return request()
}

func (w *wire) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return send(w, func() (*coordinationv1.Lease, error) { return w.Leases.Get(ctx, name, o) })
}

func (w *wire) Create(ctx context.Context, l *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return send(w, func() (*coordinationv1.Lease, error) { return w.Leases.Create(ctx, l, o) })
}

func (w *wire) Update(ctx context.Context, l *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return send(w, func() (*coordinationv1.Lease, error) { return w.Leases.Update(ctx, l, o) })
}

func (w *wire) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	_, err := send(w, func() (any, error) {
		w.deletions.Add(1)
		return nil, w.Leases.Delete(ctx, name, o)
	})
	return err
}

// A process is one with a member.
type process struct {
	s      *suite
	member *identity.Member
	wire   *wire
	cancel context.CancelFunc
	ended  chan error
	epochs chan identity.Epoch // with which work was called
}

// start begins a process of a name on a host.
func (s *suite) start(name, host string, changes ...func(*identity.Spec)) *process {
	s.Helper()
	return s.startWith(func(identity.Epoch) {}, name, host, changes...)
}

// startWith begins one whose work begins with a call of begun.
func (s *suite) startWith(begun func(identity.Epoch), name, host string, changes ...func(*identity.Spec)) *process {
	s.Helper()
	spec := identity.Spec{
		Namespace: s.Namespace, Name: name, Component: component, Host: host, Fingerprint: identity.Fingerprint{BootID: "boot of " + host},
		Timing: identity.Timing{
			Renew: time.Second, Hold: suiteHold, Liveness: suiteLiveness, Duration: suiteLiveness, Stop: 5 * time.Second,
		},
	}
	for _, change := range changes {
		change(&spec)
	}
	p := &process{s: s, wire: &wire{Leases: s.Client(s.Namespace)}, ended: make(chan error, 1), epochs: make(chan identity.Epoch, 100)}
	var err error
	if p.member, err = identity.New(p.wire, spec, identity.Options{Clock: s.clock}); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	p.cancel = cancel
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.ended <- p.member.Run(ctx, func(ctx context.Context, e identity.Epoch) error {
			begun(e)
			select {
			case p.epochs <- e:
			default: // it is begun again and again, and nobody asks
			}
			<-ctx.Done()
			return nil
		})
	}()
	s.Cleanup(func() {
		cancel()
		<-over
	})
	return p
}

// quick is for a process that will be killed: it does not try for long to give its Lease back.
func quick(spec *identity.Spec) { spec.Timing.Stop = time.Millisecond }

// slow is for one that shall not notice for long what others do to its Lease.
func slow(spec *identity.Spec) {
	spec.Timing = identity.Timing{
		Renew: time.Minute, Hold: 3 * time.Minute, Liveness: 4 * time.Minute, Duration: time.Hour, Stop: suitePatience,
	}
}

func waits(spec *identity.Spec) { spec.OnDuplicate = identity.WaitOnDuplicate }

// begins waits for the next call of its work, and returns the epoch.
func (p *process) begins() identity.Epoch {
	p.s.Helper()
	select {
	case e := <-p.epochs:
		return e
	case <-time.After(suitePatience):
		p.s.Fatalf("after %v the Lease is not held: %+v", suitePatience, p.member.Status())
		return identity.Epoch{}
	}
}

// kill ends a process so that nothing of it reaches the server any more, and returns when it sent its last renewal, or earlier.
func (p *process) kill() time.Time {
	p.wire.cut.Store(true)
	last := time.Now().Add(-p.member.Status().Renewed)
	p.cancel()
	if err := <-p.ended; err != nil {
		p.s.Logf("a process that was killed ended with %v", err)
	}
	return last
}

// stop ends it as a signal does.
func (p *process) stop() {
	p.s.Helper()
	p.cancel()
	if err := <-p.ended; err != nil {
		p.s.Errorf("Run returned %v, want nil", err)
	}
}

// seesDuplicate waits until it says that it waits for another.
func (p *process) seesDuplicate() *identity.DuplicateError {
	p.s.Helper()
	var dup *identity.DuplicateError
	p.s.eventually(func() string {
		if err := p.member.Healthy(); !errors.As(err, &dup) {
			return fmt.Sprintf("Healthy returns %v, want a DuplicateError", err)
		}
		return ""
	})
	return dup
}
