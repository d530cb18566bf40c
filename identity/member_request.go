// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/backoff"
)

// The back-off of requests that failed: KEP-1965's.
const (
	firstDelay = 200 * time.Millisecond
	lastDelay  = 7 * time.Second
)

// A reply is what came of a request. sent and answered are Elapsed.
type reply[T any] struct {
	value          T
	err            error
	sent, answered time.Duration
}

// request makes one request, within a time, and makes its outcome known.
func request[T any](ctx context.Context, m *Member, operation string, limit time.Duration, send func(ctx context.Context) (T, error)) reply[T] {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r := reply[T]{sent: m.clock.Elapsed()}
	r.value, r.err = send(ctx)
	r.answered = m.clock.Elapsed()
	m.know(func(k *known) { k.err = r.err })
	m.metrics.request(operation, codeOf(operation, r.err), r.answered-r.sent)
	return r
}

func codeOf(operation string, err error) int {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		return int(status.Status().Code)
	case err != nil:
		return 0
	case operation == "Create":
		return http.StatusCreated
	}
	return http.StatusOK
}

func (m *Member) get(ctx context.Context) reply[*coordinationv1.Lease] {
	return request(ctx, m, "Get", m.spec.Timing.requestLimit(), func(ctx context.Context) (*coordinationv1.Lease, error) {
		l, err := m.leases.Get(ctx, m.spec.Name, metav1.GetOptions{})
		return slim(l, err)
	})
}

func (m *Member) create(ctx context.Context, l *coordinationv1.Lease) reply[*coordinationv1.Lease] {
	return request(ctx, m, "Create", m.spec.Timing.requestLimit(), func(ctx context.Context) (*coordinationv1.Lease, error) {
		l, err := m.leases.Create(ctx, l, metav1.CreateOptions{})
		return slim(l, err)
	})
}

func (m *Member) update(ctx context.Context, l *coordinationv1.Lease, limit time.Duration) reply[*coordinationv1.Lease] {
	return request(ctx, m, "Update", limit, func(ctx context.Context) (*coordinationv1.Lease, error) {
		l, err := m.leases.Update(ctx, l, metav1.UpdateOptions{})
		return slim(l, err)
	})
}

// remove deletes the Lease in the very version that is given.
func (m *Member) remove(ctx context.Context, l *coordinationv1.Lease) reply[struct{}] {
	return request(ctx, m, "Delete", m.spec.Timing.requestLimit(), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, m.leases.Delete(ctx, l.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion},
		})
	})
}

// slim drops the record of who owns which field. A write without it leaves it as it is on the server, and is a third smaller.
func slim(l *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err == nil && l == nil {
		err = errors.New("the LeaseClient returned neither a Lease nor an error")
	}
	if err != nil {
		return nil, err
	}
	c := *l
	c.ManagedFields = nil
	return &c, nil
}

// requestLimit is how long a request may take: so that two fit between the time when a renewal is due at the latest and the end of the hold.
func (t Timing) requestLimit() time.Duration { return min(t.Renew, (t.Hold-t.longest())/2) }

// absent reports whether the API server said that an object is not there. A 404 of something in front of it is no such thing.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// A retryDelay is the wait between tries of something that fails.
type retryDelay struct{ delay time.Duration }

// after is how long to wait after err: longer each time, by chance, and no less than the server asks for, up to limit.
func (b *retryDelay) after(err error, limit time.Duration) time.Duration {
	b.delay = backoff.Next(b.delay, firstDelay, lastDelay)
	wait := backoff.Jitter(b.delay, 0.5, 1, nil)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		wait = max(wait, min(time.Duration(seconds)*time.Second, limit))
	}
	return wait
}
