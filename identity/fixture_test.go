// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

const namespace = "members"

// name is that of the Lease of most tests.
const name = "m"

// errDead is what a process that was killed gets for its requests: they reach nobody.
var errDead = errors.New("the process is dead")

func goodSpec(host string) identity.Spec {
	return identity.Spec{
		Namespace: namespace, Name: name, Component: "test", Host: host,
		Fingerprint: identity.Fingerprint{BootID: "boot-" + host, Host: host},
	}
}

// nodes is a NodeClient in memory: UIDs by name. "" is answered with an error of the server.
type nodes map[string]string

func (n nodes) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	uid, ok := n[name]
	switch {
	case !ok:
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	case uid == "":
		return nil, apierrors.NewInternalError(errors.New("etcd is away"))
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}, nil
}

// A bed is a server in memory with its processes, in a bubble.
type bed struct {
	*testing.T
	server  *identitytest.Server
	started int
}

// inBubble runs a test with time of its own.
func inBubble(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(&bed{T: t, server: identitytest.NewServer()}) })
}

// A process is one with a Member.
type process struct {
	bed    *bed
	client string
	clock  *identitytest.Clock
	member *identity.Member
	cancel context.CancelFunc
	done   chan error

	mu     sync.Mutex
	epochs []identity.Epoch
	causes []error
	result error
	// begun, if not nil, is called when work begins.
	begun func(identity.Epoch)
	// linger is how long work goes on after its context has ended.
	linger time.Duration
	losses []identity.LossReason
	held   []bool
}

// process makes one on a host, with a clock that is right.
func (b *bed) process(host string, changes ...func(*identity.Spec)) *process {
	b.Helper()
	return b.processOn(host, identitytest.NewClock(0, 1), changes...)
}

func (b *bed) processOn(host string, clock *identitytest.Clock, changes ...func(*identity.Spec)) *process {
	b.Helper()
	b.started++
	p := &process{bed: b, client: fmt.Sprintf("%s-%d", host, b.started), clock: clock}
	spec := goodSpec(host)
	for _, change := range changes {
		change(&spec)
	}
	var err error
	p.member, err = identity.New(b.server.Client(namespace, p.client, clock), spec, identity.Options{Clock: clock, Metrics: identity.MemberMetrics{
		Held: func(held bool) { p.locked(func() { p.held = append(p.held, held) }) },
		Lost: func(reason identity.LossReason) { p.locked(func() { p.losses = append(p.losses, reason) }) },
	}})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func (p *process) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// work notes its epoch, works until its context ends, and then for as long as it lingers.
func (p *process) work(ctx context.Context, e identity.Epoch) error {
	p.locked(func() { p.epochs = append(p.epochs, e) })
	if p.begun != nil {
		p.begun(e)
	}
	<-ctx.Done()
	p.locked(func() { p.causes = append(p.causes, context.Cause(ctx)) })
	over, stop := p.clock.Timer(p.linger)
	defer stop()
	<-over
	return p.result
}

// start runs it.
func (p *process) start() *process {
	ctx, cancel := context.WithCancel(p.bed.Context())
	p.cancel, p.done = cancel, make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		p.done <- p.member.Run(ctx, p.work)
	}()
	p.bed.Cleanup(func() {
		cancel()
		<-gone
	})
	synctest.Wait()
	return p
}

// stop ends it as a signal does, and returns what Run returned.
func (p *process) stop() error {
	p.bed.Helper()
	p.cancel()
	return p.returns()
}

// returns waits for the end of Run, for an hour of the bubble at most.
func (p *process) returns() error {
	p.bed.Helper()
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	select {
	case err := <-p.done:
		return err
	case <-late.C:
		p.bed.Fatalf("%s: Run goes on after an hour, %+v", p.client, p.member.Status())
		return nil
	}
}

// kill ends it so that nothing of it reaches the server any more.
func (p *process) kill() {
	p.cut()
	p.cancel()
	_ = p.returns()
}

// cut takes its network away.
func (p *process) cut() {
	p.bed.server.Faults(identitytest.Fault{Client: p.client, Times: -1, Err: errDead})
}

func (p *process) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.epochs)
}

// holds demands that it holds the Lease, for work that was called for the nth time, and returns the epoch.
func (p *process) holds(n int) identity.Epoch {
	p.bed.Helper()
	e, held := p.member.Epoch()
	s := p.member.Status()
	if !held || s.Phase != identity.Held || p.count() != n {
		p.bed.Fatalf("%s: held=%v, phase %s, work called %d times, err %v; want it held for the %d. time", p.client, held, s.Phase, p.count(), s.Err, n)
	}
	if l := p.bed.lease(); ptr.Deref(l.Spec.HolderIdentity, "") != e.Holder || l.UID != e.UID {
		p.bed.Fatalf("%s: epoch %v, but the Lease has holder %q, UID %q", p.client, e, *l.Spec.HolderIdentity, l.UID)
	}
	return e
}

// waits demands that it is in a phase without holding the Lease.
func (p *process) waits(phase identity.Phase) {
	p.bed.Helper()
	if _, held := p.member.Epoch(); held || p.member.Status().Phase != phase {
		p.bed.Fatalf("%s: held=%v, phase %s, want %s", p.client, held, p.member.Status().Phase, phase)
	}
}

// lease is the one that is stored.
func (b *bed) lease() *coordinationv1.Lease {
	b.Helper()
	leases := b.server.Leases()
	if len(leases) != 1 {
		b.Fatalf("%d Leases are stored, want 1", len(leases))
	}
	return leases[0]
}

// noLease demands that none is stored.
func (b *bed) noLease() {
	b.Helper()
	if n := len(b.server.Leases()); n != 0 {
		b.Fatalf("%d Leases are stored, want none", n)
	}
}

// passes lets time go by.
func (b *bed) passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// store puts a Lease there that nobody renews, as changed from a good one.
func (b *bed) store(changes ...func(*coordinationv1.Lease)) *coordinationv1.Lease {
	b.Helper()
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: map[string]string{
			identity.FingerprintAnnotation: `{"host":"other","bootID":"boot-other"}`, identity.EpochAnnotation: "7",
		}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("other_1"), LeaseDurationSeconds: ptr.To[int32](3600), LeaseTransitions: ptr.To[int32](3),
			AcquireTime: ptr.To(metav1.NowMicro()), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
	for _, change := range changes {
		change(l)
	}
	made, err := b.admin().Create(b.Context(), l, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return made
}

// edit changes what is stored, as somebody does who is no member.
func (b *bed) edit(change func(*coordinationv1.Lease)) {
	b.Helper()
	l := b.lease()
	change(l)
	if _, err := b.admin().Update(b.Context(), l, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) admin() *identitytest.Client { return b.server.Client(namespace, "admin", nil) }

// asked counts the requests of a process by operation.
func (p *process) asked() map[identitytest.Operation]int {
	n := map[identitytest.Operation]int{}
	for _, r := range p.bed.server.Requests() {
		if r.Client == p.client {
			n[r.Operation]++
		}
	}
	return n
}
